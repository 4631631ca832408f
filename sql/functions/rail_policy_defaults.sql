CREATE OR REPLACE FUNCTION outbox.rail_policy_defaults(p_policy jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT '{"ordering": "strict", "on_failed": "skip", "delivery": "idempotent", "dlq": "topic", "shards": 16}'::jsonb || jsonb_strip_nulls(p_policy) $$;
COMMENT ON FUNCTION outbox.rail_policy_defaults(jsonb) IS 'A policy with every key set.';
