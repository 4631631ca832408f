CREATE OR REPLACE FUNCTION outbox.enqueue_payment_outbox(
  p_instruction_id text, p_participant_id text, p_idempotency_key text, p_rail_type text, p_payload jsonb,
  p_headers jsonb DEFAULT NULL, p_tenant_id uuid DEFAULT NULL, p_not_before timestamptz DEFAULT NULL,
  OUT outbox_id uuid, OUT sequence_id bigint, OUT is_new boolean
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_fault text[];
  v_id    uuid := outbox.uuidv7();
  v_now   timestamptz := outbox.clock();
  v_due   timestamptz := v_now;
  v_solo  boolean := false;
  v_seq   bigint;
BEGIN
  IF NOT outbox.enqueue_is_plain(p_instruction_id, p_participant_id, p_idempotency_key, p_rail_type, p_payload, p_headers, p_not_before) THEN
    v_fault := outbox.enqueue_fault(p_instruction_id, p_participant_id, p_idempotency_key, p_rail_type, p_payload, p_headers, p_not_before);
    IF v_fault IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = v_fault[1], MESSAGE = v_fault[2];
    END IF;
    -- On a rail without order a row that has to wait must not hold up the others.
    IF p_not_before > v_now THEN
      v_due := p_not_before;
      v_solo := EXISTS (SELECT FROM outbox.payment_outbox_rail_policies AS r
                        WHERE r.rail_type = p_rail_type AND r.in_force AND r.ordering = 'none');
    END IF;
  END IF;

  -- The participant's number comes first: its lock is the mutex of everything below.
  v_seq := outbox.bump_participant_outbox_seq(p_participant_id, p_tenant_id);
  WITH fresh AS (
    INSERT INTO outbox.payment_outbox_keys (instruction_id, idempotency_key, outbox_id)
    VALUES (p_instruction_id, p_idempotency_key, v_id)
    ON CONFLICT DO NOTHING
    RETURNING outbox_id)
  INSERT INTO outbox.payment_outbox_pending (
    outbox_id, tenant_id, instruction_id, participant_id, sequence_id, lane_position, idempotency_key, rail_type,
    payload, headers, next_attempt_at, created_at, solo)
  SELECT f.outbox_id, p_tenant_id, p_instruction_id, p_participant_id, v_seq, v_seq, p_idempotency_key, p_rail_type,
         p_payload, COALESCE(p_headers, '{}'), v_due, v_now, v_solo
  FROM fresh AS f;
  IF NOT FOUND THEN
    -- The key was used before.
    PERFORM outbox.bump_participant_outbox_seq(p_participant_id, p_tenant_id, -1);
    SELECT f.outbox_id, f.sequence_id, false INTO outbox_id, sequence_id, is_new
    FROM outbox.find_same_enqueued(p_instruction_id, p_participant_id, p_idempotency_key, p_rail_type, p_payload, p_tenant_id) AS f;
    RETURN;
  END IF;
  -- The first look of admit_to_lane, here because a lane that exists is the usual case.
  PERFORM FROM outbox.payment_outbox_lanes AS l
  WHERE l.participant_id = p_participant_id AND l.rail_type = p_rail_type
    AND l.solo_sequence_id = CASE WHEN v_solo THEN v_seq ELSE 0 END AND l.tenant_id IS NOT DISTINCT FROM p_tenant_id
  FOR KEY SHARE;
  IF NOT FOUND THEN
    PERFORM outbox.admit_to_lane(p_participant_id, p_rail_type, CASE WHEN v_solo THEN v_seq ELSE 0 END, p_tenant_id, v_seq, v_due);
  END IF;

  outbox_id := v_id;
  sequence_id := v_seq;
  is_new := true;
END
$$;
COMMENT ON FUNCTION outbox.enqueue_payment_outbox(text, text, text, text, jsonb, jsonb, uuid, timestamptz) IS 'Enqueues one row in the caller''s transaction. The same (p_instruction_id, p_idempotency_key) returns the same row, pending or finished; another payload, participant, tenant or rail under a used key is P7004.';
