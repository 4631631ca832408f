CREATE OR REPLACE FUNCTION outbox.remember_scan(
  p_hint text, p_scope text, p_start timestamptz, p_first timestamptz, p_now timestamptz, p_took interval
) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  -- A little before the first live turn: a transaction that just committed may have an older time.
  v_from float8 := date_part('epoch', p_first - interval '250 milliseconds');
BEGIN
  IF p_start = '-infinity' THEN
    PERFORM set_config(p_hint, concat_ws('|', v_from, date_part('epoch', p_now + LEAST(20 * p_took, interval '30 seconds')), p_scope), false);
  ELSE
    PERFORM set_config(p_hint, concat_ws('|', v_from, split_part(current_setting(p_hint), '|', 2), p_scope), false);
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.remember_scan(text, text, timestamptz, timestamptz, timestamptz, interval) IS 'Remembers, for this session, where the next scan for turns starts and when the next full pass is due.';
