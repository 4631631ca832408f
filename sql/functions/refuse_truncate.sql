CREATE OR REPLACE FUNCTION outbox.refuse_truncate() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION '%.% holds undelivered work: TRUNCATE is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME
    USING ERRCODE = 'P0001', HINT = 'A row leaves only when its outcome is terminal.';
END
$$;
COMMENT ON FUNCTION outbox.refuse_truncate() IS 'Refuses TRUNCATE of pending work.';
