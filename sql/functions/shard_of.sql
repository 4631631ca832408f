-- A hash that is the same in every version of PostgreSQL, and of which two bytes are enough: there are at
-- most 256 shards.
CREATE OR REPLACE FUNCTION outbox.shard_of(p_participant_id text, p_rail_type text) RETURNS smallint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_shards smallint;
  v_hash   bytea;
BEGIN
  SELECT y.shards INTO v_shards FROM outbox.payment_outbox_rail_policies AS y
  WHERE y.rail_type = p_rail_type AND y.in_force AND y.delivery = 'exactly_once';
  IF v_shards IS NULL THEN
    RETURN -1;
  END IF;
  v_hash := sha256(convert_to(p_participant_id, 'UTF8'));
  RETURN (get_byte(v_hash, 0) * 256 + get_byte(v_hash, 1)) % v_shards;
END
$$;
COMMENT ON FUNCTION outbox.shard_of(text, text) IS 'The shard of a participant''s lanes on a rail; -1 unless it is an exactly-once rail.';
