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
  v_turns bigint[];
  v_busy  uuid[];
  v_now   timestamptz;
  v_nos   integer[];
  v_state outbox.outbox_attempt_state[];
  v_why   text[];
  v_more  boolean;
BEGIN
  PERFORM outbox.check_worker(p_worker_id);
  PERFORM outbox.check_outcomes(p_outbox_ids, p_lease_tokens, p_states,
    ARRAY[cardinality(p_rail_references), cardinality(p_rail_codes), cardinality(p_error_codes), cardinality(p_error_messages),
          cardinality(p_latencies_ms), cardinality(p_retry_delays_seconds), cardinality(p_counted)], p_latencies_ms, p_retry_delays_seconds);
  SELECT l.turn_ids, l.busy_ids INTO v_turns, v_busy FROM outbox.lock_leased_lanes(p_worker_id, p_outbox_ids) AS l;
  -- Taken after the locks: a lease that has run out by then is lost.
  v_now := outbox.clock();

  WITH judged AS MATERIALIZED (
    SELECT * FROM outbox.judge_outcomes(v_turns, p_worker_id, v_now, p_outbox_ids, p_lease_tokens, p_states, p_rail_references, p_rail_codes,
      p_error_codes, p_error_messages, p_latencies_ms, p_retry_delays_seconds, p_counted)),
  finished AS (
    DELETE FROM outbox.payment_outbox_pending AS p USING judged AS j
    WHERE p.ctid = j.tuple AND (j.verdict = 'blocked' OR (j.verdict = 'record' AND j.state <> 'RETRYABLE'))
    RETURNING p.tenant_id, p.instruction_id, p.participant_id, p.sequence_id, p.idempotency_key, p.rail_type,
              p.payload, p.headers, p.created_at, p.replay_of, p.dead_letter_of, j.*),
  kept AS (
    UPDATE outbox.payment_outbox_pending AS p
    SET claimed_by = NULL, claimed_at = NULL, lease_token = NULL, lease_expires_at = NULL, turn_id = NULL, shard = NULL, batch = NULL,
        attempt_count = CASE j.verdict WHEN 'record' THEN GREATEST(p.attempt_count, j.attempt_no) ELSE p.attempt_count END,
        next_attempt_at = CASE j.verdict WHEN 'record' THEN v_now + j.retry_delay ELSE p.next_attempt_at END,
        solo = p.solo OR j.unordered
    FROM judged AS j
    WHERE p.ctid = j.tuple AND (j.verdict = 'give back' OR (j.verdict = 'record' AND j.state = 'RETRYABLE'))
    RETURNING p.tenant_id, p.instruction_id, p.participant_id, p.sequence_id, p.idempotency_key, p.rail_type,
              p.payload, p.headers, p.created_at, p.replay_of, p.dead_letter_of, j.*),
  entered AS (
    INSERT INTO outbox.payment_outbox_attempts AS e (
      attempt_id, outbox_id, tenant_id, instruction_id, participant_id, sequence_id, idempotency_key, rail_type, payload, headers,
      attempt_no, state, counted, claimed_at, completed_at, created_at, rail_reference, rail_code, error_code, error_message,
      latency_ms, worker_id, lease_token, replay_of, dead_letter_of)
    SELECT outbox.uuidv7(), o.outbox_id, o.tenant_id, o.instruction_id, o.participant_id, o.sequence_id, o.idempotency_key, o.rail_type,
           o.payload, o.headers, o.attempt_no, o.state, o.counted, o.claimed_at, v_now, o.created_at, o.rail_reference, o.rail_code,
           o.error_code, o.error_message, o.latency_ms, p_worker_id, o.lease_token, o.replay_of, o.dead_letter_of
    FROM (SELECT * FROM finished UNION ALL SELECT * FROM kept) AS o WHERE o.verdict = 'record'
    ON CONFLICT (outbox_id) WHERE state IN ('DISPATCHED', 'FAILED') DO NOTHING
    RETURNING e.outbox_id, e.attempt_no, e.state),
  told AS (
    SELECT a.outbox_id, a.n, e.attempt_no, e.state, j.verdict,
           CASE WHEN e.outbox_id IS NOT NULL THEN NULL
                WHEN a.state IS NULL OR a.state = 'ZOMBIE_REQUEUE' THEN 'P7003'
                WHEN j.verdict = 'too early' THEN 'P7006'
                WHEN a.outbox_id = ANY (v_busy) THEN 'P7018'
                WHEN j.verdict IN ('record', 'blocked') OR outbox.is_finished(a.outbox_id) THEN 'P7001'
                ELSE 'P7002' END AS refusal
    FROM unnest(p_outbox_ids, p_states) WITH ORDINALITY AS a (outbox_id, state, n)
    LEFT JOIN judged AS j ON j.outbox_id = a.outbox_id AND j.n = a.n
    LEFT JOIN entered AS e ON e.outbox_id = j.outbox_id),
  logged AS (
    INSERT INTO outbox.payment_outbox_events (event_id, event_type, occurred_at, actor, outbox_ids)
    SELECT outbox.uuidv7(), b.event_type, v_now, p_worker_id, b.outbox_ids
    FROM (
      SELECT 'TERMINAL_BLOCKED' AS event_type, array_agg(t.outbox_id) AS outbox_ids
      FROM told AS t WHERE t.verdict IN ('record', 'blocked') AND t.refusal = 'P7001' HAVING count(*) > 0
      UNION ALL
      SELECT 'ATTEMPT_COMPLETED', array_agg(e.outbox_id)
      FROM entered AS e HAVING count(*) > 0 AND (SELECT s.batch_events FROM outbox.payment_outbox_settings AS s)) AS b)
  SELECT array_agg(t.attempt_no), array_agg(t.state), array_agg(t.refusal) INTO v_nos, v_state, v_why
  FROM (SELECT * FROM told AS t ORDER BY t.n) AS t;

  IF p_states && ARRAY['RETRYABLE', 'FAILED']::outbox.outbox_attempt_state[] THEN
    PERFORM outbox.bury_failed(p_outbox_ids, p_worker_id);
    PERFORM outbox.admit_to_lane(p.participant_id, p.rail_type, p.sequence_id, p.tenant_id, p.sequence_id, p.next_attempt_at)
    FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (p_outbox_ids) AND p.solo AND p.turn_id IS NULL;
  END IF;
  -- A failure has a dead letter, which is due at once.
  v_more := outbox.settle_lanes(v_turns) OR COALESCE('FAILED' = ANY (v_state), false);
  RETURN QUERY SELECT a.outbox_id, a.attempt_no, a.state, a.refusal, v_more FROM unnest(p_outbox_ids, v_nos, v_state, v_why) AS a (outbox_id, attempt_no, state, refusal);
END
$$;
COMMENT ON FUNCTION outbox.complete_outbox_batch(text, uuid[], uuid[], outbox.outbox_attempt_state[], text[], text[], text[], text[], integer[], integer[], boolean[]) IS 'Records the outcomes of many rows in one transaction. A row that cannot be recorded is returned with the SQLSTATE of its refusal and never fails its neighbours. more: whether a claim would find something now that could not be claimed before: in these lanes, in their shards, or a dead letter.';
