CREATE OR REPLACE FUNCTION outbox.check_lease_seconds(p_lease_seconds integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF p_lease_seconds IS NULL OR p_lease_seconds NOT BETWEEN 1 AND 3600 THEN
    RAISE EXCEPTION 'p_lease_seconds is %: it must be between 1 and 3600', COALESCE(p_lease_seconds::text, 'null') USING ERRCODE = 'P7111';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.check_lease_seconds(integer) IS 'Refuses a lease that is over before it begins, or that keeps a dead worker''s rows for hours.';
