-- If the caller dies before the commit, nothing has happened and the leases expire; after it,
-- everything has: a row leaves pending, enters the ledger, buries its failure and frees its lane
-- in one transaction.
CREATE OR REPLACE FUNCTION outbox.complete_outbox_batch(
  p_worker_id text, p_outbox_ids uuid[], p_lease_tokens uuid[], p_states outbox.outbox_attempt_state[],
  p_rail_references text[] DEFAULT NULL, p_rail_codes text[] DEFAULT NULL, p_error_codes text[] DEFAULT NULL,
  p_error_messages text[] DEFAULT NULL, p_latencies_ms integer[] DEFAULT NULL, p_retry_delays_seconds integer[] DEFAULT NULL,
  p_counted boolean[] DEFAULT NULL
) RETURNS TABLE (outbox_id uuid, attempt_no integer, state outbox.outbox_attempt_state, refusal text, more boolean)
LANGUAGE plpgsql SECURITY DEFINER ROWS 500
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_turns   bigint[];
  v_busy    uuid[];
  v_now     timestamptz;
  v_judged  outbox.judged_outcome[];
  v_decided bigint;
  v_entered uuid[];
  v_nos     integer[];
  v_states  outbox.outbox_attempt_state[];
  v_more    boolean;
BEGIN
  PERFORM outbox.check_worker(p_worker_id), outbox.check_outcomes(p_outbox_ids, p_lease_tokens, p_states,
    ARRAY[cardinality(p_rail_references), cardinality(p_rail_codes), cardinality(p_error_codes), cardinality(p_error_messages),
          cardinality(p_latencies_ms), cardinality(p_retry_delays_seconds), cardinality(p_counted)], p_latencies_ms, p_retry_delays_seconds);
  SELECT l.turn_ids, l.busy_ids INTO v_turns, v_busy FROM outbox.lock_leased_lanes(p_worker_id, p_outbox_ids) AS l;
  -- Taken after the locks: a lease that has run out by then is lost.
  v_now := outbox.clock();
  v_judged := outbox.judge_outcomes(v_turns, p_worker_id, v_now, p_outbox_ids, p_lease_tokens, p_states, p_rail_references, p_rail_codes,
    p_error_codes, p_error_messages, p_latencies_ms, p_retry_delays_seconds, p_counted);

  WITH entered AS (
    INSERT INTO outbox.payment_outbox_attempts AS e (
      attempt_id, outbox_id, tenant_id, instruction_id, participant_id, sequence_id, idempotency_key, rail_type, payload, headers,
      attempt_no, state, counted, claimed_at, completed_at, created_at, rail_reference, rail_code, error_code, error_message,
      latency_ms, worker_id, lease_token, replay_of, dead_letter_of)
    SELECT outbox.uuidv7(), p.outbox_id, p.tenant_id, p.instruction_id, p.participant_id, p.sequence_id, p.idempotency_key, p.rail_type,
           p.payload, p.headers, j.attempt_no, j.state, j.counted, p.claimed_at, v_now, p.created_at, j.rail_reference, j.rail_code,
           j.error_code, j.error_message, j.latency_ms, p_worker_id, p.lease_token, p.replay_of, p.dead_letter_of
    FROM unnest(v_judged) AS j JOIN outbox.payment_outbox_pending AS p ON p.ctid = j.tuple
    WHERE j.verdict = 'record'
    ON CONFLICT (outbox_id) WHERE state IN ('DISPATCHED', 'FAILED') DO NOTHING
    RETURNING e.outbox_id, e.attempt_no, e.state)
  SELECT COALESCE(array_agg(e.outbox_id), '{}'), array_agg(e.attempt_no), array_agg(e.state),
         (SELECT count(*) FROM unnest(v_judged) AS j WHERE j.verdict <> 'too early')
  INTO v_entered, v_nos, v_states, v_decided FROM entered AS e;
  DELETE FROM outbox.payment_outbox_pending AS p
  WHERE p.ctid = ANY (ARRAY(
    SELECT j.tuple FROM unnest(v_judged) AS j WHERE j.verdict = 'blocked' OR (j.verdict = 'record' AND j.state <> 'RETRYABLE')));
  PERFORM outbox.log_batch_event('ATTEMPT_COMPLETED', p_worker_id, v_entered);
  IF cardinality(v_entered) < v_decided OR p_states && ARRAY['RETRYABLE', 'FAILED']::outbox.outbox_attempt_state[] THEN
    PERFORM outbox.settle_the_rest(p_worker_id, v_now, p_outbox_ids, p_states, v_judged, v_entered);
  END IF;
  -- A failure has a dead letter, which is due at once.
  v_more := outbox.settle_lanes(v_turns) OR COALESCE('FAILED' = ANY (v_states), false);
  RETURN QUERY
    SELECT a.outbox_id, e.attempt_no, e.state,
           CASE WHEN e.outbox_id IS NOT NULL THEN NULL
                WHEN a.state IS NULL OR a.state = 'ZOMBIE_REQUEUE' THEN 'P7003'
                WHEN j.verdict = 'too early' THEN 'P7006'
                WHEN a.outbox_id = ANY (v_busy) THEN 'P7018'
                WHEN j.verdict IN ('record', 'blocked') OR (a.outbox_id <> ALL (v_entered) AND outbox.is_finished(a.outbox_id)) THEN 'P7001'
                ELSE 'P7002' END,
           v_more
    FROM unnest(p_outbox_ids, p_states) WITH ORDINALITY AS a (outbox_id, state, n)
    LEFT JOIN unnest(v_judged) AS j ON j.outbox_id = a.outbox_id AND j.n = a.n
    LEFT JOIN unnest(v_entered, v_nos, v_states) AS e (outbox_id, attempt_no, state) ON e.outbox_id = j.outbox_id
    ORDER BY a.n;
END
$$;
COMMENT ON FUNCTION outbox.complete_outbox_batch(text, uuid[], uuid[], outbox.outbox_attempt_state[], text[], text[], text[], text[], integer[], integer[], boolean[]) IS 'Records the outcomes of many rows in one transaction. A row that cannot be recorded is returned with the SQLSTATE of its refusal and never fails its neighbours. more: whether a claim would find something now that could not be claimed before: in these lanes, in their shards, or a dead letter.';
