CREATE OR REPLACE FUNCTION outbox.await_lanes(p_turn_ids bigint[], p_locked bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
BEGIN
  RETURN ARRAY(
    SELECT l.lane_id FROM outbox.payment_outbox_lanes AS l
    WHERE l.lane_id = ANY (ARRAY(SELECT t.lane_id FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (p_turn_ids)))
      AND l.lane_id <> ALL (p_locked)
    ORDER BY l.participant_id, l.rail_type, l.solo_sequence_id
    FOR NO KEY UPDATE);
EXCEPTION WHEN lock_not_available THEN
  RETURN ARRAY[]::bigint[];
END
$$;
COMMENT ON FUNCTION outbox.await_lanes(bigint[], bigint[]) IS 'Locks the lanes of turns that are not locked yet, if their holders let go within a moment: another outcome of the lane, not an open transaction.';
