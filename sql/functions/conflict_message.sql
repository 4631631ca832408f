CREATE OR REPLACE FUNCTION outbox.conflict_message(
  p_instruction_id text, p_idempotency_key text,
  p_participant_differs boolean, p_tenant_differs boolean, p_rail_differs boolean, p_payload_differs boolean
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT format('idempotency key %L of instruction %L was already used with another %s', p_idempotency_key, p_instruction_id,
    concat_ws(', ', CASE WHEN p_participant_differs THEN 'p_participant_id' END, CASE WHEN p_tenant_differs THEN 'p_tenant_id' END,
                    CASE WHEN p_rail_differs THEN 'p_rail_type' END, CASE WHEN p_payload_differs THEN 'p_payload' END))
$$;
COMMENT ON FUNCTION outbox.conflict_message(text, text, boolean, boolean, boolean, boolean) IS 'The text of P7004: which arguments differ, without their values.';
