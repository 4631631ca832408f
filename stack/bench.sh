#!/usr/bin/env bash
# Measures the bridge on a PostgreSQL and a Kafka of its own, which are gone afterwards.
# Words after `make bench CASES=` name single cases: latency crowd drain.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

cleanup() {
  local status=$?
  set +e
  "$STACK/kafka.sh" stop "$scratch/kafka" now
  "$STACK/postgres.sh" stop "$scratch/postgres" now
  rm -rf "$scratch"
  exit "$status"
}

"$STACK/install.sh" build postgres kafka
scratch=$(mktemp -d /tmp/trestle-bench.XXXXXX)
chmod 755 "$scratch"
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
cargo build --release --bin trestle --bench bridge
port=$(free_port)
"$STACK/postgres.sh" start "$scratch/postgres" "$port" bench
kafka_port=$(free_port)
"$STACK/kafka.sh" start "$scratch/kafka" "$kafka_port" durable
export DATABASE_URL=postgres://trestle:$PG_PASSWORD@localhost:$port/trestle
export KAFKA_BROKERS=127.0.0.1:$kafka_port
# shellcheck disable=SC2086 # several words are several cases
cargo bench --bench bridge -- ${CASES:-}
