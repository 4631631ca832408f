-- Where every outcome is a delivery that was recorded there is nothing of this to do.
CREATE OR REPLACE FUNCTION outbox.settle_the_rest(
  p_worker_id text, p_now timestamptz, p_outbox_ids uuid[], p_states outbox.outbox_attempt_state[], p_judged outbox.judged_outcome[], p_entered uuid[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_failed uuid[];
BEGIN
  UPDATE outbox.payment_outbox_pending AS p
  SET claimed_by = NULL, claimed_at = NULL, lease_token = NULL, lease_expires_at = NULL, turn_id = NULL, shard = NULL, batch = NULL,
      attempt_count = CASE j.verdict WHEN 'record' THEN GREATEST(p.attempt_count, j.attempt_no) ELSE p.attempt_count END,
      next_attempt_at = CASE j.verdict WHEN 'record' THEN p_now + j.retry_delay ELSE p.next_attempt_at END,
      solo = p.solo OR j.unordered
  FROM unnest(p_judged) AS j
  WHERE p.ctid = j.tuple AND (j.verdict = 'give back' OR (j.verdict = 'record' AND j.state = 'RETRYABLE'));

  INSERT INTO outbox.payment_outbox_events (event_id, event_type, occurred_at, actor, outbox_ids)
  SELECT outbox.uuidv7(), 'TERMINAL_BLOCKED', p_now, p_worker_id, array_agg(j.outbox_id)
  FROM unnest(p_judged) AS j
  WHERE j.verdict IN ('record', 'blocked') AND NOT EXISTS (SELECT FROM unnest(p_entered) AS e (outbox_id) WHERE e.outbox_id = j.outbox_id)
  HAVING count(*) > 0;

  IF p_states && ARRAY['RETRYABLE', 'FAILED']::outbox.outbox_attempt_state[] THEN
    v_failed := ARRAY(SELECT j.outbox_id FROM unnest(p_judged) AS j WHERE j.verdict = 'record' AND j.state = 'FAILED');
    IF cardinality(v_failed) > 0 THEN
      PERFORM outbox.bury_failed(v_failed, p_worker_id);
    END IF;
    PERFORM outbox.admit_to_lane(p.participant_id, p.rail_type, p.sequence_id, p.tenant_id, p.sequence_id, p.next_attempt_at)
    FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (p_outbox_ids) AND p.solo AND p.turn_id IS NULL;
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.settle_the_rest(text, timestamptz, uuid[], outbox.outbox_attempt_state[], outbox.judged_outcome[], uuid[]) IS 'What has to be done about outcomes that are not plain deliveries: rows that stay pending, second terminal outcomes, dead letters.';
