-- Nobody is granted this: it runs inside enqueue and replay, with their rights and their search_path.
-- To switch both once more for every row would cost a twentieth of an enqueue.
CREATE OR REPLACE FUNCTION outbox.bump_participant_outbox_seq(
  p_participant_id text, p_tenant_id uuid DEFAULT NULL, p_count integer DEFAULT 1
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
  v_next   bigint;
  v_tenant uuid;
BEGIN
  -- The row stays locked until the caller commits: whoever has the lower number commits first.
  UPDATE outbox.participant_outbox_sequences AS s SET next_sequence_id = s.next_sequence_id + p_count
  WHERE s.participant_id = p_participant_id
  RETURNING s.next_sequence_id, s.tenant_id INTO v_next, v_tenant;
  IF NOT FOUND THEN
    -- A new participant, unless somebody else is making it just now.
    INSERT INTO outbox.participant_outbox_sequences AS s (participant_id, tenant_id, next_sequence_id)
    VALUES (p_participant_id, p_tenant_id, 1 + p_count)
    ON CONFLICT (participant_id) DO UPDATE SET next_sequence_id = s.next_sequence_id + p_count
    RETURNING s.next_sequence_id, s.tenant_id INTO v_next, v_tenant;
  END IF;
  IF v_tenant IS DISTINCT FROM p_tenant_id THEN
    RAISE EXCEPTION 'participant_id % belongs to %, not to %', quote_literal(p_participant_id),
        COALESCE('tenant ' || v_tenant, 'no tenant'), COALESCE('tenant ' || p_tenant_id, 'no tenant')
      USING ERRCODE = 'P7005', HINT = 'A participant belongs to the tenant that first enqueued for it.';
  END IF;
  RETURN v_next - p_count;
END
$$;
COMMENT ON FUNCTION outbox.bump_participant_outbox_seq(text, uuid, integer) IS 'Takes the next p_count numbers of a participant and returns the first; a negative count hands back the highest ones taken in the same transaction. Commit order equals sequence order, and a rollback leaves no gap.';
