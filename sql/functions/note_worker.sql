CREATE OR REPLACE FUNCTION outbox.note_worker(p_worker_id text, p_rail_types text[], p_tenant_id uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := outbox.clock();
BEGIN
  PERFORM outbox.check_worker(p_worker_id);
  IF COALESCE(cardinality(p_rail_types), 0) = 0
     OR EXISTS (SELECT FROM unnest(p_rail_types) AS r (rail) WHERE r.rail IS NULL OR r.rail !~ '^[a-z][a-z0-9_.-]{0,62}$') THEN
    RAISE EXCEPTION 'p_rail_types must name the rails that the worker runs' USING ERRCODE = 'P7103';
  END IF;
  INSERT INTO outbox.payment_outbox_workers AS w (worker_id, rail_types, tenant_id, started_at, seen_at, live_until)
  VALUES (p_worker_id, p_rail_types, p_tenant_id, v_now, v_now, v_now + interval '30 seconds')
  ON CONFLICT (worker_id) DO UPDATE
  SET rail_types = excluded.rail_types, tenant_id = excluded.tenant_id, seen_at = excluded.seen_at, live_until = excluded.live_until;
  -- One that died is shown for a while, because somebody may look for it. No waiting: whoever has it locked is back, or deletes it too.
  DELETE FROM outbox.payment_outbox_workers AS w
  WHERE w.ctid = ANY (ARRAY(
    SELECT g.ctid FROM outbox.payment_outbox_workers AS g WHERE g.live_until < v_now - interval '10 minutes' FOR UPDATE SKIP LOCKED));
END
$$;
COMMENT ON FUNCTION outbox.note_worker(text, text[], uuid) IS 'A worker says every few seconds that it is there, which rails it runs and whose rows. It counts as gone after 30 s of silence, and is forgotten 10 minutes later.';
