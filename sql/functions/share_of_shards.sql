CREATE OR REPLACE FUNCTION outbox.share_of_shards(p_worker_id text, p_rail_type text, p_now timestamptz, OUT most integer, OUT surplus integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_shards  integer;
  v_workers integer;
  v_own     integer;
  v_fewest  integer;
BEGIN
  SELECT y.shards INTO v_shards FROM outbox.payment_outbox_rail_policies AS y
  WHERE y.rail_type = p_rail_type AND y.in_force AND y.delivery = 'exactly_once';
  -- Whoever has not been heard of for three seconds takes no share: its shards are somebody else's soon.
  SELECT count(*), min(o.n), min(o.n) FILTER (WHERE o.worker_id = p_worker_id) INTO v_workers, v_fewest, v_own FROM (
    SELECT w.worker_id, (SELECT count(*) FROM outbox.payment_outbox_shards AS s WHERE s.rail_type = p_rail_type AND s.owner = w.worker_id) AS n
    FROM outbox.payment_outbox_workers AS w
    WHERE p_rail_type = ANY (w.rail_types) AND w.tenant_id IS NULL AND (w.seen_at > p_now - interval '3 seconds' OR w.worker_id = p_worker_id)) AS o;
  v_workers := GREATEST(v_workers, 1);
  v_own := COALESCE(v_own, 0);
  most := ceil(v_shards::numeric / v_workers);
  surplus := GREATEST(v_own - most, CASE WHEN v_own > v_shards / v_workers AND v_fewest < v_shards / v_workers THEN 1 ELSE 0 END);
END
$$;
COMMENT ON FUNCTION outbox.share_of_shards(text, text, timestamptz) IS 'How many shards a worker may take when the live ones share them evenly, and how many it has too many.';
