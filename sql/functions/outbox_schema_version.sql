CREATE OR REPLACE FUNCTION outbox.outbox_schema_version() RETURNS TABLE (migration integer, fingerprint text, trestle_version text)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT (SELECT max(h.version) FROM outbox.schema_history AS h), c.fingerprint, c.trestle_version FROM outbox.schema_code AS c
$$;
COMMENT ON FUNCTION outbox.outbox_schema_version() IS 'The number of the last migration, the fingerprint of the functions, views and grants, and the trestle that wrote them: for whoever may not read the tables of migrations.';
