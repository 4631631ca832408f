CREATE OR REPLACE FUNCTION outbox.check_outcomes(
  p_outbox_ids uuid[], p_lease_tokens uuid[], p_states outbox.outbox_attempt_state[], p_optional_lengths integer[],
  p_latencies_ms integer[], p_retry_delays_seconds integer[]
) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  v_rows integer := cardinality(p_outbox_ids);
BEGIN
  IF p_outbox_ids IS NULL OR p_lease_tokens IS NULL OR p_states IS NULL THEN
    RAISE EXCEPTION 'p_outbox_ids, p_lease_tokens and p_states must not be null' USING ERRCODE = 'P7116';
  END IF;
  IF v_rows NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION 'p_outbox_ids has % rows: it must have between 1 and 10000', v_rows USING ERRCODE = 'P7110';
  END IF;
  IF cardinality(p_lease_tokens) <> v_rows OR cardinality(p_states) <> v_rows
     OR NOT v_rows = ALL (p_optional_lengths) OR array_ndims(p_outbox_ids) > 1 OR array_ndims(p_lease_tokens) > 1 THEN
    RAISE EXCEPTION 'the arrays of a batch must have one dimension and the same length: p_outbox_ids has %', v_rows USING ERRCODE = 'P7116';
  END IF;
  IF array_position(p_outbox_ids, NULL) IS NOT NULL OR array_position(p_lease_tokens, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'p_outbox_id and p_lease_token must not be null' USING ERRCODE = 'P7116';
  END IF;
  IF NOT 0 <= ALL (p_latencies_ms) THEN
    RAISE EXCEPTION 'p_latency_ms must not be negative' USING ERRCODE = 'P7117';
  END IF;
  IF NOT (0 <= ALL (p_retry_delays_seconds) AND 604800 >= ALL (p_retry_delays_seconds)) THEN
    PERFORM outbox.check_delay_seconds('p_retry_delay_seconds', d.seconds)
    FROM unnest(p_retry_delays_seconds) AS d (seconds) WHERE d.seconds NOT BETWEEN 0 AND 604800 LIMIT 1;
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.check_outcomes(uuid[], uuid[], outbox.outbox_attempt_state[], integer[], integer[], integer[]) IS 'Refuses a batch of outcomes that makes no sense as a whole.';
