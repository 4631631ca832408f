-- Cheap however deep the backlog is: nothing is counted beyond 100,000 rows, or 1,000 lanes.
CREATE OR REPLACE FUNCTION outbox.outbox_gauges()
RETURNS TABLE (pending_depth bigint, depth_is_exact boolean, oldest_pending_age_seconds float8, dlq_depth bigint, dlq_undelivered_age_seconds float8,
               expired_leases bigint, due_lanes bigint, delayed_lanes bigint, blocked_lanes bigint, leased_lanes bigint, paused_lanes bigint,
               halted_lanes bigint, unroutable_lanes bigint, workers bigint, default_partition_rows bigint, dead_tuples bigint, halted_shards bigint)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
  WITH pending AS (
    SELECT 'outbox.payment_outbox_pending'::regclass AS oid,
           -- Large payloads are kept elsewhere: a table of more than a gigabyte has more rows than are counted, or is full of dead ones.
           CASE WHEN pg_relation_size('outbox.payment_outbox_pending') > 1073741824 THEN 0 ELSE 100001 END AS most),
  counted AS (
    SELECT n.counted, p.most > 0 AND n.counted < p.most AS is_exact,
           COALESCE(NULLIF(pg_stat_get_live_tuples(p.oid), 0), (SELECT k.reltuples::bigint FROM pg_class AS k WHERE k.oid = p.oid)) AS estimate
    FROM pending AS p CROSS JOIN (
      SELECT count(*) AS counted FROM (SELECT FROM outbox.payment_outbox_pending LIMIT (SELECT p.most FROM pending AS p)) AS r) AS n)
  SELECT CASE WHEN c.is_exact THEN c.counted ELSE GREATEST(c.counted, c.estimate) END, c.is_exact,
         -- Ids are in the order of time.
         (SELECT GREATEST(EXTRACT(epoch FROM outbox.clock() - p.created_at), 0) FROM outbox.payment_outbox_pending AS p ORDER BY p.outbox_id LIMIT 1),
         (SELECT count(*) FROM (SELECT FROM outbox.payment_outbox_failures AS f WHERE f.resolution IS NULL LIMIT 100000) AS f),
         (SELECT GREATEST(EXTRACT(epoch FROM outbox.clock() - p.created_at), 0) FROM outbox.payment_outbox_pending AS p
          WHERE p.dead_letter_of IS NOT NULL ORDER BY p.outbox_id LIMIT 1),
         l.expired, l.due, l.delayed, l.blocked, l.leased, l.paused, l.halted, l.unroutable,
         (SELECT count(*) FROM outbox.payment_outbox_workers AS w WHERE w.live_until > outbox.clock()),
         (SELECT count(*) FROM (
            (SELECT FROM outbox.payment_outbox_attempts_default LIMIT 1000) UNION ALL (SELECT FROM outbox.payment_outbox_events_default LIMIT 1000)) AS d),
         pg_stat_get_dead_tuples(p.oid) + pg_stat_get_dead_tuples('outbox.payment_outbox_turns'::regclass)
           + pg_stat_get_dead_tuples('outbox.payment_outbox_lanes'::regclass),
         (SELECT count(*) FROM outbox.payment_outbox_shards AS s WHERE s.halted_at IS NOT NULL)
  FROM pending AS p CROSS JOIN counted AS c CROSS JOIN outbox.lane_gauges() AS l
$$;
COMMENT ON FUNCTION outbox.outbox_gauges() IS 'How the outbox is doing, in numbers: depth (an estimate beyond 100,000 rows), ages (null where there is nothing), open failures (up to 100,000), lanes by what they wait for, live workers, rows in default partitions, dead tuples of the tables that change most, halted shards.';
