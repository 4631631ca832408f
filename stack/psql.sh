#!/usr/bin/env bash
# psql on the database of up.sh, as its superuser or as PG_LOGIN. Arguments go to psql.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export PG_LOGIN=${PG_LOGIN:-trestle}
if "$STACK/docker.sh" available && "$STACK/docker.sh" running postgres; then
  exec "$STACK/docker.sh" psql "$@"
fi
psql=$("$STACK/postgres.sh" bin || true)/psql
[[ -x $psql ]] || psql=$(command -v psql) || fail "psql is not installed"
export PGPASSWORD=$PG_LOGIN
exec "$psql" -h localhost -p "$PG_PORT" -U "$PG_LOGIN" -d trestle "$@"
