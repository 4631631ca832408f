CREATE OR REPLACE FUNCTION outbox.write_dead_letter(p_failed_id uuid, p_now timestamptz, p_dlq text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_id      uuid := outbox.uuidv7();
  v_failed  outbox.payment_outbox_attempts;
  v_headers jsonb;
BEGIN
  SELECT * INTO v_failed FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_failed_id AND a.state = 'FAILED';
  -- The failure's own headers win over the user's, in whatever case: a dead letter cannot be forged.
  v_headers := (
    SELECT COALESCE(jsonb_object_agg(h.key, h.value), '{}') FROM jsonb_each(v_failed.headers) AS h WHERE lower(h.key) NOT LIKE 'dlq\_%') || (
    SELECT jsonb_strip_nulls(jsonb_build_object(
      'dlq_outbox_id', p_failed_id, 'dlq_rail_type', v_failed.rail_type, 'dlq_error_code', v_failed.error_code,
      'dlq_reason', v_failed.error_message, 'dlq_rail_code', v_failed.rail_code, 'dlq_attempts', v_failed.attempt_no::text,
      'dlq_first_failed_at', to_jsonb(min(a.completed_at)) #>> '{}', 'dlq_last_failed_at', to_jsonb(v_failed.completed_at) #>> '{}'))
    FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_failed_id AND a.state <> 'ZOMBIE_REQUEUE');

  IF p_dlq = 'ledger' THEN
    -- No broker carries dead letters: the FAILED row is the dead letter, and this one is done at once.
    INSERT INTO outbox.payment_outbox_attempts (
      attempt_id, outbox_id, tenant_id, instruction_id, participant_id, sequence_id, idempotency_key, rail_type, payload, headers,
      attempt_no, state, claimed_at, completed_at, created_at, rail_reference, worker_id, lease_token, dead_letter_of)
    VALUES (outbox.uuidv7(), v_id, v_failed.tenant_id, v_failed.instruction_id, v_failed.participant_id, v_failed.sequence_id,
      v_failed.idempotency_key, 'dlq', v_failed.payload, v_headers, 1, 'DISPATCHED', p_now, p_now, p_now, 'ledger',
      v_failed.worker_id, v_failed.lease_token, p_failed_id);
    RETURN;
  END IF;
  INSERT INTO outbox.payment_outbox_pending (
    outbox_id, tenant_id, instruction_id, participant_id, sequence_id, lane_position, idempotency_key, rail_type, payload, headers,
    next_attempt_at, created_at, dead_letter_of)
  VALUES (v_id, v_failed.tenant_id, v_failed.instruction_id, v_failed.participant_id, v_failed.sequence_id,
    nextval('outbox.payment_outbox_dead_letter_order'), v_failed.idempotency_key, 'dlq', v_failed.payload, v_headers, p_now, p_now, p_failed_id);
  PERFORM outbox.admit_to_lane(v_failed.participant_id, 'dlq', 0, v_failed.tenant_id, 0, p_now);
END
$$;
COMMENT ON FUNCTION outbox.write_dead_letter(uuid, timestamptz, text) IS 'Puts the dlq row of a FAILED one into pending, in the same transaction, so that it can be neither lost nor forged.';
