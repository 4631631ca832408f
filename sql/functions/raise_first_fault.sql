CREATE OR REPLACE FUNCTION outbox.raise_first_fault(p_faults jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  v_row   text := (SELECT f.key FROM jsonb_each(p_faults) AS f ORDER BY f.key::integer LIMIT 1);
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = p_faults -> v_row ->> 0,
    MESSAGE = format('row %s of p_rows: %s', v_row, p_faults -> v_row ->> 1),
    HINT = 'Nothing was enqueued. With p_report_errors => true the good rows are enqueued and the bad ones reported.';
END
$$;
COMMENT ON FUNCTION outbox.raise_first_fault(jsonb) IS 'Raises the first fault of a batch with its own SQLSTATE.';
