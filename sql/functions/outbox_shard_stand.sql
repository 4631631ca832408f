CREATE OR REPLACE FUNCTION outbox.outbox_shard_stand(p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint)
RETURNS TABLE (batch bigint, under_way boolean, offsets jsonb, sender text)
LANGUAGE plpgsql SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_shard outbox.payment_outbox_shards := outbox.hold_shard(p_worker_id, p_rail_type, p_shard, p_epoch);
BEGIN
  RETURN QUERY SELECT v_shard.batch,
    EXISTS (SELECT FROM outbox.payment_outbox_turns AS t WHERE t.rail_type = p_rail_type AND t.shard = p_shard AND t.batch IS NOT NULL),
    v_shard.offsets, v_shard.sender;
END
$$;
COMMENT ON FUNCTION outbox.outbox_shard_stand(text, text, smallint, bigint) IS 'What the owner of a shard has to know before it reads the topics: the last batch, whether it is under way, from where on to read, and as whom and where its last owner delivered.';
