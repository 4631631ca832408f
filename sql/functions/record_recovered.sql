-- The batch becomes the recoverer's own first, so that its rows take the same way out of pending as every
-- other outcome: in the order of their lane, into the ledger, with the next turn of the lane. A database may
-- have lost more of them than one call records: each call goes on where the one before it ended.
CREATE OR REPLACE FUNCTION outbox.record_recovered(
  p_worker_id text, p_epoch bigint, p_turn_ids bigint[],
  p_found_ids uuid[], p_found_batches bigint[], p_found_references text[], p_register_batches bigint[]
) RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_ids     uuid[] := ARRAY[]::uuid[];
  v_rows    record;
  v_refused record;
BEGIN
  FOR v_rows IN
    SELECT array_agg(r.outbox_id ORDER BY r.n) AS ids, array_agg(r.lease_token ORDER BY r.n) AS tokens, array_agg(r.reference ORDER BY r.n) AS refs,
           array_agg(r.evidence ORDER BY r.n) AS evidence, array_agg(r.words ORDER BY r.n) AS words,
           array_agg('DISPATCHED'::outbox.outbox_attempt_state) AS states
    FROM (
      SELECT p.outbox_id, p.lease_token, f.reference, row_number() OVER (ORDER BY p.participant_id, p.lane_position) AS n,
             CASE WHEN f.batch = ANY (p_register_batches) THEN 'RECOVERED_FROM_REGISTER' ELSE 'RECOVERED_FROM_TAIL' END AS evidence,
             format('recovered; sent by %s in batch %s of shard %s', p.claimed_by, f.batch, p.shard) AS words
      FROM (SELECT DISTINCT ON (u.outbox_id) u.* FROM unnest(p_found_ids, p_found_batches, p_found_references) AS u (outbox_id, batch, reference)
            ORDER BY u.outbox_id, u.batch) AS f
      CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = f.outbox_id OFFSET 0) AS p
      WHERE p.turn_id = ANY (p_turn_ids)) AS r
    GROUP BY (r.n - 1) / 10000 ORDER BY (r.n - 1) / 10000
  LOOP
    UPDATE outbox.payment_outbox_turns AS t SET worker_id = p_worker_id, epoch = p_epoch
    WHERE t.turn_id = ANY (ARRAY(SELECT DISTINCT p.turn_id FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (v_rows.ids)));
    UPDATE outbox.payment_outbox_pending AS p SET claimed_by = p_worker_id WHERE p.outbox_id = ANY (v_rows.ids);
    SELECT d.* INTO v_refused FROM outbox.complete_outbox_batch(
      p_worker_id, v_rows.ids, v_rows.tokens, v_rows.states, v_rows.refs, v_rows.evidence, NULL, v_rows.words) AS d
    WHERE d.refusal IS NOT NULL LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'row % is in the topics, but cannot be recorded as DISPATCHED: %', v_refused.outbox_id, v_refused.refusal
        -- A lane that somebody else has locked contradicts nothing: it is tried again.
        USING ERRCODE = CASE v_refused.refusal WHEN 'P7018' THEN '55P03' ELSE 'P7017' END;
    END IF;
    v_ids := v_ids || v_rows.ids;
  END LOOP;
  RETURN v_ids;
END
$$;
COMMENT ON FUNCTION outbox.record_recovered(text, bigint, bigint[], uuid[], bigint[], text[], bigint[]) IS 'Records the rows of a batch that were found in the topics: who recovered them, from which evidence, where they are.';
