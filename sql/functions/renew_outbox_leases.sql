CREATE OR REPLACE FUNCTION outbox.renew_outbox_leases(p_worker_id text, p_outbox_ids uuid[], p_lease_tokens uuid[], p_lease_seconds integer)
RETURNS TABLE (outbox_id uuid, lease_expires_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER ROWS 500
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_turns   bigint[];
  v_busy    uuid[];
  v_expires timestamptz;
BEGIN
  PERFORM outbox.check_worker(p_worker_id), outbox.check_lease_seconds(p_lease_seconds);
  SELECT l.turn_ids, l.busy_ids INTO v_turns, v_busy FROM outbox.lock_leased_lanes(p_worker_id, p_outbox_ids) AS l;
  v_expires := outbox.clock() + p_lease_seconds * interval '1 second';

  RETURN QUERY
  WITH held AS MATERIALIZED (
    SELECT h.*, bool_or(h.asked) OVER (PARTITION BY h.turn_id) AS lane_asked
    FROM outbox.held_rows(v_turns, p_worker_id, p_outbox_ids, p_lease_tokens, outbox.clock()) AS h),
  -- A lane is leased as a whole, so all of its rows get the same new time. Never a shorter one.
  renewed AS (
    UPDATE outbox.payment_outbox_pending AS p SET lease_expires_at = GREATEST(p.lease_expires_at, v_expires)
    FROM held AS h WHERE p.ctid = h.tuple AND h.lane_asked
    RETURNING p.outbox_id, p.lease_expires_at, h.asked),
  later AS (
    UPDATE outbox.payment_outbox_turns AS t SET due_at = GREATEST(t.due_at, v_expires)
    WHERE t.turn_id = ANY (ARRAY(SELECT DISTINCT h.turn_id FROM held AS h WHERE h.lane_asked)))
  SELECT r.outbox_id, r.lease_expires_at FROM renewed AS r WHERE r.asked;
  RETURN QUERY SELECT b, NULL::timestamptz FROM unnest(v_busy) AS b;
END
$$;
COMMENT ON FUNCTION outbox.renew_outbox_leases(text, uuid[], uuid[], integer) IS 'A longer lease for rows still owned, with the rest of their lanes. Returns the rows that were renewed, and without a time those whose lane somebody else has locked: ask again. The others are lost.';
