CREATE OR REPLACE FUNCTION outbox.create_partitions(p_parent name) RETURNS TABLE (action text, partition_name name, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_set  outbox.payment_outbox_settings := (SELECT s FROM outbox.payment_outbox_settings AS s);
  v_now  timestamptz := outbox.clock();
  v_from timestamptz;
  v_to   timestamptz;
BEGIN
  -- The next one begins where the last one ends, or today; days are those of UTC.
  SELECT GREATEST(max(p.ends_at), date_trunc('day', v_now, 'UTC')) INTO v_from
  FROM outbox.payment_outbox_partitions AS p WHERE p.parent_name = p_parent;
  WHILE v_from <= v_now + v_set.partitions_ahead * v_set.partition_days * interval '24 hours' LOOP
    v_to := v_from + v_set.partition_days * interval '24 hours';
    FOR action, partition_name, detail IN SELECT * FROM outbox.create_partition(p_parent, v_from, v_to) LOOP
      RETURN NEXT;
      -- The one after it would make this one a gap that nobody fills.
      IF action = 'busy' THEN
        RETURN;
      END IF;
    END LOOP;
    v_from := v_to;
  END LOOP;
END
$$;
COMMENT ON FUNCTION outbox.create_partitions(name) IS 'Makes the partitions of today and of the days ahead.';
