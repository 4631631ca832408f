-- Whoever repairs on purpose tells what it has found, a claim cannot: so it looks only for what nobody has
-- repaired for a while.
CREATE OR REPLACE FUNCTION outbox.repair_when_expired(p_worker_id text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now    timestamptz := outbox.clock();
  v_late   timestamptz := v_now - interval '3 seconds';
  v_start  timestamptz;
BEGIN
  v_start := outbox.scan_start('outbox.repair_scan', '', v_now);
  IF EXISTS (SELECT FROM outbox.payment_outbox_turns AS t
             WHERE t.worker_id IS NOT NULL AND t.due_at <= v_late AND t.due_at > v_start) THEN
    PERFORM outbox.repair_expired_leases(500, p_worker_id);
  ELSE
    PERFORM set_config('outbox.repair_looked_at', date_part('epoch', v_now)::text, false);
    PERFORM outbox.remember_scan('outbox.repair_scan', '', v_start, v_late, v_now, outbox.clock() - v_now);
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.repair_when_expired(text) IS 'A claim that finds a lease expired for three seconds repairs it: whoever finds it first writes its ZOMBIE_REQUEUE. A session that found nothing looks again a second later.';
