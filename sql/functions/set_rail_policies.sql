CREATE OR REPLACE FUNCTION outbox.set_rail_policies(p_policies jsonb, p_actor text, p_reason text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_version   integer;
  v_resharded text[];
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason), outbox.check_policies_input(p_policies);
  -- One at a time: two new versions at once would leave it open which of them is in force.
  UPDATE outbox.payment_outbox_settings AS s SET policies_version = s.policies_version + 1 RETURNING s.policies_version INTO v_version;
  v_resharded := outbox.resharded_rails(p_policies);
  UPDATE outbox.payment_outbox_rail_policies SET in_force = false WHERE in_force;
  INSERT INTO outbox.payment_outbox_rail_policies (version, rail_type, ordering, on_failed, delivery, dlq, shards, in_force, set_by, set_at)
  SELECT v_version, r.key, d.p ->> 'ordering', d.p ->> 'on_failed', d.p ->> 'delivery', d.p ->> 'dlq', (d.p ->> 'shards')::smallint, true, p_actor, outbox.clock()
  FROM jsonb_each(p_policies) AS r CROSS JOIN LATERAL outbox.rail_policy_defaults(r.value) AS d (p);
  PERFORM outbox.reshard_rail(r.rail_type) FROM unnest(v_resharded) AS r (rail_type);
  PERFORM outbox.log_event('POLICIES_SET', p_actor, p_reason, NULL, NULL, '{}', jsonb_build_object('version', v_version, 'policies', p_policies));
  RETURN v_version;
END
$$;
COMMENT ON FUNCTION outbox.set_rail_policies(jsonb, text, text) IS 'Puts a new version of all rail policies in force: {rail: {ordering, on_failed, delivery, dlq, shards}}. A rail that is not named has the defaults.';
