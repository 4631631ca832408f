-- PostgreSQL 18 has its own; before that, ours with the same layout: 48 bits of milliseconds, the
-- version, 12 bits of the fraction of the millisecond, the variant, 62 random bits.
DO $install$
BEGIN
  IF pg_catalog.to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL THEN
    CREATE OR REPLACE FUNCTION outbox.uuidv7() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$ SELECT pg_catalog.uuidv7() $$;
  ELSE
    CREATE OR REPLACE FUNCTION outbox.uuidv7() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$
      -- The first eight bytes from the time in 4096ths of a millisecond: 48 bits of milliseconds,
      -- then 7 and the fraction. The clock is read twice, because a subquery could not be folded
      -- into the caller; at a millisecond's turn the fraction may be that of the next one.
      SELECT pg_catalog.encode(overlay(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) PLACING pg_catalog.int8send(
        (((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 4096000)::bigint >> 12) << 16) | 28672
        | ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 4096000)::bigint & 4095)) FROM 1 FOR 8), 'hex')::uuid
    $$;
  END IF;
END
$install$;
COMMENT ON FUNCTION outbox.uuidv7() IS 'A time-ordered id, so that inserts land on the right edge of an index.';
