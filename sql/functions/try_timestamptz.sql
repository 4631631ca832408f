CREATE OR REPLACE FUNCTION outbox.try_timestamptz(p_text text) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT
AS $$
BEGIN
  RETURN p_text::timestamptz;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.try_timestamptz(text) IS 'A timestamp from text, or NULL where it is none.';
