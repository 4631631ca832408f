-- Lane first, then its rows; lanes sorted by participant: the lock order of the whole contract.
CREATE OR REPLACE FUNCTION outbox.lock_leased_lanes(p_worker_id text, p_outbox_ids uuid[]) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_turns bigint[] := ARRAY(
    SELECT DISTINCT p.turn_id FROM outbox.payment_outbox_pending AS p
    WHERE p.outbox_id = ANY (p_outbox_ids) AND p.claimed_by = p_worker_id);
BEGIN
  PERFORM FROM outbox.payment_outbox_lanes AS l
  WHERE l.lane_id = ANY (ARRAY(SELECT t.lane_id FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (v_turns)))
  ORDER BY l.participant_id, l.rail_type, l.solo_sequence_id
  FOR NO KEY UPDATE;
  RETURN v_turns;
END
$$;
COMMENT ON FUNCTION outbox.lock_leased_lanes(text, uuid[]) IS 'Locks the lanes in which a worker holds any of these rows, and returns their turns.';
