-- Whoever finds the sample too old, and gets its lock, takes the next one; everybody else reads it. A sample may
-- take a twentieth of the time: where dead rows that cannot be cleaned make it slow, it is taken less often, but every minute.
CREATE OR REPLACE FUNCTION outbox.sample_outbox_gauges() RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
  v_now    timestamptz := outbox.clock();
  v_sample jsonb;
BEGIN
  PERFORM FROM outbox.payment_outbox_gauges AS s WHERE s.next_at <= v_now FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    v_sample := (SELECT to_jsonb(g) FROM outbox.outbox_gauges() AS g)
      || jsonb_build_object('oldest_snapshot_age_seconds', outbox.oldest_snapshot_age(v_now));
    UPDATE outbox.payment_outbox_gauges AS s
    SET sample = v_sample, taken_at = v_now, next_at = v_now + LEAST(GREATEST(interval '4 seconds', 20 * (outbox.clock() - v_now)), interval '1 minute');
  END IF;
  RETURN (SELECT s.sample FROM outbox.payment_outbox_gauges AS s);
END
$$;
COMMENT ON FUNCTION outbox.sample_outbox_gauges() IS 'The numbers of outbox_gauges() and the age of the oldest snapshot, a few seconds old, where it is slow a minute, and the same for every worker; null until somebody has taken the first sample.';
