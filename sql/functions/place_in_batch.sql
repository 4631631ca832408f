-- Nested loops are off because the planner cannot know how long the arrays are.
CREATE OR REPLACE FUNCTION outbox.place_in_batch(p_rows outbox.payment_outbox_pending[], p_ids uuid[], p_numbers bigint[])
RETURNS TABLE (row_no integer, outbox_id uuid, sequence_id bigint)
LANGUAGE plpgsql IMMUTABLE
SET enable_nestloop = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT r.sequence_id::integer, n.outbox_id, n.sequence_id
    FROM unnest(p_rows) AS r JOIN unnest(p_ids, p_numbers) AS n (outbox_id, sequence_id) ON n.outbox_id = r.outbox_id;
END
$$;
COMMENT ON FUNCTION outbox.place_in_batch(outbox.payment_outbox_pending[], uuid[], bigint[]) IS 'Which row of the batch got which number.';
