CREATE OR REPLACE FUNCTION outbox.waiting_rails(p_rail_types text[], p_tenant_id uuid DEFAULT NULL) RETURNS TABLE (rail_type text, is_due boolean)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 10
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $$
  WITH c AS MATERIALIZED (SELECT outbox.clock() AS now)
  SELECT DISTINCT ON (r.rail_type) r.rail_type, t.due_at <= (SELECT c.now FROM c)
  FROM outbox.places_of(p_rail_types) AS r
  CROSS JOIN LATERAL (
    SELECT t.due_at FROM outbox.payment_outbox_turns AS t
    WHERE t.worker_id IS NULL AND t.rail_type = r.rail_type AND t.shard = r.shard AND t.due_at <= (SELECT c.now + interval '5 minutes' FROM c)
      AND (p_tenant_id IS NULL OR t.tenant_id = p_tenant_id)
    ORDER BY t.due_at LIMIT 1) AS t
  ORDER BY r.rail_type, t.due_at
$$;
COMMENT ON FUNCTION outbox.waiting_rails(text[], uuid) IS 'Which of a worker''s rails have a lane waiting that is due, or will be within five minutes: as long as an unavailable destination may keep rows away.';
