-- The one clock of the contract: the time of the call, not of the transaction's start.
CREATE OR REPLACE FUNCTION outbox.clock() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT pg_catalog.clock_timestamp() $$;
COMMENT ON FUNCTION outbox.clock() IS 'The time now. Everything that compares or stores a time asks here.';
