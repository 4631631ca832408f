CREATE OR REPLACE FUNCTION outbox.release_outbox_leases(p_worker_id text, p_outbox_ids uuid[], p_lease_tokens uuid[], p_delay_seconds integer DEFAULT 0)
RETURNS TABLE (outbox_id uuid, busy boolean)
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
BEGIN
  PERFORM outbox.check_worker(p_worker_id), outbox.check_delay_seconds('p_delay_seconds', p_delay_seconds);
  SELECT l.turn_ids, l.busy_ids INTO v_turns, v_busy FROM outbox.lock_leased_lanes(p_worker_id, p_outbox_ids) AS l;
  v_now := outbox.clock();

  RETURN QUERY
  WITH held AS MATERIALIZED (
    SELECT h.*, min(h.lane_position) FILTER (WHERE h.asked) OVER (PARTITION BY h.turn_id) AS first_asked
    FROM outbox.held_rows(v_turns, p_worker_id, p_outbox_ids, p_lease_tokens, v_now) AS h)
  -- What stands behind a row that is given back goes back with it, so that it cannot overtake.
  UPDATE outbox.payment_outbox_pending AS p
  SET claimed_by = NULL, claimed_at = NULL, lease_token = NULL, lease_expires_at = NULL, turn_id = NULL, shard = NULL, batch = NULL,
      next_attempt_at = GREATEST(p.next_attempt_at, v_now + p_delay_seconds * interval '1 second'), solo = p.solo OR h.unordered
  FROM held AS h
  WHERE p.ctid = h.tuple AND (h.asked OR (NOT h.unordered AND h.lane_position >= h.first_asked))
  RETURNING p.outbox_id, false;
  RETURN QUERY SELECT b, true FROM unnest(v_busy) AS b;

  PERFORM outbox.admit_to_lane(p.participant_id, p.rail_type, p.sequence_id, p.tenant_id, p.sequence_id, p.next_attempt_at)
  FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (p_outbox_ids) AND p.solo AND p.turn_id IS NULL;
  PERFORM outbox.settle_lanes(v_turns);
END
$$;
COMMENT ON FUNCTION outbox.release_outbox_leases(text, uuid[], uuid[], integer) IS 'Gives back rows that were certainly not sent, and what stands behind them in their lanes. No attempt is written, because none was made. Rows whose lane somebody else has locked are returned as busy: ask again.';
