CREATE OR REPLACE FUNCTION outbox.lease_outbox_shards(p_worker_id text, p_rail_type text, p_lease_seconds integer)
RETURNS TABLE (shard smallint, epoch bigint, ready boolean, under_way boolean, leave boolean, batch bigint, look_again_ms integer)
LANGUAGE plpgsql SECURITY DEFINER ROWS 16
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_now   timestamptz;
  v_lease interval := p_lease_seconds * interval '1 second';
  v_owned integer;
  v_share record;
  v_look  integer;
BEGIN
  PERFORM outbox.check_worker(p_worker_id), outbox.check_lease_seconds(p_lease_seconds), outbox.place_lanes(p_rail_type);
  v_now := outbox.clock();
  UPDATE outbox.payment_outbox_workers AS w SET seen_at = GREATEST(w.seen_at, v_now), live_until = GREATEST(w.live_until, v_now + interval '30 seconds')
  WHERE w.worker_id = p_worker_id;
  -- To renew it twice a second would hold up claims and outcomes, which lock their shards too: it is renewed when a quarter
  -- of it is gone, unless somebody is in the way, and when half of it is gone whoever is.
  UPDATE outbox.payment_outbox_shards AS s SET lease_expires_at = v_now + v_lease
  WHERE s.rail_type = p_rail_type AND s.shard = ANY (
    ARRAY(SELECT o.shard FROM outbox.payment_outbox_shards AS o
          WHERE o.rail_type = p_rail_type AND o.owner = p_worker_id AND o.lease_expires_at < v_now + v_lease * 0.5
          ORDER BY o.shard FOR NO KEY UPDATE)
    || ARRAY(SELECT o.shard FROM outbox.payment_outbox_shards AS o
             WHERE o.rail_type = p_rail_type AND o.owner = p_worker_id AND o.lease_expires_at < v_now + v_lease * 0.75
             ORDER BY o.shard FOR NO KEY UPDATE SKIP LOCKED));
  v_owned := (SELECT count(*) FROM outbox.payment_outbox_shards AS s WHERE s.rail_type = p_rail_type AND s.owner = p_worker_id);
  v_share := outbox.share_of_shards(p_worker_id, p_rail_type, v_now);
  PERFORM outbox.take_shards(p_worker_id, p_rail_type, p_lease_seconds, v_now, v_share.most - v_owned);
  -- When a lease of somebody else ends, and when whoever is there may have its shard: to be there then spares half a second.
  v_look := (
    SELECT ceil(extract(epoch FROM min(e.at) - v_now) * 1000)
    FROM outbox.payment_outbox_shards AS s
    CROSS JOIN LATERAL (VALUES (s.lease_expires_at), (s.lease_expires_at + interval '600 milliseconds')) AS e (at)
    WHERE s.rail_type = p_rail_type AND s.owner <> p_worker_id AND s.halted_at IS NULL
      AND e.at > v_now AND e.at < v_now + interval '1 second');
  RETURN QUERY
    SELECT s.shard, s.epoch, s.ready,
           EXISTS (SELECT FROM outbox.payment_outbox_turns AS t WHERE t.rail_type = s.rail_type AND t.shard = s.shard AND t.batch IS NOT NULL),
           row_number() OVER (ORDER BY s.shard DESC) <= v_share.surplus, s.batch, v_look
    FROM outbox.payment_outbox_shards AS s WHERE s.rail_type = p_rail_type AND s.owner = p_worker_id;
  IF NOT FOUND AND v_look IS NOT NULL THEN
    -- Whoever has no shard is the first to wait for one.
    RETURN QUERY SELECT NULL::smallint, NULL::bigint, NULL::boolean, NULL::boolean, NULL::boolean, NULL::bigint, v_look;
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.lease_outbox_shards(text, text, integer) IS 'A worker says twice a second that it owns its shards, takes free ones up to its share and those that nobody else takes, learns which it is to give up to others, and when to look again if that is in less than a second (in a row without a shard, if it has none).';
