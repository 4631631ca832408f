CREATE OR REPLACE FUNCTION outbox.archive_partition(p_part outbox.payment_outbox_partitions) RETURNS TABLE (action text, partition_name name, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF p_part.parent_name = 'payment_outbox_attempts' THEN
    DELETE FROM outbox.payment_outbox_failures AS f WHERE f.outbox_id >= p_part.from_id AND f.outbox_id < p_part.to_id;
  END IF;
  UPDATE outbox.payment_outbox_partitions AS p SET archived_at = outbox.clock() WHERE p.partition_name = p_part.partition_name;
  -- Last, because from here to the commit nobody can write to the ledger.
  EXECUTE format('ALTER TABLE outbox.%I DETACH PARTITION outbox.%I', p_part.parent_name, p_part.partition_name);
  EXECUTE format('ALTER TABLE outbox.%I SET SCHEMA outbox_archive', p_part.partition_name);
  EXECUTE format('GRANT SELECT ON outbox_archive.%I TO symphony_operator, symphony_readonly, symphony_auditor', p_part.partition_name);
  RETURN QUERY SELECT 'archived', p_part.partition_name, 'detached into outbox_archive'
    UNION ALL SELECT 'again', p_part.partition_name, 'there may be more';
EXCEPTION WHEN lock_not_available THEN
  RETURN QUERY SELECT 'busy', p_part.partition_name, 'not archived: the ledger was locked, tried again at the next pass';
END
$$;
COMMENT ON FUNCTION outbox.archive_partition(outbox.payment_outbox_partitions) IS 'Detaches a partition into outbox_archive, still append-only.';
