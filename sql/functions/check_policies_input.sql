CREATE OR REPLACE FUNCTION outbox.check_policies_input(p_policies jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  v_rail record;
  v_key  record;
BEGIN
  IF p_policies IS NULL OR jsonb_typeof(p_policies) <> 'object' THEN
    RAISE EXCEPTION 'p_policies must be a JSON object of rails, like {"ach": {"on_failed": "halt"}}' USING ERRCODE = 'P7118';
  END IF;
  FOR v_rail IN SELECT * FROM jsonb_each(p_policies) LOOP
    IF v_rail.key = 'dlq' OR v_rail.key !~ '^[a-z][a-z0-9_.-]{0,62}$' THEN
      RAISE EXCEPTION 'p_policies: % is not a rail name that can have a policy', to_json(v_rail.key) USING ERRCODE = 'P7103';
    END IF;
    IF jsonb_typeof(v_rail.value) <> 'object' THEN
      RAISE EXCEPTION 'p_policies.%: must be a JSON object, not %', v_rail.key, jsonb_typeof(v_rail.value) USING ERRCODE = 'P7118';
    END IF;
    FOR v_key IN SELECT * FROM jsonb_each_text(v_rail.value) LOOP
      IF NOT COALESCE(CASE v_key.key
          WHEN 'ordering' THEN v_key.value IN ('strict', 'none')
          WHEN 'on_failed' THEN v_key.value IN ('skip', 'halt')
          WHEN 'delivery' THEN v_key.value IN ('idempotent', 'exactly_once')
          WHEN 'dlq' THEN v_key.value IN ('topic', 'ledger')
          WHEN 'shards' THEN v_key.value ~ '^[0-9]{1,3}$' AND v_key.value::integer BETWEEN 1 AND 256
          ELSE false END, false) THEN
        RAISE EXCEPTION 'p_policies.%.%: % is not understood', v_rail.key, v_key.key, COALESCE(quote_literal(v_key.value), 'null')
          USING ERRCODE = 'P7118', HINT = 'ordering is strict or none, on_failed is skip or halt, delivery is idempotent or exactly_once, dlq is topic or ledger, shards is a number from 1 to 256.';
      END IF;
    END LOOP;
    IF v_rail.value ->> 'on_failed' = 'halt' AND v_rail.value ->> 'ordering' = 'none' THEN
      RAISE EXCEPTION 'p_policies.%: on_failed = halt needs ordering = strict', v_rail.key USING ERRCODE = 'P7118';
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION outbox.check_policies_input(jsonb) IS 'Refuses policies that are not understood.';
