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
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE
    AS $$
    DECLARE
      v_us    bigint := (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000)::bigint;
      -- Version 7 in the high four bits, then the fraction of the millisecond in 4096ths.
      v_tail  integer := 28672 + ((v_us % 1000) * 4096 / 1000)::integer;
      v_bytes bytea := pg_catalog.uuid_send(pg_catalog.gen_random_uuid());
    BEGIN
      RETURN pg_catalog.encode(
        overlay(v_bytes PLACING
          pg_catalog.substring(pg_catalog.int8send(v_us / 1000), 3) || pg_catalog.int2send(v_tail::int2)
          FROM 1 FOR 8), 'hex')::uuid;
    END
    $$;
  END IF;
END
$install$;
COMMENT ON FUNCTION outbox.uuidv7() IS 'A time-ordered id, so that inserts land on the right edge of an index.';
