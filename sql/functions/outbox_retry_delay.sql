CREATE OR REPLACE FUNCTION outbox.outbox_retry_delay(attempt_no integer) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  -- Beyond the tenth doubling the bound holds; the exponent is cut before it can overflow.
  SELECT LEAST(900, 2 ^ LEAST(GREATEST(COALESCE(attempt_no, 1) - 1, 0), 10)) * interval '1 second'
$$;
COMMENT ON FUNCTION outbox.outbox_retry_delay(integer) IS 'How long to wait after an attempt: 1 s, doubling, 15 minutes at most. The same for everybody.';
