CREATE OR REPLACE FUNCTION outbox.check_actor(p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF p_actor IS NULL OR btrim(p_actor) = '' THEN
    RAISE EXCEPTION 'p_actor is %: say who does this', CASE WHEN p_actor IS NULL THEN 'null' ELSE 'empty' END USING ERRCODE = 'P7113';
  END IF;
  IF octet_length(p_actor) > 200 THEN
    RAISE EXCEPTION 'p_actor has % bytes: it must have at most 200', octet_length(p_actor) USING ERRCODE = 'P7113';
  END IF;
  IF p_reason IS NULL OR btrim(p_reason) = '' THEN
    RAISE EXCEPTION 'p_reason is %: say why, an auditor will read it', CASE WHEN p_reason IS NULL THEN 'null' ELSE 'empty' END USING ERRCODE = 'P7114';
  END IF;
  IF octet_length(p_reason) > 2000 THEN
    RAISE EXCEPTION 'p_reason has % bytes: it must have at most 2000', octet_length(p_reason) USING ERRCODE = 'P7114';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'lanes are changed at READ COMMITTED, not at %', upper(current_setting('transaction_isolation')) USING ERRCODE = 'P7115';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.check_actor(text, text) IS 'Refuses an operator''s act without who and why.';
