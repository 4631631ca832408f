CREATE OR REPLACE FUNCTION outbox.check_batch_size(p_batch_size integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF p_batch_size IS NULL OR p_batch_size NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION 'p_batch_size is %: it must be between 1 and 10000', COALESCE(p_batch_size::text, 'null') USING ERRCODE = 'P7110';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.check_batch_size(integer) IS 'Refuses a batch size that is no work or too much of it.';
