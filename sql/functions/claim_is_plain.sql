-- Folded into its callers' expressions, so it is one SELECT, and neither definer nor pinned.
CREATE OR REPLACE FUNCTION outbox.claim_is_plain(
  p_batch_size integer, p_worker_id text, p_lease_seconds integer, p_rail_types text[], p_lane_rows integer
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT COALESCE(
    p_batch_size BETWEEN 1 AND 10000 AND (p_lane_rows IS NULL OR p_lane_rows BETWEEN 1 AND 10000)
    AND p_worker_id ~ '^[^[:space:]]' AND octet_length(p_worker_id) <= 255 AND p_lease_seconds BETWEEN 1 AND 3600
    AND (p_rail_types IS NULL OR cardinality(p_rail_types) = 1 AND p_rail_types[1] ~ '^[a-z][a-z0-9_.-]*$' AND octet_length(p_rail_types[1]) <= 63)
    AND current_setting('transaction_isolation') = 'read committed', false)
$$;
COMMENT ON FUNCTION outbox.claim_is_plain(integer, text, integer, text[], integer) IS 'A quick look at the arguments of a claim: true means that nothing is wrong with them, false that each has to be looked at.';
