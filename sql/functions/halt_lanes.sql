CREATE OR REPLACE FUNCTION outbox.halt_lanes(p_failed_ids uuid[], p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  WITH halted AS (
    UPDATE outbox.payment_outbox_lanes AS l SET halted_by = f.outbox_id
    FROM outbox.payment_outbox_failures AS f
    JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = f.rail_type AND y.in_force AND y.on_failed = 'halt'
    WHERE f.outbox_id = ANY (p_failed_ids)
      AND l.participant_id = f.participant_id AND l.rail_type = f.rail_type AND l.solo_sequence_id = 0
      -- A row in a lane of its own, from when its rail was without order, stands in nobody's way. Its participant's lane
      -- is not even locked.
      AND NOT EXISTS (SELECT FROM outbox.payment_outbox_lanes AS s WHERE s.participant_id = f.participant_id
                      AND s.rail_type = f.rail_type AND s.solo_sequence_id = f.sequence_id)
    RETURNING l.participant_id, l.rail_type, l.halted_by)
  INSERT INTO outbox.payment_outbox_events (event_id, event_type, occurred_at, actor, reason, participant_id, rail_type, outbox_ids)
  SELECT outbox.uuidv7(), 'LANE_HALTED', outbox.clock(), p_actor, 'a row FAILED on a rail with on_failed = halt', h.participant_id, h.rail_type, ARRAY[h.halted_by]
  FROM halted AS h;
END
$$;
COMMENT ON FUNCTION outbox.halt_lanes(uuid[], text) IS 'Halts the lanes of FAILED rows on rails with on_failed = halt.';
