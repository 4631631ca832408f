CREATE OR REPLACE FUNCTION outbox.put_contact_identity(p_contact_id text, p_type text, p_value text, p_tenant_id uuid DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF p_contact_id IS NULL OR btrim(p_contact_id) = '' THEN
    RAISE EXCEPTION 'p_contact_id is %: it must name the participant', CASE WHEN p_contact_id IS NULL THEN 'null' ELSE 'empty' END USING ERRCODE = 'P7101';
  END IF;
  IF octet_length(p_contact_id) > 512 OR p_contact_id ~ '[[:cntrl:]]' THEN
    RAISE EXCEPTION 'p_contact_id must have at most 512 bytes and no control character' USING ERRCODE = 'P7102';
  END IF;
  IF p_type IS NULL OR p_type NOT IN ('external_id', 'email', 'phone', 'name') THEN
    RAISE EXCEPTION 'p_type is %: it must be external_id, email, phone or name', COALESCE(quote_literal(left(p_type, 80)), 'null') USING ERRCODE = 'P7120';
  END IF;
  IF p_value IS NULL OR btrim(p_value) = '' OR octet_length(p_value) > 512 OR p_value ~ '[[:cntrl:]]' OR (p_type = 'email' AND p_value !~ '^[^@[:space:]]+@[^@[:space:]]+$') THEN
    RAISE EXCEPTION 'p_value is not %', CASE p_type WHEN 'email' THEN 'an e-mail address' ELSE 'a text of 1 to 512 bytes without control characters' END USING ERRCODE = 'P7121';
  END IF;
  INSERT INTO outbox.contact_identities (tenant_id, contact_id, type, value, created_at)
  VALUES (p_tenant_id, p_contact_id, p_type, p_value, outbox.clock())
  ON CONFLICT DO NOTHING;
  IF FOUND THEN
    RETURN true;
  END IF;
  IF EXISTS (SELECT FROM outbox.contact_identities AS c WHERE c.tenant_id IS NOT DISTINCT FROM p_tenant_id
             AND c.contact_id = p_contact_id AND c.type = p_type
             AND CASE WHEN p_type = 'email' THEN lower(c.value) = lower(p_value) ELSE c.value = p_value END) THEN
    RETURN false;
  END IF;
  -- The value is personal data: the message names the argument, not what is in it.
  RAISE EXCEPTION 'p_value: this % belongs to another contact of the tenant', p_type USING ERRCODE = 'P7013';
END
$$;
COMMENT ON FUNCTION outbox.put_contact_identity(text, text, text, uuid) IS 'Records who a participant is; true when it is new. P7013 where the external_id or e-mail belongs to another contact of the tenant.';
