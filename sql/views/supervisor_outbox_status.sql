CREATE OR REPLACE VIEW outbox.supervisor_outbox_status AS
WITH pending AS (
  SELECT p.rail_type, p.tenant_id, count(*) AS depth, min(p.created_at) AS oldest,
         count(*) FILTER (WHERE p.lease_token IS NULL AND p.next_attempt_at <= clock_timestamp()) AS due_unleased,
         count(*) FILTER (WHERE p.lease_token IS NOT NULL) AS leased,
         count(*) FILTER (WHERE p.lease_expires_at <= clock_timestamp()) AS expired
  FROM outbox.payment_outbox_pending AS p GROUP BY p.rail_type, p.tenant_id),
failed AS (
  SELECT f.rail_type, f.tenant_id, count(*) AS open FROM outbox.payment_outbox_failures AS f
  WHERE f.resolution IS NULL GROUP BY f.rail_type, f.tenant_id),
letters AS (
  SELECT o.rail_type, p.tenant_id, count(*) AS waiting
  FROM outbox.payment_outbox_pending AS p JOIN outbox.payment_outbox_failures AS o ON o.outbox_id = p.dead_letter_of
  GROUP BY o.rail_type, p.tenant_id),
groups AS (
  SELECT rail_type, tenant_id FROM pending UNION SELECT rail_type, tenant_id FROM failed UNION SELECT rail_type, tenant_id FROM letters)
SELECT g.rail_type, g.tenant_id,
       COALESCE(p.depth, 0) AS depth,
       EXTRACT(epoch FROM clock_timestamp() - p.oldest) AS oldest_age_seconds,
       COALESCE(p.due_unleased, 0) AS due_unleased_count,
       COALESCE(p.leased, 0) AS leased_count,
       COALESCE(p.expired, 0) AS expired_lease_count,
       COALESCE(f.open, 0) AS dlq_count,
       COALESCE(d.waiting, 0) AS dlq_undelivered_count
FROM groups AS g
LEFT JOIN pending AS p ON p.rail_type = g.rail_type AND p.tenant_id IS NOT DISTINCT FROM g.tenant_id
LEFT JOIN failed AS f ON f.rail_type = g.rail_type AND f.tenant_id IS NOT DISTINCT FROM g.tenant_id
LEFT JOIN letters AS d ON d.rail_type = g.rail_type AND d.tenant_id IS NOT DISTINCT FROM g.tenant_id;
COMMENT ON VIEW outbox.supervisor_outbox_status IS 'By rail and tenant: how much is pending, how old, due, leased, expired, and in the DLQ (FAILED and neither replayed nor dismissed; of those, how many dead letters wait undelivered).';
