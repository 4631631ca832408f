-- An ordinary role sees which transactions others hold back, not since when. So each sample leaves its number and
-- its time behind: whoever holds back an older number than a sample's was there before it.
CREATE OR REPLACE FUNCTION outbox.oldest_snapshot_age(p_now timestamptz) RETURNS float8
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_xid  bigint := pg_current_xact_id()::text::bigint;
  v_held bigint;
BEGIN
  INSERT INTO outbox.payment_outbox_horizon (xid, reached_at) VALUES (v_xid, p_now) ON CONFLICT DO NOTHING;
  DELETE FROM outbox.payment_outbox_horizon AS h
  WHERE h.xid = ANY (ARRAY(SELECT o.xid FROM outbox.payment_outbox_horizon AS o ORDER BY o.xid LIMIT 10)) AND h.reached_at < p_now - interval '1 day';
  SELECT v_xid - max(age(o.xid)) INTO v_held
  FROM (
    -- Of this database, or a replica's. VACUUM of the server's own has no user, and holds nothing back.
    SELECT a.backend_xmin AS xid FROM pg_stat_activity AS a
    WHERE (a.datname = current_database() OR a.datname IS NULL) AND a.usesysid IS NOT NULL AND a.pid <> pg_backend_pid()
    UNION ALL SELECT p.transaction FROM pg_prepared_xacts AS p WHERE p.database = current_database()
    UNION ALL SELECT s.xmin FROM pg_replication_slots AS s) AS o;
  RETURN COALESCE((
    SELECT EXTRACT(epoch FROM p_now - h.reached_at) FROM outbox.payment_outbox_horizon AS h WHERE h.xid > v_held ORDER BY h.xid LIMIT 1), 0);
END
$$;
COMMENT ON FUNCTION outbox.oldest_snapshot_age(timestamptz) IS 'For how many seconds somebody has kept dead rows from being cleaned: a transaction, a prepared one, a replica or its slot. Exact to the interval of the samples, a day at most.';
