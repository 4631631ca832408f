-- A dead letter inherits the number of its row and bumps nothing: a producer's open transaction
-- holds the bump lock, and completion never waits for a producer.
CREATE OR REPLACE FUNCTION outbox.bury_failed(p_outbox_ids uuid[], p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_failed uuid[];
  v_now    timestamptz := outbox.clock();
BEGIN
  WITH fresh AS (
    INSERT INTO outbox.payment_outbox_failures AS f (outbox_id, tenant_id, participant_id, rail_type, sequence_id, failed_at, error_code)
    SELECT a.outbox_id, a.tenant_id, a.participant_id, a.rail_type, a.sequence_id, a.completed_at, a.error_code
    FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = ANY (p_outbox_ids) AND a.state = 'FAILED'
    ON CONFLICT DO NOTHING
    RETURNING f.outbox_id)
  SELECT array_agg(f.outbox_id) INTO v_failed FROM fresh AS f;
  IF v_failed IS NULL THEN
    RETURN;
  END IF;

  PERFORM outbox.halt_lanes(v_failed, p_actor);
  PERFORM outbox.write_dead_letter(a.outbox_id, v_now, COALESCE(y.dlq, 'topic'))
  FROM outbox.payment_outbox_attempts AS a
  LEFT JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = a.rail_type AND y.in_force
  WHERE a.outbox_id = ANY (v_failed) AND a.state = 'FAILED'
  ORDER BY a.participant_id, a.sequence_id;
END
$$;
COMMENT ON FUNCTION outbox.bury_failed(uuid[], text) IS 'For each row that has just FAILED: its entry among the failures, its dead letter and, where the rail says so, its halted lane.';
