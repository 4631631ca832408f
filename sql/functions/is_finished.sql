CREATE OR REPLACE FUNCTION outbox.is_finished(p_outbox_id uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_outbox_id AND a.state IN ('DISPATCHED', 'FAILED'));
END
$$;
COMMENT ON FUNCTION outbox.is_finished(uuid) IS 'Whether the ledger has a terminal outcome of this row.';
