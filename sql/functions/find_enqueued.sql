-- Pending first, then the ledger: a row that is just being completed is then seen in one of them.
CREATE OR REPLACE FUNCTION outbox.find_enqueued(
  p_outbox_id uuid,
  OUT participant_id text, OUT tenant_id uuid, OUT rail_type text, OUT payload jsonb, OUT sequence_id bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  SELECT p.participant_id, p.tenant_id, p.rail_type, p.payload, p.sequence_id
  INTO participant_id, tenant_id, rail_type, payload, sequence_id
  FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = p_outbox_id;
  IF NOT FOUND THEN
    SELECT a.participant_id, a.tenant_id, a.rail_type, a.payload, a.sequence_id
    INTO participant_id, tenant_id, rail_type, payload, sequence_id
    FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_outbox_id
    ORDER BY a.attempt_no LIMIT 1;
  END IF;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'row % was archived while it was looked up', p_outbox_id
      USING ERRCODE = '40001', HINT = 'Run the transaction again.';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.find_enqueued(uuid) IS 'What was enqueued under an outbox_id, pending or finished.';
