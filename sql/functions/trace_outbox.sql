CREATE OR REPLACE FUNCTION outbox.trace_outbox(p_kind text, p_id text, p_limit integer)
RETURNS TABLE (occurred_at timestamptz, what text, outbox_id uuid, participant_id text, rail_type text, sequence_id bigint, attempt_no integer,
               actor text, error_code text, rail_code text, rail_reference text, latency_ms integer, detail text, related_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 20
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_ids    uuid[] := outbox.trace_ids(p_kind, p_id, p_limit);
  v_people text[];
  v_rails  text[];
  v_first  timestamptz;
  v_last   timestamptz;
  v_now    timestamptz := outbox.clock();
BEGIN
  PERFORM outbox.check_batch_size('p_limit', p_limit);
  SELECT array_agg(DISTINCT r.participant_id), array_agg(DISTINCT r.rail_type), min(r.created_at), max(r.ended_at)
  INTO v_people, v_rails, v_first, v_last FROM (
    SELECT p.participant_id, p.rail_type, p.created_at, 'infinity'::timestamptz AS ended_at FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (v_ids)
    UNION ALL SELECT a.participant_id, a.rail_type, a.created_at, a.completed_at FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = ANY (v_ids)) AS r;
  RETURN QUERY
    SELECT * FROM (
      -- The newest of them, where there are too many.
      SELECT * FROM (
        SELECT * FROM outbox.trace_of_rows(v_ids)
        UNION ALL
        -- What was done to these rows, or to their lane while they were in it.
        SELECT e.occurred_at, lower(replace(e.event_type, '_', ' ')), e.outbox_ids[1], e.participant_id, e.rail_type, NULL::bigint, NULL::integer,
               e.actor, NULL, NULL, NULL, NULL::integer, e.reason, e.outbox_ids[2]
        FROM outbox.payment_outbox_events AS e
        WHERE e.participant_id = ANY (v_people) AND e.rail_type = ANY (v_rails) AND e.occurred_at >= v_first
          AND (e.outbox_ids && v_ids OR (e.outbox_ids = '{}' AND e.occurred_at <= v_last))
        UNION ALL
        -- Leases are events of batches, found by the time of the rows' life alone: too much to read for a participant.
        SELECT e.occurred_at, CASE e.event_type WHEN 'LEASE_CLAIMED' THEN 'leased' ELSE lower(replace(e.event_type, '_', ' ')) END,
               i.outbox_id, NULL, NULL, NULL::bigint, NULL::integer, e.actor, NULL, NULL, NULL, NULL::integer, NULL, NULL::uuid
        FROM outbox.payment_outbox_events AS e JOIN unnest(v_ids) AS i (outbox_id) ON i.outbox_id = ANY (e.outbox_ids)
        WHERE p_kind <> 'participant' AND e.event_type IN ('LEASE_CLAIMED', 'TERMINAL_BLOCKED')
          AND e.event_id >= outbox.uuidv7_floor(v_first)
          AND e.event_id < outbox.uuidv7_floor(LEAST(v_last, v_now) + interval '1 minute')) AS t
      ORDER BY t.occurred_at DESC LIMIT p_limit) AS t
    ORDER BY t.occurred_at, t.attempt_no NULLS FIRST, t.outbox_id;
END
$$;
COMMENT ON FUNCTION outbox.trace_outbox(text, text, integer) IS 'The life of a payment (p_kind outbox, by any of its rows), an instruction or a participant, in order: rows, leases, attempts, dead letters, and what operators did. Without payloads.';
