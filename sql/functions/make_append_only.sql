CREATE OR REPLACE FUNCTION outbox.make_append_only(p_schema name, p_table name) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I.%I
                  FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change()', p_schema, p_table);
  EXECUTE format('ALTER TABLE %I.%I ENABLE ALWAYS TRIGGER append_only', p_schema, p_table);
END
$$;
COMMENT ON FUNCTION outbox.make_append_only(name, name) IS 'Makes a table, or one partition of it, refuse UPDATE, DELETE and TRUNCATE.';
