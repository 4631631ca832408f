CREATE OR REPLACE FUNCTION outbox.check_batch_size(p_name text, p_size integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF p_size IS NULL OR p_size NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION '% is %: it must be between 1 and 10000', p_name, COALESCE(p_size::text, 'null') USING ERRCODE = 'P7110';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.check_batch_size(text, integer) IS 'Refuses a batch size that is no work or too much of it.';
