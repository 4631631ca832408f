-- Outcomes are taken as a prefix of their lane. A row is recorded when the worker still holds it and
-- every earlier row of the lane that is under the same lease is recorded too; what stands behind a
-- row that has to be tried again (or that halts the lane) is given back unsent.
-- OFFSET 0: one look-up for each lane, whatever the planner thinks. To join whole tables would walk
-- over all that an old snapshot keeps from being cleaned away.
CREATE OR REPLACE FUNCTION outbox.judge_outcomes(
  p_turn_ids bigint[], p_worker_id text, p_now timestamptz,
  p_outbox_ids uuid[], p_lease_tokens uuid[], p_states outbox.outbox_attempt_state[], p_rail_references text[], p_rail_codes text[],
  p_error_codes text[], p_error_messages text[], p_latencies_ms integer[], p_retry_delays_seconds integer[], p_counted boolean[]
) RETURNS outbox.judged_outcome[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_sorted uuid[] := ARRAY(SELECT i FROM unnest(p_outbox_ids) AS i ORDER BY i);
BEGIN
  RETURN (
  WITH asked AS MATERIALIZED (
    SELECT * FROM outbox.asked_outcomes(p_outbox_ids, p_lease_tokens, p_states, p_rail_references, p_rail_codes,
      p_error_codes, p_error_messages, p_latencies_ms, p_retry_delays_seconds, p_counted)),
  leased AS MATERIALIZED (
    SELECT r.*, l.rail_type, COALESCE(y.ordering = 'none', false) AS unordered, COALESCE(y.on_failed = 'halt', false) AS halts
    FROM outbox.payment_outbox_turns AS t
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id OFFSET 0) AS l
    LEFT JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = l.rail_type AND y.in_force
    CROSS JOIN LATERAL (
      SELECT * FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, t.head_position) AS r
      WHERE r.turn_id = t.turn_id AND r.lane_position <= t.last_position OFFSET 0) AS r
    WHERE t.turn_id = ANY (p_turn_ids)),
  -- The ledger is the truth about attempts; the bounds let it read the partitions concerned alone.
  tried AS MATERIALIZED (
    SELECT a.outbox_id, max(a.attempt_no) AS last_no, count(*) FILTER (WHERE a.state = 'RETRYABLE' AND a.counted) AS retries,
           bool_or(a.state IN ('DISPATCHED', 'FAILED')) AS terminal
    FROM outbox.payment_outbox_attempts AS a
    WHERE a.outbox_id = ANY (p_outbox_ids) AND a.outbox_id BETWEEN v_sorted[1] AND v_sorted[cardinality(v_sorted)]
    GROUP BY a.outbox_id),
  weighed AS (
    SELECT r.*, a.n, a.rail_reference, a.rail_code, a.error_code, a.error_message, a.latency_ms, a.retry_delay_seconds,
           COALESCE(a.counted, true) AS counts, COALESCE(y.last_no, 0) + 1 AS no,
           COALESCE(r.claimed_by = p_worker_id AND r.lease_expires_at > p_now
                    AND a.state IN ('DISPATCHED', 'RETRYABLE', 'FAILED'), false) AS held,
           a.state AS asked_state, COALESCE(y.terminal, false) AS terminal,
           CASE WHEN a.state = 'FAILED' AND r.rail_type = 'dlq' THEN 'RETRYABLE'
                WHEN a.state = 'RETRYABLE' AND r.rail_type <> 'dlq' AND COALESCE(a.counted, true) AND y.retries >= 19 THEN 'FAILED'
                ELSE a.state END AS outcome
    FROM leased AS r
    LEFT JOIN asked AS a ON a.outbox_id = r.outbox_id AND a.lease_token = r.lease_token
    LEFT JOIN tried AS y ON y.outbox_id = r.outbox_id),
  ranked AS (
    SELECT w.*, COALESCE(bool_and(w.held) OVER earlier, true) AS is_next FROM weighed AS w
    WINDOW earlier AS (PARTITION BY w.turn_id ORDER BY w.lane_position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
  stopped AS (
    -- Whoever asks for a retry has not sent what is behind it, also where the retry was one too many.
    SELECT r.*, COALESCE(bool_or(r.held AND r.is_next AND NOT r.terminal
             AND ('RETRYABLE' IN (r.asked_state, r.outcome) OR (r.outcome = 'FAILED' AND r.halts))) OVER earlier, false) AS behind_stop
    FROM ranked AS r
    WINDOW earlier AS (PARTITION BY r.turn_id ORDER BY r.lane_position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
  SELECT array_agg(ROW(s.outbox_id, s.n,
         CASE WHEN s.behind_stop AND NOT s.unordered THEN 'give back'
              WHEN s.held AND s.terminal THEN 'blocked'
              WHEN s.held AND (s.is_next OR s.unordered) THEN 'record'
              WHEN s.held THEN 'too early' END,
         s.tuple, s.no, s.outcome, s.counts, s.unordered, s.rail_reference, s.rail_code,
         CASE WHEN s.outcome = 'FAILED' AND s.asked_state = 'RETRYABLE' THEN 'RETRIES_EXHAUSTED' ELSE s.error_code END,
         left(s.error_message, 2000), s.latency_ms,
         COALESCE(s.retry_delay_seconds * interval '1 second', outbox.outbox_retry_delay(s.no)))::outbox.judged_outcome)
  FROM stopped AS s);
END
$$;
COMMENT ON FUNCTION outbox.judge_outcomes(bigint[], text, timestamptz, uuid[], uuid[], outbox.outbox_attempt_state[], text[], text[], text[], text[], integer[], integer[], boolean[]) IS 'Decides what becomes of each leased row of locked lanes: record, give back, too early, blocked (the ledger has its terminal outcome already), or nothing.';
