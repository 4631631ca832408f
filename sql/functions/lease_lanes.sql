-- The contiguous due prefix of each lane: a row that waits holds up what is behind it.
-- OFFSET 0: one look-up for each lane, whatever the planner thinks. To join whole tables would walk
-- over all that an old snapshot keeps from being cleaned away.
CREATE OR REPLACE FUNCTION outbox.lease_lanes(
  p_turn_ids bigint[], p_lane_rows integer, p_rows integer, p_worker_id text, p_now timestamptz, p_expires_at timestamptz,
  p_batch bigint, p_epoch bigint,
  OUT leased_ids uuid[], OUT lanes bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  -- The number of its next turn goes with a lane from the beginning: to look it up again for each row would compare each
  -- row with each lane.
  WITH turns AS MATERIALIZED (
    SELECT t.*, nextval('outbox.payment_outbox_turns_turn_id_seq') AS next_turn
    FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (p_turn_ids)),
  ahead AS (
    SELECT t.turn_id, t.next_turn, t.lane_id, t.due_at, t.rail_type, t.tenant_id, t.shard, r.tuple, r.lane_position,
           bool_and(r.next_attempt_at <= p_now AND r.lease_token IS NULL)
             OVER (PARTITION BY t.turn_id ORDER BY r.lane_position) AS free
    FROM turns AS t
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id OFFSET 0) AS l
    CROSS JOIN LATERAL (
      SELECT * FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, t.head_position) AS r
      ORDER BY r.lane_position LIMIT p_lane_rows) AS r
    WHERE l.solo_sequence_id = 0 OR NOT outbox.main_lane_is_paused(l.participant_id, l.rail_type)),
  taken AS MATERIALIZED (
    SELECT a.* FROM ahead AS a WHERE a.free
    ORDER BY a.due_at, a.turn_id, a.lane_position LIMIT p_rows),
  waited AS (
    DELETE FROM outbox.payment_outbox_turns AS t
    WHERE t.turn_id = ANY (ARRAY(SELECT k.turn_id FROM taken AS k))),
  leased AS (
    INSERT INTO outbox.payment_outbox_turns AS t (turn_id, lane_id, rail_type, tenant_id, due_at, head_position, last_position, worker_id, shard, batch, epoch)
    OVERRIDING SYSTEM VALUE
    SELECT k.next_turn, k.lane_id, min(k.rail_type), (array_agg(k.tenant_id))[1], p_expires_at, min(k.lane_position), max(k.lane_position), p_worker_id,
           min(k.shard), p_batch, p_epoch
    FROM taken AS k GROUP BY k.next_turn, k.lane_id
    RETURNING t.turn_id),
  held AS (
    UPDATE outbox.payment_outbox_pending AS p
    SET claimed_by = p_worker_id, claimed_at = p_now, lease_token = gen_random_uuid(),
        lease_expires_at = p_expires_at, turn_id = k.next_turn,
        shard = CASE WHEN p_batch IS NOT NULL THEN k.shard END, batch = p_batch
    FROM taken AS k
    WHERE p.ctid = k.tuple
    RETURNING p.outbox_id, k.due_at, k.turn_id, k.lane_position)
  SELECT COALESCE(array_agg(h.outbox_id ORDER BY h.due_at, h.turn_id, h.lane_position), '{}'), (SELECT count(*) FROM leased)
  INTO leased_ids, lanes FROM held AS h;
END
$$;
COMMENT ON FUNCTION outbox.lease_lanes(bigint[], integer, integer, text, timestamptz, timestamptz, bigint, bigint) IS 'Leases the due rows at the head of locked lanes, and returns their ids and how many lanes gave any.';
