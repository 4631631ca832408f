-- Lane first, then its rows: the lock order of the whole contract. A lane that somebody else holds for
-- long, an operator with an open transaction perhaps, must not hold up the outcomes of the others.
CREATE OR REPLACE FUNCTION outbox.lock_leased_lanes(p_worker_id text, p_outbox_ids uuid[], OUT turn_ids bigint[], OUT busy_ids uuid[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_turns bigint[];
  v_batch boolean;
  v_lanes bigint[];
BEGIN
  SELECT COALESCE(array_agg(DISTINCT p.turn_id), '{}'), bool_or(p.batch IS NOT NULL) INTO v_turns, v_batch
  FROM outbox.payment_outbox_pending AS p
  WHERE p.outbox_id = ANY (p_outbox_ids) AND p.claimed_by = p_worker_id;
  IF v_batch THEN
    v_turns := outbox.current_turns(p_worker_id, v_turns);
  END IF;
  v_lanes := ARRAY(
    SELECT l.lane_id FROM outbox.payment_outbox_lanes AS l
    WHERE l.lane_id = ANY (ARRAY(SELECT t.lane_id FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (v_turns)))
    FOR NO KEY UPDATE SKIP LOCKED);
  turn_ids := v_turns;
  busy_ids := '{}';
  IF cardinality(v_lanes) < cardinality(v_turns) THEN
    v_lanes := v_lanes || outbox.await_lanes(v_turns, v_lanes);
    turn_ids := ARRAY(SELECT t.turn_id FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (v_turns) AND t.lane_id = ANY (v_lanes));
    busy_ids := ARRAY(
      SELECT p.outbox_id FROM outbox.payment_outbox_pending AS p
      WHERE p.outbox_id = ANY (p_outbox_ids) AND p.claimed_by = p_worker_id AND p.turn_id = ANY (v_turns) AND p.turn_id <> ALL (turn_ids)
        AND EXISTS (SELECT FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = p.turn_id));
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.lock_leased_lanes(text, uuid[]) IS 'Locks the lanes in which a worker holds any of these rows, and returns their turns, and the rows whose lanes somebody else has locked for long.';
