-- A commit that a crash can lose would send rows again: the register would be ahead of the database.
CREATE OR REPLACE FUNCTION outbox.keep_commits() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.keep_commits() IS 'This transaction is on disk, and on the synchronous standby, before its caller hears of it, whatever the database''s default is.';
