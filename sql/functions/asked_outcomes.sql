-- In plpgsql, so that its plan is kept: a function in SQL that is not folded into its caller would be
-- parsed and planned at every call. Not folded, so that the planner keeps the row estimate.
CREATE OR REPLACE FUNCTION outbox.asked_outcomes(
  p_outbox_ids uuid[], p_lease_tokens uuid[], p_states outbox.outbox_attempt_state[], p_rail_references text[], p_rail_codes text[],
  p_error_codes text[], p_error_messages text[], p_latencies_ms integer[], p_retry_delays_seconds integer[], p_counted boolean[]
) RETURNS TABLE (
  outbox_id uuid, lease_token uuid, state outbox.outbox_attempt_state, rail_reference text, rail_code text,
  error_code text, error_message text, latency_ms integer, retry_delay_seconds integer, counted boolean, n bigint)
LANGUAGE plpgsql STABLE ROWS 500
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  -- A lease that is named twice gets its first outcome.
  SELECT DISTINCT ON (a.outbox_id, a.lease_token) a.* FROM unnest(
    p_outbox_ids, p_lease_tokens, p_states, p_rail_references, p_rail_codes, p_error_codes, p_error_messages,
    p_latencies_ms, p_retry_delays_seconds, p_counted) WITH ORDINALITY AS a
    (outbox_id, lease_token, state, rail_reference, rail_code, error_code, error_message, latency_ms, retry_delay_seconds, counted, n)
  ORDER BY a.outbox_id, a.lease_token, a.n;
END
$$;
COMMENT ON FUNCTION outbox.asked_outcomes(uuid[], uuid[], outbox.outbox_attempt_state[], text[], text[], text[], text[], integer[], integer[], boolean[]) IS 'The outcomes of a batch as rows.';
