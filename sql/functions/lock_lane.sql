CREATE OR REPLACE FUNCTION outbox.lock_lane(p_participant_id text, p_rail_type text) RETURNS outbox.payment_outbox_lanes
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_lane outbox.payment_outbox_lanes;
BEGIN
  SELECT * INTO v_lane FROM outbox.payment_outbox_lanes AS l
  WHERE l.participant_id = p_participant_id AND l.rail_type = p_rail_type AND l.solo_sequence_id = 0
  FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'participant_id % has no lane on rail_type %', COALESCE(quote_literal(p_participant_id), 'null'), COALESCE(quote_literal(p_rail_type), 'null')
      USING ERRCODE = 'P7008', HINT = 'A lane exists while it has pending rows, is paused or is halted.';
  END IF;
  RETURN v_lane;
END
$$;
COMMENT ON FUNCTION outbox.lock_lane(text, text) IS 'Locks a lane for an operator''s act; P7008 where there is none.';
