CREATE OR REPLACE FUNCTION outbox.log_event(
  p_event_type text, p_actor text, p_reason text, p_participant_id text, p_rail_type text,
  p_outbox_ids uuid[] DEFAULT '{}', p_details jsonb DEFAULT NULL
) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO outbox.payment_outbox_events (event_id, event_type, occurred_at, actor, reason, participant_id, rail_type, outbox_ids, details)
  VALUES (outbox.uuidv7(), p_event_type, outbox.clock(), p_actor, p_reason, p_participant_id, p_rail_type, p_outbox_ids, p_details)
$$;
COMMENT ON FUNCTION outbox.log_event(text, text, text, text, text, uuid[], jsonb) IS 'One event about a lane, with who and why.';
