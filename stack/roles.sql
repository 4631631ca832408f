-- One login per duty, so that nothing in development runs as the superuser.
SET client_min_messages = warning;

DO $$
DECLARE
  login record;
BEGIN
  FOR login IN
    SELECT * FROM (VALUES
      ('trestle_app', 'symphony_ingest'),
      ('trestle_bridge', 'symphony_executor'),
      ('trestle_operator', 'symphony_operator')
    ) AS logins (name, duty)
  LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = login.name) THEN
      EXECUTE format('CREATE ROLE %I', login.name);
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L', login.name, login.name);
    EXECUTE format('GRANT %I TO %I', login.duty, login.name);
  END LOOP;
END
$$;
