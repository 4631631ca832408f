CREATE OR REPLACE FUNCTION outbox.claim_outbox_batch(
  p_batch_size integer, p_worker_id text, p_lease_seconds integer,
  p_rail_types text[] DEFAULT NULL, p_tenant_id uuid DEFAULT NULL, p_lane_rows integer DEFAULT NULL,
  p_shards smallint[] DEFAULT NULL, p_epochs bigint[] DEFAULT NULL, p_offsets jsonb DEFAULT '{}',
  p_batches bigint[] DEFAULT NULL
) RETURNS TABLE (
  outbox_id uuid, instruction_id text, participant_id text, sequence_id bigint, idempotency_key text, rail_type text,
  payload jsonb, attempt_count integer, lease_token uuid, lease_expires_at timestamptz, headers jsonb, tenant_id uuid,
  created_at timestamptz, claimed_at timestamptz, replay_of uuid, dead_letter_of uuid, zombie_count bigint, turn_id bigint, in_doubt_since timestamptz,
  shard smallint, batch bigint)
LANGUAGE plpgsql SECURITY DEFINER ROWS 500
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_now     timestamptz;
  v_scope   text;
  v_hint    text;
  v_known   boolean;
  v_start   timestamptz;
  v_began   timestamptz;
  v_rails   text[];
  v_place   record;
  v_lanes   integer;
  v_picked  record;
  v_leased  record;
  v_more    uuid[];
  v_ids     uuid[] := ARRAY[]::uuid[];
  v_had     integer;
