CREATE OR REPLACE FUNCTION outbox.drop_archived_partitions() RETURNS TABLE (action text, partition_name name, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_days integer := (SELECT s.drop_after_days FROM outbox.payment_outbox_settings AS s);
  v_part outbox.payment_outbox_partitions;
BEGIN
  FOR v_part IN SELECT p.* FROM outbox.payment_outbox_partitions AS p
                WHERE p.archived_at IS NOT NULL AND p.ends_at <= outbox.clock() - v_days * interval '24 hours' LOOP
    BEGIN
      EXECUTE format('DROP TABLE outbox_archive.%I', v_part.partition_name);
      DELETE FROM outbox.payment_outbox_partitions AS p WHERE p.partition_name = v_part.partition_name;
      RETURN QUERY SELECT 'dropped', v_part.partition_name, format('older than drop_after_days = %s', v_days);
    EXCEPTION WHEN lock_not_available THEN
      RETURN QUERY SELECT 'busy', v_part.partition_name, 'not dropped: somebody is reading it, tried again at the next pass';
    WHEN dependent_objects_still_exist THEN
      RETURN QUERY SELECT 'kept', v_part.partition_name, 'not dropped: another object, a view for instance, depends on it';
    END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION outbox.drop_archived_partitions() IS 'Drops archived partitions older than drop_after_days; nothing where that is not set.';
