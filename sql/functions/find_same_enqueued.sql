CREATE OR REPLACE FUNCTION outbox.find_same_enqueued(
  p_instruction_id text, p_participant_id text, p_idempotency_key text, p_rail_type text, p_payload jsonb, p_tenant_id uuid,
  OUT outbox_id uuid, OUT sequence_id bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_was record;
BEGIN
  SELECT k.outbox_id INTO outbox_id FROM outbox.payment_outbox_keys AS k
  WHERE k.instruction_id = p_instruction_id AND k.idempotency_key = p_idempotency_key;
  v_was := outbox.find_enqueued(outbox_id);
  sequence_id := v_was.sequence_id;
  -- As text: 1.0 and 1.00 are equal numbers, but not the same payload.
  IF v_was.participant_id <> p_participant_id OR v_was.tenant_id IS DISTINCT FROM p_tenant_id
     OR v_was.rail_type <> p_rail_type OR v_was.payload::text <> p_payload::text THEN
    RAISE EXCEPTION USING ERRCODE = 'P7004',
      MESSAGE = outbox.conflict_message(p_instruction_id, p_idempotency_key, v_was.participant_id <> p_participant_id,
        v_was.tenant_id IS DISTINCT FROM p_tenant_id, v_was.rail_type <> p_rail_type, v_was.payload::text <> p_payload::text),
      HINT = 'A key stands for one request: use a new key for a new request, or the same arguments to ask again.';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.find_same_enqueued(text, text, text, text, jsonb, uuid) IS 'The row of a used key; P7004 where it was used for something else.';
