CREATE OR REPLACE FUNCTION outbox.describe_enqueued(p_rows outbox.payment_outbox_pending[], p_new uuid[], p_numbers bigint[], p_report_errors boolean)
RETURNS TABLE (row_no integer, outbox_id uuid, sequence_id bigint, is_new boolean, error_code text, error_message text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = on
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT n.row_no, n.outbox_id, n.sequence_id, true, NULL::text, NULL::text
    FROM outbox.place_in_batch(p_rows, p_new, p_numbers) AS n;
  IF cardinality(p_new) = cardinality(p_rows) THEN
    RETURN;
  END IF;

  RETURN QUERY
    WITH used AS MATERIALIZED (
      SELECT r.sequence_id AS n, r.participant_id, r.tenant_id, r.rail_type, r.payload, r.instruction_id, r.idempotency_key,
             k.outbox_id, outbox.find_enqueued(k.outbox_id) AS was
      FROM unnest(p_rows) AS r
      -- A key that upkeep has just forgotten is missing here: find_enqueued says so, and the row is not passed over.
      LEFT JOIN outbox.payment_outbox_keys AS k ON k.instruction_id = r.instruction_id AND k.idempotency_key = r.idempotency_key
      WHERE k.outbox_id IS DISTINCT FROM r.outbox_id),
    compared AS (
      SELECT u.*, (u.was).participant_id <> u.participant_id AS other_participant, (u.was).tenant_id IS DISTINCT FROM u.tenant_id AS other_tenant,
             (u.was).rail_type <> u.rail_type AS other_rail, (u.was).payload::text <> u.payload::text AS other_payload
      FROM used AS u),
    judged AS (
      SELECT c.*, CASE WHEN c.other_participant OR c.other_tenant OR c.other_rail OR c.other_payload THEN
               outbox.conflict_message(c.instruction_id, c.idempotency_key, c.other_participant, c.other_tenant, c.other_rail, c.other_payload) END AS conflict
      FROM compared AS c)
    SELECT j.n::integer, CASE WHEN j.conflict IS NULL THEN j.outbox_id END, CASE WHEN j.conflict IS NULL THEN (j.was).sequence_id END,
           false, CASE WHEN j.conflict IS NOT NULL THEN outbox.report_conflict(j.n, j.conflict, p_report_errors) END, j.conflict
    FROM judged AS j;
END
$$;
COMMENT ON FUNCTION outbox.describe_enqueued(outbox.payment_outbox_pending[], uuid[], bigint[], boolean) IS 'What became of each row of a batch: new, there already, or a conflict.';
