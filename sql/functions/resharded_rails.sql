-- The shards of every exactly-once rail are locked first, so that nobody claims a batch meanwhile.
CREATE OR REPLACE FUNCTION outbox.resharded_rails(p_policies jsonb) RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_rails text[];
  v_busy  record;
BEGIN
  PERFORM FROM outbox.payment_outbox_shards AS s ORDER BY s.rail_type, s.shard FOR NO KEY UPDATE;
  v_rails := ARRAY(
    SELECT k.rail_type
    FROM (SELECT y.rail_type FROM outbox.payment_outbox_rail_policies AS y WHERE y.in_force
          UNION SELECT jsonb_object_keys(p_policies)) AS k (rail_type)
    LEFT JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = k.rail_type AND y.in_force
    CROSS JOIN LATERAL outbox.rail_policy_defaults(COALESCE(p_policies -> k.rail_type, '{}')) AS n (p)
    WHERE CASE WHEN y.delivery = 'exactly_once' THEN y.shards ELSE 0 END
          <> CASE WHEN n.p ->> 'delivery' = 'exactly_once' THEN (n.p ->> 'shards')::smallint ELSE 0 END);
  SELECT s.rail_type, s.shard, s.halted_at INTO v_busy FROM outbox.payment_outbox_shards AS s
  WHERE s.rail_type = ANY (v_rails) AND (s.halted_at IS NOT NULL OR EXISTS (
    SELECT FROM outbox.payment_outbox_turns AS t WHERE t.rail_type = s.rail_type AND t.shard = s.shard AND t.batch IS NOT NULL))
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'shard % of rail_type % %: delivery and shards cannot be changed now', v_busy.shard, quote_literal(v_busy.rail_type),
        CASE WHEN v_busy.halted_at IS NULL THEN 'has a batch under way' ELSE 'is halted' END
      USING ERRCODE = 'P7015', HINT = 'Stop the workers of this rail in good order; where one died, start another, which finds out what became of its batch.';
  END IF;
  RETURN v_rails;
END
$$;
COMMENT ON FUNCTION outbox.resharded_rails(jsonb) IS 'The rails whose lanes stand elsewhere under these policies. P7015 while a shard of such a rail has a batch under way or is halted.';
