CREATE OR REPLACE FUNCTION outbox.report_conflict(p_row_no bigint, p_message text, p_report_errors boolean) RETURNS text
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF NOT p_report_errors THEN
    RAISE EXCEPTION 'row % of p_rows: %', p_row_no, p_message
      USING ERRCODE = 'P7004', HINT = 'Nothing was enqueued. With p_report_errors => true the good rows are enqueued and the bad ones reported.';
  END IF;
  RETURN 'P7004';
END
$$;
COMMENT ON FUNCTION outbox.report_conflict(bigint, text, boolean) IS 'P7004, raised or reported.';
