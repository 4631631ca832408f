CREATE OR REPLACE FUNCTION outbox.check_delay_seconds(p_name text, p_delay_seconds integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF p_delay_seconds IS NULL OR p_delay_seconds NOT BETWEEN 0 AND 604800 THEN
    RAISE EXCEPTION '% is %: it must be between 0 and 604800 (a week)', p_name, COALESCE(p_delay_seconds::text, 'null') USING ERRCODE = 'P7112';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.check_delay_seconds(text, integer) IS 'Refuses a negative or absurd delay.';
