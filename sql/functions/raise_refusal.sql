CREATE OR REPLACE FUNCTION outbox.raise_refusal(p_refusal text, p_outbox_id uuid, p_state outbox.outbox_attempt_state) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = p_refusal, MESSAGE = CASE p_refusal
    WHEN 'P7001' THEN format('ALREADY_TERMINAL: the ledger has the terminal outcome of %s', p_outbox_id)
    WHEN 'P7002' THEN format('LEASE_LOST: %s is not held under this worker and lease token, or the lease has expired', p_outbox_id)
    WHEN 'P7003' THEN format('WRONG_STATE: p_state is %s, it must be DISPATCHED, RETRYABLE or FAILED', COALESCE(p_state::text, 'null'))
    WHEN 'P7006' THEN format('OUT_OF_ORDER: an earlier row of the lane of %s is still in flight; record that one first', p_outbox_id) END;
END
$$;
COMMENT ON FUNCTION outbox.raise_refusal(text, uuid, outbox.outbox_attempt_state) IS 'Raises why an outcome was not recorded.';
