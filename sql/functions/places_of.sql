CREATE OR REPLACE FUNCTION outbox.places_of(p_rail_types text[]) RETURNS TABLE (rail_type text, shard smallint)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 10
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT r.rail_type, g.shard::smallint
    FROM unnest(p_rail_types) AS r (rail_type)
    LEFT JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = r.rail_type AND y.in_force AND y.delivery = 'exactly_once'
    CROSS JOIN LATERAL generate_series(-1, COALESCE(y.shards, 0) - 1) AS g (shard);
END
$$;
COMMENT ON FUNCTION outbox.places_of(text[]) IS 'Where the turns of these rails stand in their index.';
