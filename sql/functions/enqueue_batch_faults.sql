CREATE OR REPLACE FUNCTION outbox.enqueue_batch_faults(p_rows jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN (
    WITH checked AS MATERIALIZED (
      SELECT r.n, r.j, outbox.enqueue_batch_fault(r.j) AS fault
      FROM jsonb_array_elements(p_rows) WITH ORDINALITY AS r (j, n)),
    -- A participant belongs to the tenant that the database knows or else to the first in the batch.
    owned AS (
      SELECT c.n, c.j, COALESCE(
               (SELECT COALESCE(s.tenant_id::text, '') FROM outbox.participant_outbox_sequences AS s WHERE s.participant_id = c.j ->> 'participant_id'),
               lower(first_value(c.j ->> 'tenant_id') OVER (PARTITION BY c.j ->> 'participant_id' ORDER BY c.n)), '') AS tenant
      FROM checked AS c
      WHERE c.fault IS NULL)
    SELECT COALESCE(jsonb_object_agg(f.n::text, to_jsonb(f.fault)), '{}') FROM (
      SELECT c.n, c.fault FROM checked AS c WHERE c.fault IS NOT NULL
      UNION ALL
      SELECT o.n, ARRAY['P7005', format('participant_id %L belongs to %s, not to %s', o.j ->> 'participant_id',
          COALESCE('tenant ' || NULLIF(o.tenant, ''), 'no tenant'), COALESCE('tenant ' || (o.j ->> 'tenant_id'), 'no tenant'))]
      FROM owned AS o WHERE o.tenant <> COALESCE(lower(o.j ->> 'tenant_id'), '')) AS f);
END
$$;
COMMENT ON FUNCTION outbox.enqueue_batch_faults(jsonb) IS 'The bad rows of a batch: {row number: [SQLSTATE, message]}.';
