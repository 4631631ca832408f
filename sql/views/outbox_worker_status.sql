CREATE OR REPLACE VIEW outbox.outbox_worker_status AS
SELECT t.worker_id, string_agg(DISTINCT t.rail_type, ',' ORDER BY t.rail_type) AS rail_types, count(*) AS leased_lanes,
       count(*) FILTER (WHERE t.due_at <= clock_timestamp()) AS expired_lanes, min(t.due_at) AS first_expiry_at
FROM outbox.payment_outbox_turns AS t WHERE t.worker_id IS NOT NULL
GROUP BY t.worker_id;
COMMENT ON VIEW outbox.outbox_worker_status IS 'Workers that hold leases: how many lanes, on which rails, and when the first lease expires. A worker without a lease is not known to the database.';
