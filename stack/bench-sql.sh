#!/usr/bin/env bash
# Measures the SQL functions on a PostgreSQL of its own, which is gone afterwards.
# Words after `make bench-sql CASES=` name single cases: plain front blocked backlog
# enqueue wake-up snapshot.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

cleanup() {
  local status=$?
  set +e
  "$STACK/postgres.sh" stop "$scratch/postgres" now
  rm -rf "$scratch"
  exit "$status"
}

"$STACK/install.sh" build postgres
scratch=$(mktemp -d /tmp/trestle-bench.XXXXXX)
chmod 755 "$scratch"
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
cargo build --release --benches
port=$(free_port)
"$STACK/postgres.sh" start "$scratch/postgres" "$port" bench
export DATABASE_URL=postgres://trestle:$PG_PASSWORD@localhost:$port/trestle
# shellcheck disable=SC2086 # several words are several cases
cargo bench --bench sql -- ${CASES:-}
