-- A rail has one way to deliver at a time: a worker that has not noticed a change of policy yet gets
-- nothing of it.
CREATE OR REPLACE FUNCTION outbox.claimable_rails(p_rail_types text[], p_sharded boolean) RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN ARRAY(
    SELECT r.rail_type FROM unnest(p_rail_types) AS r (rail_type)
    WHERE p_sharded = EXISTS (
      SELECT FROM outbox.payment_outbox_rail_policies AS y
      WHERE y.rail_type = r.rail_type AND y.in_force AND y.delivery = 'exactly_once'));
END
$$;
COMMENT ON FUNCTION outbox.claimable_rails(text[], boolean) IS 'Of these rails, those that are delivered in batches of shards, or those that are not.';
