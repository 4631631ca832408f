-- Run by an ordinary user who may create objects in schema public. Whatever a function of the
-- outbox might call without saying which schema it means, exists here too, and gives itself away.
SET check_function_bodies = off;

-- Functions and aggregates that occur in the source of any function of the outbox.
DO $traps$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result
    FROM pg_proc AS p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a')
      AND p.proname IN (SELECT w[1] FROM pg_proc AS o, regexp_matches(o.prosrc, '\w+', 'g') AS w WHERE o.pronamespace = 'outbox'::regnamespace)
  LOOP
    BEGIN
      EXECUTE format($f$CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS
        $t$ BEGIN RAISE EXCEPTION 'trap %I sprung by %%', current_user; END $t$ $f$, f.proname, f.arguments, f.result, f.proname);
    EXCEPTION WHEN OTHERS THEN
      NULL; -- An aggregate over rows, or a type that only C functions may have.
    END;
  END LOOP;
END
$traps$;

-- The same for operators between the types that the outbox uses.
DO $traps$
DECLARE
  o record;
  n integer := 0;
BEGIN
  FOR o IN
    SELECT oprname, oprleft::regtype AS l, oprright::regtype AS r, oprresult::regtype AS result FROM pg_operator
    WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b'
      AND ARRAY[oprleft, oprright]::regtype[] <@ ARRAY['text', 'uuid', 'integer', 'bigint', 'boolean', 'numeric', 'jsonb', 'xid8', 'name',
        'timestamptz', 'interval', 'double precision', 'outbox.outbox_attempt_state', 'anyarray', 'anyelement', 'anyenum', 'tid']::regtype[]
  LOOP
    n := n + 1;
    BEGIN
      EXECUTE format($f$CREATE FUNCTION public.operator_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS
        $t$ BEGIN RAISE EXCEPTION 'trap %s sprung by %%', current_user; END $t$ $f$, n, o.l, o.r, o.result, replace(o.oprname, '%', 'modulo'));
      EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.operator_%s, LEFTARG = %s, RIGHTARG = %s)', o.oprname, n, o.l, o.r);
    EXCEPTION WHEN OTHERS THEN
      NULL; -- Polymorphic pairs that PostgreSQL cannot resolve.
    END;
  END LOOP;
END
$traps$;

-- Empty tables under the names of the real ones.
DO $traps$
DECLARE
  t record;
BEGIN
  FOR t IN SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'p', 'v') LOOP
    EXECUTE format('CREATE TABLE public.%I (trap text)', t.relname);
    EXECUTE format('CREATE TEMP TABLE %I (trap text)', t.relname);
  END LOOP;
END
$traps$;

-- Types that cannot be given a value without a trap being sprung.
CREATE FUNCTION public.type_trap() RETURNS boolean LANGUAGE plpgsql AS
  $t$ BEGIN RAISE EXCEPTION 'trap type sprung by %', current_user; END $t$;
CREATE DOMAIN public.timestamptz AS pg_catalog.timestamptz CHECK (public.type_trap());
CREATE DOMAIN pg_temp.jsonb AS pg_catalog.jsonb CHECK (public.type_trap());
