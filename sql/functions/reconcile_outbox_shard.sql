-- What the owner of a shard has found in the topics decides about the batch that was under way: a row that
-- is there is DISPATCHED, whoever sent it, and one that is not was never committed and never will be,
-- because its producer is fenced. Where register and topics disagree nothing is decided. Evidence is about one
-- stand of the shard, and is not heard when the shard has another: a call that was held up on its way, or a
-- database that has lost what the stand was read from.
CREATE OR REPLACE FUNCTION outbox.reconcile_outbox_shard(
  p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint, p_stand_batch bigint, p_stand_offsets jsonb,
  p_found_ids uuid[], p_found_batches bigint[], p_found_references text[],
  p_register_batches bigint[], p_register_rows integer[], p_last_batch bigint, p_offsets jsonb, p_sender text
) RETURNS TABLE (batch bigint, recovered integer, requeued integer, halted_reason text)
LANGUAGE plpgsql SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_shard outbox.payment_outbox_shards := outbox.hold_shard(p_worker_id, p_rail_type, p_shard, p_epoch);
  v_turns bigint[] := outbox.lock_batch(p_rail_type, p_shard);
  v_ids   uuid[];
  v_left  uuid;
BEGIN
  IF v_shard.batch IS DISTINCT FROM p_stand_batch OR v_shard.offsets IS DISTINCT FROM p_stand_offsets THEN
    RAISE EXCEPTION 'shard % of rail_type % is not at batch % any more, or its evidence begins elsewhere', p_shard, quote_literal(p_rail_type),
        COALESCE(p_stand_batch::text, 'null')
      USING ERRCODE = 'P7019', HINT = 'Ask outbox_shard_stand again, and gather the evidence from there.';
  END IF;
  halted_reason := outbox.shard_contradiction(p_rail_type, p_found_ids, p_found_batches, p_register_batches, p_register_rows);
  IF halted_reason IS NOT NULL THEN
    PERFORM outbox.halt_outbox_shard(p_worker_id, p_rail_type, p_shard, p_epoch, halted_reason);
    RETURN QUERY SELECT v_shard.batch, 0, 0, halted_reason;
    RETURN;
  END IF;

  v_ids := outbox.record_recovered(p_worker_id, p_epoch, v_turns, p_found_ids, p_found_batches, p_found_references, p_register_batches);
  requeued := outbox.return_batch(p_worker_id, p_epoch, v_turns);
  -- Only now: lost rows may stand behind rows of the batch, in the same lanes.
  v_turns := outbox.take_lost_rows(p_worker_id, p_rail_type, p_shard, p_epoch, v_shard.batch, p_found_ids);
  v_ids := v_ids || outbox.record_recovered(p_worker_id, p_epoch, v_turns, p_found_ids, p_found_batches, p_found_references, p_register_batches);
  recovered := cardinality(v_ids);
  SELECT p.outbox_id INTO v_left FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (p_found_ids) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'row % is in the topics, but cannot be recorded as DISPATCHED: somebody else holds it', v_left USING ERRCODE = 'P7017';
  END IF;
  -- These offsets alone: a topic that is not among them is gone, and would be missed again and again.
  UPDATE outbox.payment_outbox_shards AS s
  SET ready = true, batch = GREATEST(s.batch, p_last_batch), offsets = p_offsets, sender = p_sender
  WHERE s.rail_type = p_rail_type AND s.shard = p_shard;
  IF recovered + requeued > 0 THEN
    PERFORM outbox.log_event('SHARD_RECONCILED', p_worker_id, 'what became of the batch under way', NULL, p_rail_type, v_ids, jsonb_build_object(
      'shard', p_shard, 'epoch', p_epoch, 'batch', v_shard.batch, 'register', p_last_batch, 'recovered', recovered, 'requeued', requeued));
  END IF;
  RETURN QUERY SELECT GREATEST(v_shard.batch, p_last_batch), recovered, requeued, NULL::text;
END
$$;
COMMENT ON FUNCTION outbox.reconcile_outbox_shard(text, text, smallint, bigint, bigint, jsonb, uuid[], bigint[], text[], bigint[], integer[], bigint, jsonb, text) IS 'Decides, from what was found in the register and in the topics, what became of the batch that was under way in a shard, and makes the shard ready for its owner. P7014 for everybody but the owner of this epoch, P7019 unless the shard is where the evidence was gathered from.';
