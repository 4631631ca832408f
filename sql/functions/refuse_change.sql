CREATE OR REPLACE FUNCTION outbox.refuse_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION '%.% is append-only: % is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'P0001',
          HINT = 'Retention detaches whole partitions; a row is never changed or removed.';
END
$$;
COMMENT ON FUNCTION outbox.refuse_change() IS 'Refuses UPDATE, DELETE and TRUNCATE, also when no row matches.';
