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
  -- A row that is there, and one before it in its lane that is not. OFFSET 0 and EXCEPT, because a failover may have
  -- lost much: the planner takes arrays for short, and would compare each row with each.
  WITH reached AS MATERIALIZED (
    SELECT p.participant_id, max(p.lane_position) AS last_position
    FROM unnest(p_found_ids) AS f (outbox_id)
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = f.outbox_id OFFSET 0) AS p
    JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = p.rail_type AND y.in_force AND y.ordering = 'strict'
    WHERE p.rail_type = p_rail_type AND NOT p.solo
    GROUP BY p.participant_id),
  missing AS MATERIALIZED (
    SELECT e.outbox_id FROM reached AS r
    CROSS JOIN LATERAL outbox.lane_rows(r.participant_id, p_rail_type, 0, 0) AS e WHERE e.lane_position < r.last_position
    EXCEPT SELECT f.outbox_id FROM unnest(p_found_ids) AS f (outbox_id) LIMIT 1)
  SELECT l.outbox_id, e.outbox_id AS earlier INTO v_wrong
  FROM missing AS m
  JOIN outbox.payment_outbox_pending AS e ON e.outbox_id = m.outbox_id
  JOIN reached AS r ON r.participant_id = e.participant_id
  JOIN outbox.payment_outbox_pending AS l ON l.participant_id = r.participant_id AND l.lane_position = r.last_position;
  IF FOUND THEN
    RETURN format('row %s is in the topics, but row %s, which comes before it in its lane, is not', v_wrong.outbox_id, v_wrong.earlier);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.shard_contradiction(text, uuid[], bigint[], bigint[], integer[]) IS 'Why what was found cannot be what happened, or null: the register and the topics tell the same, and of each lane the first rows are there.';
