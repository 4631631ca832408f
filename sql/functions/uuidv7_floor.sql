CREATE OR REPLACE FUNCTION outbox.uuidv7_floor(p_at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
  SELECT (pg_catalog.encode(pg_catalog.substring(pg_catalog.int8send(
            (EXTRACT(epoch FROM p_at) * 1000)::bigint), 3), 'hex') || '00000000000000000000')::uuid
$$;
COMMENT ON FUNCTION outbox.uuidv7_floor(timestamptz) IS 'The smallest id of a millisecond: a partition bound.';
