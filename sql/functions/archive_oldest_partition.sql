CREATE OR REPLACE FUNCTION outbox.archive_oldest_partition() RETURNS TABLE (action text, partition_name name, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_hot_since timestamptz := outbox.clock() - (SELECT s.hot_days FROM outbox.payment_outbox_settings AS s) * interval '24 hours';
  v_part      outbox.payment_outbox_partitions;
  v_kept      text;
BEGIN
  FOR v_part IN SELECT p.* FROM outbox.payment_outbox_partitions AS p
                WHERE p.archived_at IS NULL AND p.ends_at <= v_hot_since ORDER BY p.ends_at, p.parent_name LOOP
    v_kept := outbox.why_partition_is_kept(v_part, v_hot_since);
    IF v_kept IS NOT NULL THEN
      RETURN QUERY SELECT 'kept', v_part.partition_name, v_kept;
    ELSIF v_part.parent_name = 'payment_outbox_attempts' AND v_part.keys_cleared_at IS NULL THEN
      RETURN QUERY SELECT 'again', v_part.partition_name, format('%s idempotency keys cleared', outbox.clear_partition_keys(v_part));
      RETURN;
    ELSE
      RETURN QUERY SELECT * FROM outbox.archive_partition(v_part);
      RETURN;
    END IF;
  END LOOP;
EXCEPTION WHEN lock_not_available THEN
  RETURN QUERY SELECT 'busy', v_part.partition_name, 'not archived: it was locked, tried again at the next pass';
END
$$;
COMMENT ON FUNCTION outbox.archive_oldest_partition() IS 'Takes the oldest partition whose time is over one step toward the archive, and says of the others why they are kept.';
