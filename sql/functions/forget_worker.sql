CREATE OR REPLACE FUNCTION outbox.forget_worker(p_worker_id text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM outbox.check_worker(p_worker_id);
  DELETE FROM outbox.payment_outbox_workers AS w WHERE w.worker_id = p_worker_id;
END
$$;
COMMENT ON FUNCTION outbox.forget_worker(text) IS 'A worker that ends in good order says goodbye, so that nobody counts on it.';
