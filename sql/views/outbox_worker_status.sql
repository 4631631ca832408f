CREATE OR REPLACE VIEW outbox.outbox_worker_status AS
WITH held AS (
  SELECT t.worker_id, string_agg(DISTINCT t.rail_type, ',' ORDER BY t.rail_type) AS rail_types, count(*) AS leased_lanes,
         count(*) FILTER (WHERE COALESCE(s.lease_expires_at, t.due_at) <= clock_timestamp()) AS expired_lanes,
         min(COALESCE(s.lease_expires_at, t.due_at)) AS first_expiry_at
  FROM outbox.payment_outbox_turns AS t
  -- A batch is leased as long as its shard is.
  LEFT JOIN outbox.payment_outbox_shards AS s ON s.rail_type = t.rail_type AND s.shard = t.shard AND t.batch IS NOT NULL
  WHERE t.worker_id IS NOT NULL
  GROUP BY t.worker_id)
SELECT COALESCE(w.worker_id, h.worker_id) AS worker_id, COALESCE(array_to_string(w.rail_types, ','), h.rail_types) AS rail_types,
       COALESCE(h.leased_lanes, 0) AS leased_lanes, COALESCE(h.expired_lanes, 0) AS expired_lanes, h.first_expiry_at,
       w.tenant_id, w.started_at, w.seen_at, COALESCE(w.live_until > clock_timestamp(), false) AS live
FROM outbox.payment_outbox_workers AS w FULL JOIN held AS h ON h.worker_id = w.worker_id;
COMMENT ON VIEW outbox.outbox_worker_status IS 'Workers that have been seen lately or hold leases: their rails and tenant, whether they are live, how many lanes they hold and when the first lease expires.';
