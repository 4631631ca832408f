CREATE OR REPLACE FUNCTION outbox.why_partition_is_kept(p_part outbox.payment_outbox_partitions, p_hot_since timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_recent boolean;
BEGIN
  -- An older transaction, prepared ones included, may still commit a row of this partition's time.
  IF p_part.closing_xid IS NULL OR pg_snapshot_xmin(pg_current_snapshot()) <= p_part.closing_xid THEN
    RETURN 'a transaction that is older than its end is still open';
  END IF;
  IF p_part.parent_name = 'payment_outbox_events' THEN
    RETURN NULL;
  END IF;
  IF EXISTS (SELECT FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id >= p_part.from_id AND p.outbox_id < p_part.to_id) THEN
    RETURN 'a row of its time is still pending';
  END IF;
  IF EXISTS (SELECT FROM outbox.payment_outbox_failures AS f
             WHERE f.outbox_id >= p_part.from_id AND f.outbox_id < p_part.to_id AND f.resolution IS NULL) THEN
    RETURN 'a FAILED row of its time is neither replayed nor dismissed';
  END IF;
  -- The key stays with the row that was enqueued: as long as its replay's own would.
  IF EXISTS (SELECT FROM outbox.payment_outbox_failures AS f
             JOIN outbox.payment_outbox_partitions AS h ON h.parent_name = p_part.parent_name AND h.archived_at IS NULL
               AND h.from_id > p_part.from_id AND f.replay_outbox_id >= h.from_id AND f.replay_outbox_id < h.to_id
             WHERE f.outbox_id >= p_part.from_id AND f.outbox_id < p_part.to_id) THEN
    RETURN 'a row of its time was replayed in a partition that is still hot';
  END IF;
  -- What was no reason before its keys began to be cleared is none later: its rows are all finished. So it is read once,
  -- not again for each slice of keys.
  IF p_part.keys_cleared_to IS NOT NULL THEN
    RETURN NULL;
  END IF;
  -- A table that is only appended to has its newest rows at the end: look there first, so that a
  -- partition that is kept costs no whole scan in each pass.
  EXECUTE format('SELECT EXISTS (SELECT FROM outbox.%1$I WHERE ctid >= format(''(%%s,0)'', GREATEST(pg_relation_size(%2$L) / current_setting(''block_size'')::integer - 256, 0))::tid AND completed_at > $1)
                      OR EXISTS (SELECT FROM outbox.%1$I WHERE completed_at > $1)',
                 p_part.partition_name, 'outbox.' || quote_ident(p_part.partition_name)) INTO v_recent USING p_hot_since;
  IF v_recent THEN
    RETURN 'a row of its time was completed within hot_days';
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.why_partition_is_kept(outbox.payment_outbox_partitions, timestamptz) IS 'Why a partition must not be archived yet, or NULL.';
