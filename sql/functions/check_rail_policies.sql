CREATE OR REPLACE FUNCTION outbox.check_rail_policies(p_policies jsonb) RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_other record;
BEGIN
  PERFORM outbox.check_policies_input(p_policies);
  SELECT r.key AS rail, k.key, k.value AS configured, f.p ->> k.key AS in_force INTO v_other
  FROM jsonb_each(p_policies) AS r
  CROSS JOIN LATERAL outbox.rail_policy_defaults(r.value) AS d (p)
  CROSS JOIN LATERAL jsonb_each_text(d.p) AS k
  CROSS JOIN LATERAL outbox.rail_policy_defaults(COALESCE(
    (SELECT jsonb_build_object('ordering', y.ordering, 'on_failed', y.on_failed, 'delivery', y.delivery, 'dlq', y.dlq, 'shards', y.shards)
     FROM outbox.payment_outbox_rail_policies AS y WHERE y.rail_type = r.key AND y.in_force), '{}')) AS f (p)
  WHERE k.value <> f.p ->> k.key
  ORDER BY r.key, k.key LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'rails.%.% is % in this configuration, but % is in force', v_other.rail, v_other.key, quote_literal(v_other.configured), quote_literal(v_other.in_force)
      USING ERRCODE = 'P7012', HINT = 'Put the new policies in force with set_rail_policies, or correct the configuration.';
  END IF;
  RETURN (SELECT s.policies_version FROM outbox.payment_outbox_settings AS s);
END
$$;
COMMENT ON FUNCTION outbox.check_rail_policies(jsonb) IS 'Refuses (P7012) a worker whose policies are not those in force, with both values; returns the version.';
