-- Not for a look alone: whoever takes a lane's turn away because of this pause must be sure that a resumption
-- will give it another. It locks this lane before it lists the others, so it lists what was seen paused under
-- our lock. While it, or anybody else, has locked the lane, nothing is sure: then the turn is left.
CREATE OR REPLACE FUNCTION outbox.main_lane_stays_paused(p_participant_id text, p_rail_type text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM FROM outbox.payment_outbox_lanes AS l
  WHERE l.participant_id = p_participant_id AND l.rail_type = p_rail_type AND l.solo_sequence_id = 0 AND l.paused_at IS NOT NULL
  FOR SHARE SKIP LOCKED;
  RETURN FOUND;
END
$$;
COMMENT ON FUNCTION outbox.main_lane_stays_paused(text, text) IS 'Whether a participant''s lane is paused and cannot be resumed before the caller has committed.';
