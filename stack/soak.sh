#!/usr/bin/env bash
# The long form of the tests of exactly once, on servers of its own, which are gone afterwards.
# DATABASE_URL and KAFKA_BROKERS, where set, replace a server. EXACTLY_ONCE_ROUNDS says how long,
# words in TESTS which: crashes late lone everything servers failover.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

export EXACTLY_ONCE_ROUNDS=${EXACTLY_ONCE_ROUNDS:-100}

start_servers() {
  local port
  if [[ -z ${DATABASE_URL:-} ]]; then
    port=$(free_port)
    "$STACK/postgres.sh" start "$scratch/postgres" "$port" throwaway
    export DATABASE_URL=postgres://trestle:$PG_PASSWORD@localhost:$port/trestle
  fi
  if [[ -z ${KAFKA_BROKERS:-} ]]; then
    port=$(free_port)
    "$STACK/kafka.sh" start "$scratch/kafka" "$port" durable
    export KAFKA_BROKERS=127.0.0.1:$port
  fi
}

"$STACK/install.sh" build postgres kafka
own_scratch soak
cargo test --profile soak --no-run --test bridge
start_servers
tests=()
for word in ${TESTS:-}; do tests+=("exactly_once::$word"); done
# They say how much they have done. What they leave behind when they are killed goes with the rest.
TMPDIR=$scratch cargo test --profile soak --test bridge -- --nocapture "${tests[@]:-exactly_once::}"
