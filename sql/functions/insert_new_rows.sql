CREATE OR REPLACE FUNCTION outbox.insert_new_rows(p_rows outbox.payment_outbox_pending[], OUT new_ids uuid[], OUT numbers bigint[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_first jsonb;
  v_head  record;
BEGIN
  -- Numbers first, sorted by participant: these row locks are the mutex of everything below.
  SELECT jsonb_object_agg(s.participant_id, outbox.bump_participant_outbox_seq(s.participant_id, s.tenant_id, s.rows))
  INTO v_first
  FROM (SELECT r.participant_id, r.tenant_id, count(*)::integer AS rows
        FROM unnest(p_rows) AS r GROUP BY r.participant_id, r.tenant_id ORDER BY r.participant_id) AS s;

  WITH fresh AS (
    INSERT INTO outbox.payment_outbox_keys AS k (instruction_id, idempotency_key, outbox_id)
    SELECT DISTINCT ON (r.instruction_id, r.idempotency_key) r.instruction_id, r.idempotency_key, r.outbox_id
    FROM unnest(p_rows) AS r ORDER BY r.instruction_id, r.idempotency_key, r.sequence_id
    ON CONFLICT DO NOTHING
    RETURNING k.outbox_id)
  SELECT COALESCE(array_agg(f.outbox_id), '{}') INTO new_ids FROM fresh AS f;

  -- In the order of the keys above, so that the two arrays belong together.
  numbers := ARRAY(
    SELECT (v_first ->> r.participant_id)::bigint - 1 + row_number() OVER (PARTITION BY r.participant_id ORDER BY r.sequence_id)
    FROM unnest(p_rows) AS r JOIN unnest(new_ids) WITH ORDINALITY AS n (outbox_id, n) USING (outbox_id) ORDER BY n.n);
  FOR v_head IN WITH inserted AS (
    INSERT INTO outbox.payment_outbox_pending AS p (
      outbox_id, tenant_id, instruction_id, participant_id, sequence_id, lane_position, idempotency_key, rail_type,
      payload, headers, next_attempt_at, created_at, solo)
    SELECT r.outbox_id, r.tenant_id, r.instruction_id, r.participant_id, n.sequence_id, n.sequence_id,
           r.idempotency_key, r.rail_type, r.payload, r.headers, r.next_attempt_at, r.created_at, r.solo
    FROM unnest(p_rows) AS r JOIN unnest(new_ids, numbers) AS n (outbox_id, sequence_id) ON n.outbox_id = r.outbox_id
    ORDER BY r.sequence_id
    RETURNING p.participant_id, p.rail_type, p.tenant_id, p.sequence_id, p.next_attempt_at,
              CASE WHEN p.solo THEN p.sequence_id ELSE 0 END AS solo_sequence_id)
    SELECT DISTINCT ON (i.participant_id, i.rail_type, i.solo_sequence_id) i.*
    FROM inserted AS i ORDER BY i.participant_id, i.rail_type, i.solo_sequence_id, i.sequence_id
  LOOP
    PERFORM outbox.admit_to_lane(v_head.participant_id, v_head.rail_type, v_head.solo_sequence_id, v_head.tenant_id,
      v_head.sequence_id, v_head.next_attempt_at);
  END LOOP;

  -- The numbers of rows that were there already are handed back: they are the highest ones taken.
  PERFORM outbox.bump_participant_outbox_seq(u.participant_id, u.tenant_id, -u.unused)
  FROM (SELECT r.participant_id, r.tenant_id, count(*) FILTER (WHERE n.outbox_id IS NULL)::integer AS unused
        FROM unnest(p_rows) AS r LEFT JOIN unnest(new_ids) AS n (outbox_id) USING (outbox_id)
        GROUP BY r.participant_id, r.tenant_id) AS u
  WHERE u.unused > 0;
END
$$;
COMMENT ON FUNCTION outbox.insert_new_rows(outbox.payment_outbox_pending[]) IS 'Numbers and inserts the rows whose key is not used yet, and returns their ids and numbers.';