BEGIN
  IF NOT outbox.claim_is_plain(p_batch_size, p_worker_id, p_lease_seconds, p_rail_types, p_lane_rows) THEN
    PERFORM outbox.check_batch_size('p_batch_size', p_batch_size), outbox.check_batch_size('p_lane_rows', COALESCE(p_lane_rows, 1)),
      outbox.check_worker(p_worker_id), outbox.check_lease_seconds(p_lease_seconds);
    IF EXISTS (SELECT FROM unnest(p_rail_types) AS r (rail) WHERE r.rail IS NULL OR r.rail !~ '^[a-z][a-z0-9_.-]{0,62}$') THEN
      RAISE EXCEPTION 'p_rail_types has an element that is not a rail name' USING ERRCODE = 'P7103';
    END IF;
  END IF;
  IF NOT outbox.repair_looked_lately() THEN
    PERFORM outbox.repair_when_expired(p_worker_id);
  END IF;
  v_now := outbox.clock();
  v_rails := outbox.claimable_rails(COALESCE(p_rail_types, outbox.due_rails()), p_shards IS NOT NULL);

  FOR v_place IN SELECT * FROM outbox.claimable_shards(p_worker_id, p_rail_types, p_shards, p_epochs, p_batches, v_now) LOOP
    v_scope := concat_ws(',', p_tenant_id, array_to_string(p_rail_types, ','));
    -- Each shard and each choice of rails is scanned on its own, and would forget where the others are.
    v_hint := concat_ws('_', 'outbox.claim_scan', to_hex(hashtext(v_scope)), NULLIF(v_place.shard, -1));
    v_known := COALESCE(current_setting(v_hint, true), '') <> '';
    v_start := CASE WHEN v_known THEN outbox.scan_start(v_hint, v_scope, v_now) ELSE '-infinity' END;
    -- Few lanes with many rows each are cheaper than many with one: begin with a tenth of the batch.
    v_lanes := GREATEST((p_batch_size - cardinality(v_ids)) / 10, 1);
    v_had := cardinality(v_ids);
    v_began := outbox.clock();
    v_picked := outbox.pick_lanes(v_rails, p_tenant_id, v_now, v_start, 0, v_lanes, v_place.shard);
    IF v_known OR outbox.clock() > v_began + interval '1 millisecond' THEN
      PERFORM outbox.remember_scan(v_hint, v_scope, v_start, COALESCE(v_picked.first_due, v_now), v_now, outbox.clock() - v_began);
    END IF;
    LOOP
      v_more := ARRAY[]::uuid[];
      IF cardinality(v_picked.turn_ids) > 0 THEN
        v_leased := outbox.lease_lanes(
          v_picked.turn_ids,
          LEAST(ceil((p_batch_size - cardinality(v_ids))::numeric / cardinality(v_picked.turn_ids))::integer, p_lane_rows),
          p_batch_size - cardinality(v_ids), p_worker_id, v_now,
          CASE WHEN v_place.batch IS NULL THEN v_now + p_lease_seconds * interval '1 second' ELSE 'infinity' END, v_place.batch, v_place.epoch);
        v_more := v_leased.leased_ids;
        v_ids := v_ids || v_more;
        IF v_leased.lanes < cardinality(v_picked.turn_ids) AND cardinality(v_ids) < p_batch_size THEN
          -- A lane that gave nothing is empty or waits: find out when to look again.
          PERFORM outbox.settle_lanes(v_picked.turn_ids);
        END IF;
      END IF;
      EXIT WHEN cardinality(v_ids) >= p_batch_size OR v_picked.looked_at < v_lanes;
      -- Lanes that gave little: take as many more as it needs at that rate.
      IF cardinality(v_more) > 0 THEN
        v_lanes := GREATEST((p_batch_size - cardinality(v_ids)) * cardinality(v_picked.turn_ids) / cardinality(v_more), 1);
      END IF;
      v_picked := outbox.pick_lanes(v_rails, p_tenant_id, v_now, v_picked.last_due, v_picked.last_turn, v_lanes, v_place.shard);
    END LOOP;
    IF v_place.batch IS NOT NULL AND cardinality(v_ids) > v_had THEN
      UPDATE outbox.payment_outbox_shards AS s SET batch = v_place.batch, offsets = s.offsets || COALESCE(p_offsets, '{}'),
        lease_expires_at = GREATEST(s.lease_expires_at, v_now + p_lease_seconds * interval '1 second')
      WHERE s.rail_type = p_rail_types[1] AND s.shard = v_place.shard;
    END IF;
    EXIT WHEN cardinality(v_ids) >= p_batch_size;
  END LOOP;

  IF cardinality(v_ids) = 0 THEN
    RETURN;
  END IF;
  PERFORM outbox.log_batch_event('LEASE_CLAIMED', p_worker_id, v_ids);
  -- Read here and not handed on from where they were leased: a thousand large payloads in an array would be copied again and again.
  RETURN QUERY
    WITH leased AS MATERIALIZED (
      SELECT p.*, i.n FROM unnest(v_ids) WITH ORDINALITY AS i (outbox_id, n)
      CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = i.outbox_id OFFSET 0) AS p)
    SELECT p.outbox_id, p.instruction_id, p.participant_id, p.sequence_id, p.idempotency_key, p.rail_type,
           p.payload, p.attempt_count, p.lease_token, p.lease_expires_at, p.headers, p.tenant_id,
           p.created_at, p.claimed_at, p.replay_of, p.dead_letter_of, COALESCE(e.times_lost, 0), p.turn_id, e.in_doubt_since,
           p.shard, p.batch
    FROM leased AS p
    LEFT JOIN outbox.earlier_attempts(ARRAY(
      SELECT t.outbox_id FROM leased AS t WHERE t.attempt_count > 0 OR t.replay_of IS NOT NULL)) AS e ON e.outbox_id = p.outbox_id
    ORDER BY p.n;
END
$$;
COMMENT ON FUNCTION outbox.claim_outbox_batch(integer, text, integer, text[], uuid, integer, smallint[], bigint[], jsonb, bigint[]) IS 'Leases due rows with a fresh lease_token each and returns them in lane order: whoever has been due longest first, and of each lane the due rows at its head. A lane is leased as a whole: its rows have the same turn_id. On an exactly-once rail, for shards that the worker owns and whose last batch it knows: the rows of each are its next batch.';
