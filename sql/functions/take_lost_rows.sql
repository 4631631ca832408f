-- A database that was restored, or failed over to a standby that lagged, has forgotten a claim that was
-- already committed to the topics. Such rows are leased to whoever found them, to be recorded like the rest.
CREATE OR REPLACE FUNCTION outbox.take_lost_rows(
  p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint, p_batch bigint, p_found_ids uuid[]
) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now   timestamptz := outbox.clock();
  v_lost  uuid[] := ARRAY(
    SELECT p.outbox_id FROM outbox.payment_outbox_pending AS p
    WHERE p.outbox_id = ANY (p_found_ids) AND p.rail_type = p_rail_type AND p.turn_id IS NULL);
  v_lanes bigint[];
  v_turns bigint[];
BEGIN
  IF cardinality(v_lost) = 0 THEN
    RETURN ARRAY[]::bigint[];
  END IF;
  v_lanes := ARRAY(
    SELECT l.lane_id FROM outbox.payment_outbox_lanes AS l
    WHERE (l.participant_id, l.solo_sequence_id) IN (
            SELECT p.participant_id, CASE WHEN p.solo THEN p.sequence_id ELSE 0 END FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (v_lost))
      AND l.rail_type = p_rail_type
    ORDER BY l.participant_id, l.rail_type, l.solo_sequence_id FOR NO KEY UPDATE);
  DELETE FROM outbox.payment_outbox_turns AS t WHERE t.lane_id = ANY (v_lanes) AND t.worker_id IS NULL;
  WITH leased AS (
    INSERT INTO outbox.payment_outbox_turns AS t (lane_id, rail_type, tenant_id, due_at, head_position, last_position, worker_id, shard, batch, epoch)
    SELECT l.lane_id, l.rail_type, l.tenant_id, 'infinity',
           -- Not the first lost row: on a rail without order others may wait before it.
           (SELECT r.lane_position FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, 0) AS r ORDER BY r.lane_position LIMIT 1),
           max(p.lane_position), p_worker_id, p_shard, p_batch, p_epoch
    FROM outbox.payment_outbox_lanes AS l
    JOIN outbox.payment_outbox_pending AS p ON p.participant_id = l.participant_id AND p.rail_type = l.rail_type
      AND l.solo_sequence_id = CASE WHEN p.solo THEN p.sequence_id ELSE 0 END
    WHERE l.lane_id = ANY (v_lanes) AND p.outbox_id = ANY (v_lost)
      AND NOT EXISTS (SELECT FROM outbox.payment_outbox_turns AS o WHERE o.lane_id = l.lane_id AND o.worker_id IS NOT NULL)
    GROUP BY l.lane_id
    RETURNING t.turn_id, t.lane_id),
  taken AS (
    UPDATE outbox.payment_outbox_pending AS p
    SET claimed_by = p_worker_id, claimed_at = v_now, lease_token = gen_random_uuid(), lease_expires_at = 'infinity',
        turn_id = h.turn_id, shard = p_shard, batch = p_batch
    FROM leased AS h JOIN outbox.payment_outbox_lanes AS l ON l.lane_id = h.lane_id
    WHERE p.outbox_id = ANY (v_lost) AND p.participant_id = l.participant_id AND p.rail_type = l.rail_type
      AND l.solo_sequence_id = CASE WHEN p.solo THEN p.sequence_id ELSE 0 END)
  SELECT array_agg(h.turn_id) INTO v_turns FROM leased AS h;
  RETURN COALESCE(v_turns, ARRAY[]::bigint[]);
END
$$;
COMMENT ON FUNCTION outbox.take_lost_rows(text, text, smallint, bigint, bigint, uuid[]) IS 'Leases rows that are in the topics although the database does not know that they were ever claimed, and returns their turns.';
