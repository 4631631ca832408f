-- Cheap however deep the backlog is: nothing is counted beyond 100,000 rows, or 1,000 lanes.
CREATE OR REPLACE FUNCTION outbox.outbox_gauges(p_rail_types text[])
RETURNS TABLE (pending_depth bigint, depth_is_exact boolean, oldest_pending_at timestamptz, dlq_depth bigint, expired_leases bigint,
               due_lanes bigint, unroutable_lanes bigint, halted_shards bigint)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
  WITH counted AS (
    SELECT count(*) AS n FROM (SELECT FROM outbox.payment_outbox_pending LIMIT 100001) AS p)
  SELECT CASE WHEN c.n <= 100000 THEN c.n
              ELSE GREATEST(c.n, (SELECT k.reltuples::bigint FROM pg_class AS k WHERE k.oid = 'outbox.payment_outbox_pending'::regclass)) END,
         c.n <= 100000,
         -- Ids are in the order of time.
         (SELECT p.created_at FROM outbox.payment_outbox_pending AS p ORDER BY p.outbox_id LIMIT 1),
         (SELECT count(*) FROM outbox.payment_outbox_failures AS f WHERE f.resolution IS NULL),
         (SELECT count(*) FROM outbox.payment_outbox_turns AS t WHERE t.worker_id IS NOT NULL AND t.due_at <= (SELECT outbox.clock())),
         (SELECT count(*) FROM (
            SELECT FROM outbox.places_of(p_rail_types) AS r
            JOIN outbox.payment_outbox_turns AS t
              ON t.rail_type = r.rail_type AND t.shard = r.shard AND t.worker_id IS NULL AND t.due_at <= (SELECT outbox.clock()) LIMIT 1000) AS d),
         (SELECT count(*) FROM (
            SELECT FROM outbox.places_of(outbox.due_rails()) AS r
            JOIN outbox.payment_outbox_turns AS t
              ON t.rail_type = r.rail_type AND t.shard = r.shard AND t.worker_id IS NULL AND t.due_at <= (SELECT outbox.clock())
            WHERE r.rail_type <> ALL (p_rail_types) LIMIT 1000) AS u),
         (SELECT count(*) FROM outbox.payment_outbox_shards AS s WHERE s.halted_at IS NOT NULL)
  FROM counted AS c
$$;
COMMENT ON FUNCTION outbox.outbox_gauges(text[]) IS 'What the gauges of a worker with these rails show: depth (an estimate beyond 100,000 rows), oldest row, open failures, and in lanes: expired leases that wait for repair, what is due for its rails, and what is due for others; and how many shards are halted.';
