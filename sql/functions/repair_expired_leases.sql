-- Works in whole lanes: p_batch_size bounds how many expired lanes are repaired in one call.
CREATE OR REPLACE FUNCTION outbox.repair_expired_leases(p_batch_size integer, p_worker_id text)
RETURNS TABLE (outbox_id uuid, participant_id text, rail_type text, sequence_id bigint, attempt_no integer, expired_worker_id text, lane_paused boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_now   timestamptz := outbox.clock();
  v_start timestamptz := outbox.scan_start('outbox.repair_scan', '', v_now);
  v_turns bigint[];
BEGIN
  PERFORM outbox.check_batch_size('p_batch_size', p_batch_size), outbox.check_worker(p_worker_id);
  v_turns := ARRAY(
    SELECT t.turn_id FROM outbox.payment_outbox_turns AS t
    CROSS JOIN LATERAL (
      SELECT FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id FOR NO KEY UPDATE SKIP LOCKED) AS l
    WHERE t.worker_id IS NOT NULL AND t.due_at <= v_now AND t.due_at > v_start
    ORDER BY t.due_at LIMIT p_batch_size);
  -- A lease that was renewed or repaired meanwhile drops out here.
  v_turns := ARRAY(
    SELECT t.turn_id FROM outbox.payment_outbox_turns AS t
    WHERE t.turn_id = ANY (v_turns) AND t.due_at <= v_now
    FOR NO KEY UPDATE SKIP LOCKED);
  IF cardinality(v_turns) = 0 THEN
    PERFORM outbox.remember_scan('outbox.repair_scan', '', v_start, v_now, v_now, outbox.clock() - v_now);
    RETURN;
  END IF;

  FOR outbox_id, participant_id, rail_type, sequence_id, attempt_no, expired_worker_id, lane_paused IN
    SELECT * FROM outbox.requeue_expired(v_turns, p_worker_id, v_now)
  LOOP
    -- On a rail without order the row waits in a lane of its own.
    PERFORM outbox.admit_to_lane(p.participant_id, p.rail_type, p.sequence_id, p.tenant_id, p.sequence_id, p.next_attempt_at)
    FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = repair_expired_leases.outbox_id AND p.solo;
    RETURN NEXT;
  END LOOP;
  PERFORM outbox.settle_lanes(v_turns);
END
$$;
COMMENT ON FUNCTION outbox.repair_expired_leases(integer, text) IS 'Takes expired leases back: each leaves exactly one ZOMBIE_REQUEUE in the ledger, however many repairers run, and its row is due again in a second. A row that comes back the fifth time pauses its lane.';
