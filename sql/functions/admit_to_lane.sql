-- Makes sure that a lane exists for a row that the caller has just inserted. An existing lane is
-- held FOR KEY SHARE until the caller commits, so that nobody deletes it as empty meanwhile; that
-- lock neither waits for a claim nor hides the lane from one.
CREATE OR REPLACE FUNCTION outbox.admit_to_lane(
  p_participant_id text, p_rail_type text, p_solo_sequence_id bigint, p_tenant_id uuid,
  p_head_position bigint, p_due_at timestamptz
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_lane_id bigint;
  v_shard   smallint;
BEGIN
  LOOP
    PERFORM FROM outbox.payment_outbox_lanes AS l
    WHERE l.participant_id = p_participant_id AND l.rail_type = p_rail_type
      AND l.solo_sequence_id = p_solo_sequence_id AND l.tenant_id IS NOT DISTINCT FROM p_tenant_id
    FOR KEY SHARE;
    EXIT WHEN FOUND;

    v_shard := outbox.shard_of(p_participant_id, p_rail_type);
    INSERT INTO outbox.payment_outbox_lanes (participant_id, rail_type, solo_sequence_id, tenant_id, shard)
    VALUES (p_participant_id, p_rail_type, p_solo_sequence_id, p_tenant_id, v_shard)
    ON CONFLICT DO NOTHING
    RETURNING lane_id INTO v_lane_id;
    IF FOUND THEN
      INSERT INTO outbox.payment_outbox_turns (lane_id, rail_type, tenant_id, shard, due_at, head_position)
      VALUES (v_lane_id, p_rail_type, p_tenant_id, v_shard, p_due_at, p_head_position);
      RETURN true;
    END IF;
    -- It was paused before anybody knew its participant, so it has no tenant yet. Nothing of it was ever leased:
    -- no outcome waits for this lock.
    UPDATE outbox.payment_outbox_lanes AS l SET tenant_id = p_tenant_id
    WHERE l.participant_id = p_participant_id AND l.rail_type = p_rail_type AND l.solo_sequence_id = p_solo_sequence_id
      AND l.tenant_id IS DISTINCT FROM p_tenant_id
    RETURNING l.lane_id INTO v_lane_id;
    IF FOUND THEN
      UPDATE outbox.payment_outbox_turns AS t SET tenant_id = p_tenant_id WHERE t.lane_id = v_lane_id;
    END IF;
    -- Or somebody made the lane between the two statements: look again.
  END LOOP;
  RETURN false;
END
$$;
COMMENT ON FUNCTION outbox.admit_to_lane(text, text, bigint, uuid, bigint, timestamptz) IS 'Gives a new row its lane and, where the lane is new, its turn. Returns whether the lane is new.';
