-- Jumps from rail to rail in the index instead of reading every turn.
CREATE OR REPLACE FUNCTION outbox.due_rails() RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE r (rail_type) AS (
    (SELECT t.rail_type FROM outbox.payment_outbox_turns AS t WHERE t.worker_id IS NULL ORDER BY t.rail_type LIMIT 1)
    UNION ALL
    SELECT (SELECT t.rail_type FROM outbox.payment_outbox_turns AS t
            WHERE t.worker_id IS NULL AND t.rail_type > r.rail_type ORDER BY t.rail_type LIMIT 1)
    FROM r WHERE r.rail_type IS NOT NULL)
  SELECT COALESCE(array_agg(r.rail_type), '{}') FROM r WHERE r.rail_type IS NOT NULL
$$;
COMMENT ON FUNCTION outbox.due_rails() IS 'The rails that have a lane waiting.';
