-- Folded into its callers' expressions, so it is one SELECT, and neither definer nor pinned.
CREATE OR REPLACE FUNCTION outbox.enqueue_is_plain(
  p_instruction_id text, p_participant_id text, p_idempotency_key text, p_rail_type text,
  p_payload jsonb, p_headers jsonb, p_not_before timestamptz
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT COALESCE(
    p_instruction_id ~ '^[^[:cntrl:] ][^[:cntrl:]]*$' AND p_participant_id ~ '^[^[:cntrl:] ][^[:cntrl:]]*$'
    AND p_idempotency_key ~ '^[^[:cntrl:] ][^[:cntrl:]]*$'
    AND octet_length(p_instruction_id) + octet_length(p_participant_id) + octet_length(p_idempotency_key) <= 512
    AND p_rail_type ~ '^[a-z][a-z0-9_.-]*$' AND octet_length(p_rail_type) <= 63 AND p_rail_type <> 'dlq'
    AND jsonb_typeof(p_payload) = 'object' AND p_headers IS NULL AND p_not_before IS NULL, false)
$$;
COMMENT ON FUNCTION outbox.enqueue_is_plain(text, text, text, text, jsonb, jsonb, timestamptz) IS 'A quick look at a row that is to be enqueued: true means that nothing is wrong with it, false that enqueue_fault has to look closer.';
