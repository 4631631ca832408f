CREATE OR REPLACE FUNCTION outbox.wake_up_key() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT 8391454533946209381 $$;
COMMENT ON FUNCTION outbox.wake_up_key() IS 'The advisory lock that a sleeping worker holds, or waits for, exclusively.';
