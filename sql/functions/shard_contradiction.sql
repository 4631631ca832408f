CREATE OR REPLACE FUNCTION outbox.shard_contradiction(
  p_rail_type text, p_found_ids uuid[], p_found_batches bigint[], p_register_batches bigint[], p_register_rows integer[]
) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_wrong record;
BEGIN
  SELECT r.batch, r.rows, count(f.outbox_id) AS found INTO v_wrong
  FROM unnest(p_register_batches, p_register_rows) AS r (batch, rows)
  LEFT JOIN unnest(p_found_ids, p_found_batches) AS f (outbox_id, batch) ON f.batch = r.batch
  GROUP BY r.batch, r.rows HAVING count(f.outbox_id) <> r.rows LIMIT 1;
  IF FOUND THEN
    RETURN format('the register says that batch %s was committed with %s rows, but the topics have %s of them', v_wrong.batch, v_wrong.rows, v_wrong.found);
  END IF;
  -- A row that is there, and one before it in its lane that is not.
  SELECT f.outbox_id, e.outbox_id AS earlier INTO v_wrong
  FROM unnest(p_found_ids) AS f (outbox_id)
  JOIN outbox.payment_outbox_pending AS p ON p.outbox_id = f.outbox_id AND p.rail_type = p_rail_type AND NOT p.solo
  JOIN LATERAL outbox.lane_rows(p.participant_id, p.rail_type, 0, 0) AS e ON e.lane_position < p.lane_position AND e.outbox_id <> ALL (p_found_ids)
  JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = p_rail_type AND y.in_force AND y.ordering = 'strict'
  LIMIT 1;
  IF FOUND THEN
    RETURN format('row %s is in the topics, but row %s, which comes before it in its lane, is not', v_wrong.outbox_id, v_wrong.earlier);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.shard_contradiction(text, uuid[], bigint[], bigint[], integer[]) IS 'Why what was found cannot be what happened, or null: the register and the topics tell the same, and of each lane the first rows are there.';
