-- Folded into its callers' expressions, so it is one SELECT, and neither definer nor pinned. A clock that was set
-- back must not keep a claim from looking.
CREATE OR REPLACE FUNCTION outbox.repair_looked_lately() RETURNS boolean
LANGUAGE sql VOLATILE
AS $$
  SELECT COALESCE(date_part('epoch', outbox.clock()) - NULLIF(current_setting('outbox.repair_looked_at', true), '')::float8 BETWEEN 0 AND 1, false)
$$;
COMMENT ON FUNCTION outbox.repair_looked_lately() IS 'Whether this session looked for expired leases in the last second, and found none.';
