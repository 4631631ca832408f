CREATE OR REPLACE FUNCTION outbox.log_batch_event(p_event_type text, p_worker_id text, p_outbox_ids uuid[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO outbox.payment_outbox_events (event_id, event_type, occurred_at, actor, outbox_ids)
  SELECT outbox.uuidv7(), p_event_type, outbox.clock(), p_worker_id, p_outbox_ids
  WHERE cardinality(p_outbox_ids) > 0 AND (SELECT s.batch_events FROM outbox.payment_outbox_settings AS s);
END
$$;
COMMENT ON FUNCTION outbox.log_batch_event(text, text, uuid[]) IS 'One event for a whole batch, unless batch_events is switched off.';
