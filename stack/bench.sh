#!/usr/bin/env bash
# Measures on servers of its own, which are gone afterwards.
#   bench.sh sql       the SQL functions, on PostgreSQL
#   bench.sh bridge    the bridge, on PostgreSQL and Kafka
# Words in CASES name single cases. Of sql: plain front blocked backlog enqueue wake-up
# snapshot. Of bridge: latency crowd drain exactly-once-throughput exactly-once-delay takeover verify.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

start_kafka() {
  local port
  port=$(free_port)
  "$STACK/kafka.sh" start "$scratch/kafka" "$port" durable
  export KAFKA_BROKERS=127.0.0.1:$port
}

servers=(postgres)
case $1 in
  sql) ;;
  bridge) servers+=(kafka) ;;
  *) fail "there is a benchmark called sql, and one called bridge" ;;
esac
"$STACK/install.sh" build "${servers[@]}"
own_scratch bench
cargo build --release --bin trestle --bench "$1"
port=$(free_port)
"$STACK/postgres.sh" start "$scratch/postgres" "$port" bench
export DATABASE_URL=postgres://trestle:$PG_PASSWORD@localhost:$port/trestle
[[ $1 != bridge ]] || start_kafka
# shellcheck disable=SC2086 # several words are several cases
cargo bench --bench "$1" -- ${CASES:-}
