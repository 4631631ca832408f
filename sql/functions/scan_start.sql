-- While somebody holds an old snapshot, the turns that were taken since then cannot be cleaned
-- away and lie in front of the live ones. So each session remembers up to where it found nothing
-- alive and starts there; a full pass, which also finds what committed late, runs when twenty times
-- the faster of the last two has passed: without an old snapshot that is nearly always.
CREATE OR REPLACE FUNCTION outbox.scan_start(p_hint text, p_scope text, p_now timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_hint text[] := string_to_array(current_setting(p_hint, true), '|');
BEGIN
  IF cardinality(v_hint) = 4 AND v_hint[4] = p_scope AND to_timestamp(v_hint[2]::float8) > p_now
     -- Else the clock was set back, and everything new is due before that.
     AND to_timestamp(v_hint[1]::float8) <= p_now THEN
    RETURN to_timestamp(v_hint[1]::float8);
  END IF;
  RETURN timestamptz '-infinity';
END
$$;
COMMENT ON FUNCTION outbox.scan_start(text, text, timestamptz) IS 'From when on this session looks for turns; -infinity is a full pass.';
