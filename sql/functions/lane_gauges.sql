-- Place by place (a rail, or a shard of it), so that each count is a range of the index that ends after 1,000 lanes.
CREATE OR REPLACE FUNCTION outbox.lane_gauges()
RETURNS TABLE (due bigint, delayed bigint, blocked bigint, leased bigint, expired bigint, paused bigint, halted bigint, unroutable bigint)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET jit = off
AS $$
  WITH c AS MATERIALIZED (SELECT outbox.clock() AS now),
  places AS MATERIALIZED (
    SELECT r.rail_type, r.shard, EXISTS (
      SELECT FROM outbox.payment_outbox_workers AS w
      WHERE w.live_until > (SELECT c.now FROM c) AND w.tenant_id IS NULL AND r.rail_type = ANY (w.rail_types)) AS is_run
    FROM outbox.places_of(outbox.due_rails()) AS r),
  due AS MATERIALIZED (
    SELECT r.rail_type, r.is_run, t.tenant_id FROM places AS r CROSS JOIN LATERAL (
      SELECT t.tenant_id FROM outbox.payment_outbox_turns AS t
      WHERE t.worker_id IS NULL AND t.rail_type = r.rail_type AND t.shard = r.shard AND t.due_at <= (SELECT c.now FROM c) LIMIT 1000) AS t),
  later AS MATERIALIZED (
    SELECT t.lane_id, t.head_position FROM places AS r CROSS JOIN LATERAL (
      SELECT t.lane_id, t.head_position FROM outbox.payment_outbox_turns AS t
      WHERE t.worker_id IS NULL AND t.rail_type = r.rail_type AND t.shard = r.shard AND t.due_at > (SELECT c.now FROM c) ORDER BY t.due_at LIMIT 1000) AS t
    LIMIT 1000),
  -- Its head is not due, but a row behind it is: looked for among the participant's next few rows.
  blocked AS (
    SELECT count(*) AS n FROM later AS t CROSS JOIN LATERAL (
      SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id AND l.solo_sequence_id = 0 OFFSET 0) AS l
    WHERE EXISTS (
      SELECT FROM (
        SELECT p.rail_type, p.solo, p.next_attempt_at FROM outbox.payment_outbox_pending AS p
        WHERE p.participant_id = l.participant_id
          AND p.lane_position >= CASE WHEN l.rail_type = 'dlq' THEN -9223372036854775808 ELSE t.head_position END
        ORDER BY p.lane_position LIMIT 20) AS p
      WHERE p.rail_type = l.rail_type AND NOT p.solo AND p.next_attempt_at <= (SELECT c.now FROM c))),
  -- A batch waits for an owner of its shard, and its lanes are not due before.
  ownerless AS (
    SELECT count(*) AS n FROM (
      SELECT DISTINCT s.rail_type FROM outbox.payment_outbox_shards AS s
      WHERE NOT EXISTS (
        SELECT FROM outbox.payment_outbox_workers AS w
        WHERE w.live_until > (SELECT c.now FROM c) AND w.tenant_id IS NULL AND s.rail_type = ANY (w.rail_types))) AS r
    CROSS JOIN LATERAL (
      SELECT FROM outbox.payment_outbox_turns AS t WHERE t.rail_type = r.rail_type AND t.batch IS NOT NULL LIMIT 1000) AS t),
  -- With its participant's lane, a row in a lane of its own waits too.
  stopped AS MATERIALIZED (
    SELECT s.halted_by IS NOT NULL AS is_halted FROM (
      SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.paused_at IS NOT NULL OR l.halted_by IS NOT NULL LIMIT 1000) AS s
    CROSS JOIN LATERAL (
      SELECT FROM outbox.payment_outbox_lanes AS l
      WHERE l.participant_id = s.participant_id AND l.rail_type = s.rail_type AND (l.lane_id = s.lane_id OR s.paused_at IS NOT NULL) LIMIT 1000) AS l)
  SELECT LEAST((SELECT count(*) FROM due), 1000), (SELECT count(*) FROM later) - b.n, b.n,
         (SELECT count(*) FROM (
            SELECT FROM outbox.payment_outbox_turns AS t WHERE t.worker_id IS NOT NULL AND t.due_at > (SELECT c.now FROM c) LIMIT 1000) AS t),
         (SELECT count(*) FROM (
            SELECT FROM outbox.payment_outbox_turns AS t WHERE t.worker_id IS NOT NULL AND t.due_at <= (SELECT c.now FROM c) LIMIT 1000) AS t),
         LEAST((SELECT count(*) FROM stopped AS s WHERE NOT s.is_halted), 1000), LEAST((SELECT count(*) FROM stopped AS s WHERE s.is_halted), 1000),
         LEAST((SELECT count(*) FROM due AS d WHERE NOT d.is_run AND NOT EXISTS (
            SELECT FROM outbox.payment_outbox_workers AS w
            WHERE w.live_until > (SELECT c.now FROM c) AND d.rail_type = ANY (w.rail_types) AND w.tenant_id = d.tenant_id)) + o.n, 1000)
  FROM blocked AS b, ownerless AS o
$$;
COMMENT ON FUNCTION outbox.lane_gauges() IS 'How many lanes are due, delayed, blocked (the head is not due, a row behind it is), leased, leased beyond their time, paused, halted, and due, or in a batch, on a rail that no live worker runs for them; each up to 1,000.';
