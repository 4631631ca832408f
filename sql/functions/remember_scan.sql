-- A full pass that took long once, or was a session's first, was held up by something else, and what committed late
-- must not wait for that. With an old snapshot it takes as long every time: so the faster of the last two counts.
CREATE OR REPLACE FUNCTION outbox.remember_scan(
  p_hint text, p_scope text, p_start timestamptz, p_first timestamptz, p_now timestamptz, p_took interval
) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  v_hint text[] := string_to_array(current_setting(p_hint, true), '|');
  v_next float8;
  v_took float8;
BEGIN
  IF cardinality(v_hint) <> 4 OR v_hint[4] <> p_scope THEN
    -- Of other rails, or of a version before this one.
    v_hint := NULL;
  END IF;
  IF p_start = '-infinity' AND p_took <= interval '1 millisecond' THEN
    -- Nothing is in the way: every scan can be a full pass.
    PERFORM set_config(p_hint, '', false);
    RETURN;
  END IF;
  IF p_start = '-infinity' THEN
    v_took := date_part('epoch', p_took);
    v_next := date_part('epoch', p_now) + LEAST(20 * v_took, 20 * COALESCE(v_hint[3]::float8, 0), 30);
  ELSE
    v_took := v_hint[3]::float8;
    v_next := v_hint[2]::float8;
  END IF;
  -- A little before the first live turn: a transaction that just committed may have an older time.
  PERFORM set_config(p_hint, concat_ws('|', date_part('epoch', p_first - interval '250 milliseconds'), v_next, v_took, p_scope), false);
END
$$;
COMMENT ON FUNCTION outbox.remember_scan(text, text, timestamptz, timestamptz, timestamptz, interval) IS 'Remembers, for this session, where the next scan for turns starts, when the next full pass is due, and how long the last one took.';
