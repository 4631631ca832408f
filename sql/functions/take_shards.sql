CREATE OR REPLACE FUNCTION outbox.take_shards(p_worker_id text, p_rail_type text, p_lease_seconds integer, p_now timestamptz, p_most integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_shards integer := (SELECT y.shards FROM outbox.payment_outbox_rail_policies AS y
                       WHERE y.rail_type = p_rail_type AND y.in_force AND y.delivery = 'exactly_once');
  v_taken  record;
BEGIN
  FOR v_taken IN
    SELECT s.shard, s.owner, s.epoch, s.lease_expires_at FROM outbox.payment_outbox_shards AS s
    WHERE s.rail_type = p_rail_type AND s.shard < v_shards AND s.halted_at IS NULL
      AND (s.owner IS NULL OR (s.owner <> p_worker_id AND s.lease_expires_at <= p_now))
    ORDER BY s.shard FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    -- Who has less than a share comes first; after a moment, whoever is there.
    CONTINUE WHEN p_most <= 0 AND v_taken.lease_expires_at > p_now - interval '600 milliseconds';
    p_most := p_most - 1;
    UPDATE outbox.payment_outbox_shards AS s
    SET owner = p_worker_id, epoch = s.epoch + 1, ready = false, lease_expires_at = p_now + p_lease_seconds * interval '1 second'
    WHERE s.rail_type = p_rail_type AND s.shard = v_taken.shard;
    IF v_taken.owner IS NOT NULL THEN
      PERFORM outbox.log_event('SHARD_TAKEN_OVER', p_worker_id, 'its owner let the lease expire', NULL, p_rail_type, '{}',
        jsonb_build_object('shard', v_taken.shard, 'epoch', v_taken.epoch + 1, 'owner_before', v_taken.owner));
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION outbox.take_shards(text, text, integer, timestamptz, integer) IS 'Takes shards without an owner and those whose owner is gone, each with a new epoch.';
