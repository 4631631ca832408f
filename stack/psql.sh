#!/usr/bin/env bash
# psql on the database of up.sh, as its superuser. Arguments go to psql.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if "$STACK/docker.sh" available && "$STACK/docker.sh" running postgres; then
  exec "$STACK/docker.sh" psql "$@"
fi
psql=$("$STACK/postgres.sh" bin || true)/psql
[[ -x $psql ]] || psql=$(command -v psql) || fail "psql is not installed"
export PGPASSWORD=$PG_PASSWORD
exec "$psql" -h localhost -p "$PG_PORT" -U trestle -d trestle "$@"
