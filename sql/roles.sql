-- The group roles. Login roles are the user's own: grant them a group.
-- Roles belong to the cluster, and several databases may be migrated at once, so a role that
-- appears between the look and the CREATE is as good as one that was there before.
DO $roles$
DECLARE
  v_role text;
BEGIN
  FOREACH v_role IN ARRAY ARRAY[
    'symphony_control', 'symphony_ingest', 'symphony_executor',
    'symphony_operator', 'symphony_readonly', 'symphony_auditor'
  ] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = v_role) THEN
      BEGIN
        EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', v_role);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;
      END;
    END IF;
  END LOOP;
END
$roles$;
