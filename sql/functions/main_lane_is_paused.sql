CREATE OR REPLACE FUNCTION outbox.main_lane_is_paused(p_participant_id text, p_rail_type text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (SELECT FROM outbox.payment_outbox_lanes AS l WHERE l.participant_id = p_participant_id
                 AND l.rail_type = p_rail_type AND l.solo_sequence_id = 0 AND l.paused_at IS NOT NULL)
$$;
COMMENT ON FUNCTION outbox.main_lane_is_paused(text, text) IS 'Rows in lanes of their own, on a rail without order, follow the pause of their participant''s lane.';
