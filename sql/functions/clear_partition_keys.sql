CREATE OR REPLACE FUNCTION outbox.clear_partition_keys(p_part outbox.payment_outbox_partitions) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_rows bigint;
  v_last uuid;
  v_gone bigint;
BEGIN
  EXECUTE format($q$
    WITH slice AS (
      SELECT a.outbox_id, a.instruction_id, a.idempotency_key FROM outbox.%I AS a
      WHERE a.outbox_id > $1 ORDER BY a.outbox_id LIMIT 20000),
    gone AS (
      DELETE FROM outbox.payment_outbox_keys AS k USING slice AS s
      WHERE k.instruction_id = s.instruction_id AND k.idempotency_key = s.idempotency_key AND k.outbox_id = s.outbox_id
      RETURNING 1)
    SELECT count(*), (SELECT s.outbox_id FROM slice AS s ORDER BY s.outbox_id DESC LIMIT 1), (SELECT count(*) FROM gone) FROM slice
    $q$, p_part.partition_name)
  INTO v_rows, v_last, v_gone USING COALESCE(p_part.keys_cleared_to, '00000000-0000-0000-0000-000000000000'::uuid);
  UPDATE outbox.payment_outbox_partitions AS p
  SET keys_cleared_to = COALESCE(v_last, p.keys_cleared_to), keys_cleared_at = CASE WHEN v_rows < 20000 THEN outbox.clock() END
  WHERE p.partition_name = p_part.partition_name;
  RETURN v_gone;
END
$$;
COMMENT ON FUNCTION outbox.clear_partition_keys(outbox.payment_outbox_partitions) IS 'Forgets the idempotency keys of the next 20,000 attempts of a partition that is to be archived: their window is over.';
