-- Ends the turns of locked lanes that have nothing leased any more, and says when each lane is to
-- be looked at next. Lanes with rows still in flight keep their turn. Says whether a claim would find
-- more now: in one of these lanes, or in their shards, which can take another batch.
-- OFFSET 0: one look-up for each lane, whatever the planner thinks. To join whole tables would walk
-- over all that an old snapshot keeps from being cleaned away.
CREATE OR REPLACE FUNCTION outbox.settle_lanes(p_turn_ids bigint[]) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now  timestamptz := outbox.clock();
  v_over outbox.ended_turn[];
BEGIN
  v_over := ARRAY(
    SELECT ROW(t.turn_id, t.lane_id, t.rail_type, t.tenant_id, l.shard, t.head_position, t.empty_looks, h.lane_position, h.next_attempt_at,
               l.paused_at IS NULL AND l.halted_by IS NULL
                 AND (l.solo_sequence_id = 0 OR NOT outbox.main_lane_stays_paused(l.participant_id, l.rail_type)))::outbox.ended_turn
    FROM outbox.payment_outbox_turns AS t
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id OFFSET 0) AS l
    LEFT JOIN LATERAL (
      SELECT r.lane_position, r.next_attempt_at
      FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, t.head_position) AS r
      ORDER BY r.lane_position LIMIT 1) AS h ON true
    WHERE t.turn_id = ANY (p_turn_ids) AND NOT EXISTS (
      SELECT FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, t.head_position) AS r
      WHERE r.turn_id = t.turn_id AND r.lane_position <= t.last_position OFFSET 0));
  IF cardinality(v_over) = 0 THEN
    RETURN false;
  END IF;
  DELETE FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (ARRAY(SELECT o.turn_id FROM unnest(v_over) AS o));
  INSERT INTO outbox.payment_outbox_turns (lane_id, rail_type, tenant_id, shard, due_at, head_position)
  SELECT o.lane_id, o.rail_type, o.tenant_id, o.shard, GREATEST(o.next_attempt_at, v_now), o.lane_position
  FROM unnest(v_over) AS o WHERE o.runs AND o.lane_position IS NOT NULL;
  PERFORM outbox.retire_lanes(array_agg(o.lane_id), array_agg(o.head_position), array_agg(o.empty_looks::integer))
  FROM unnest(v_over) AS o WHERE o.runs AND o.lane_position IS NULL HAVING count(*) > 0;
  RETURN EXISTS (
    SELECT FROM unnest(v_over) AS o
    WHERE o.runs AND o.next_attempt_at <= v_now
       OR o.shard >= 0 AND EXISTS (SELECT FROM outbox.payment_outbox_turns AS t
            WHERE t.worker_id IS NULL AND t.rail_type = o.rail_type AND t.shard = o.shard AND t.due_at <= v_now OFFSET 0));
END
$$;
COMMENT ON FUNCTION outbox.settle_lanes(bigint[]) IS 'Says when lanes are next due after their lease has ended, and retires the empty ones. Says whether a claim would find more now, in these lanes or their shards.';
