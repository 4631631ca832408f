-- Nested loops are off because the planner cannot know how long the arrays are; sequential scans,
-- because a plan that was made for a small table is kept when the table has grown.
CREATE OR REPLACE FUNCTION outbox.enqueue_payment_outbox_batch(p_rows jsonb, p_report_errors boolean DEFAULT false)
RETURNS TABLE (row_no integer, outbox_id uuid, sequence_id bigint, is_new boolean, error_code text, error_message text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_now    timestamptz := outbox.clock();
  v_faults jsonb;
  v_rows   outbox.payment_outbox_pending[];
  v_new    record;
BEGIN
  IF p_rows IS NULL OR jsonb_typeof(p_rows) <> 'array' THEN
    RAISE EXCEPTION 'p_rows must be a JSON array of rows, not %', COALESCE(jsonb_typeof(p_rows), 'null') USING ERRCODE = 'P7108';
  END IF;

  v_faults := outbox.enqueue_batch_faults(p_rows);
  IF v_faults <> '{}' AND NOT COALESCE(p_report_errors, false) THEN
    PERFORM outbox.raise_first_fault(v_faults);
  END IF;
  -- Until a row has its number, sequence_id is its place in the batch.
  v_rows := ARRAY(
    SELECT ROW(outbox.uuidv7(), (r.j ->> 'tenant_id')::uuid, r.j ->> 'instruction_id', r.j ->> 'participant_id', r.n, r.n,
               r.j ->> 'idempotency_key', r.j ->> 'rail_type', r.j -> 'payload', COALESCE(NULLIF(r.j -> 'headers', 'null'), '{}'), 0,
               GREATEST((r.j ->> 'not_before')::timestamptz, v_now), v_now, NULL, NULL, NULL, NULL, NULL,
               COALESCE((r.j ->> 'not_before')::timestamptz > v_now AND o.rail_type IS NOT NULL, false), NULL, NULL, NULL, NULL)::outbox.payment_outbox_pending
    FROM jsonb_array_elements(p_rows) WITH ORDINALITY AS r (j, n)
    LEFT JOIN outbox.payment_outbox_rail_policies AS o ON o.rail_type = r.j ->> 'rail_type' AND o.in_force AND o.ordering = 'none'
    WHERE NOT v_faults ? r.n::text
    ORDER BY r.n);

  v_new := outbox.insert_new_rows(v_rows);
  RETURN QUERY
    SELECT r.row_no, r.outbox_id, r.sequence_id, r.is_new, r.error_code, r.error_message
    FROM outbox.describe_enqueued(v_rows, v_new.new_ids, v_new.numbers, COALESCE(p_report_errors, false)) AS r
    UNION ALL
    SELECT f.key::integer, NULL, NULL, false, f.value ->> 0, f.value ->> 1 FROM jsonb_each(v_faults) AS f
    ORDER BY 1;
END
$$;
COMMENT ON FUNCTION outbox.enqueue_payment_outbox_batch(jsonb, boolean) IS 'Enqueues a JSON array of rows, any number of them, with the promises of enqueue_payment_outbox. A bad row fails the call; with p_report_errors it is returned with its SQLSTATE and the others are enqueued.';
