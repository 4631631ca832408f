#!/usr/bin/env bash
# Lints and tests on servers of its own: free ports, throw-away data, all gone
# afterwards. DATABASE_URL and KAFKA_BROKERS, where set, replace a server.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

# The test binaries that speak to the database alone and run on both versions.
TEST_BINARIES_ON_18="contract"

began=$(now_ms)
given_database=${DATABASE_URL:-}
given_kafka=${KAFKA_BROKERS:-}
scratch=
groups=()
servers=()
port_18=
server_18=
clients=
doing="looking for the tools"

# A shell that waits hears a signal at once; one that runs a command in the
# foreground hears it only when the command ends. The session of its own lets
# cleanup reach the command's children too.
background() {
  setsid "$@" &
  groups+=($!)
}

run() {
  background "$@"
  wait $!
}

kill_groups() {
  local group
  for group in "${groups[@]}"; do kill -s "$1" -- "-$group" 2>/dev/null || true; done
}

# Every process whose command line names the scratch directory is one of ours.
sweep() {
  local cmdline pid
  for cmdline in /proc/[0-9]*/cmdline; do
    grep -qaF -- "$scratch/" "$cmdline" 2>/dev/null || continue
    pid=${cmdline#/proc/}
    kill -s KILL "${pid%/cmdline}" 2>/dev/null || true
  done
}

cleanup() {
  local status=$?
  trap '' INT TERM HUP
  set +e
  kill_groups TERM
  if [[ -n $scratch ]]; then
    "$STACK/kafka.sh" stop "$scratch/kafka" now
    "$STACK/postgres.sh" stop "$scratch/postgres" now
    "$STACK/postgres.sh" stop "$scratch/postgres18" now
    kill_groups KILL
    sweep
    rm -rf "$scratch"
  fi
  if [[ $status == 0 ]]; then took "$began" "all passed"; else took "$began" "FAILED: $doing"; fi
  exit "$status"
}

make_scratch() {
  # Root's servers run as another user, who can always enter /tmp.
  local parent=${TMPDIR:-/tmp}
  if is_root; then parent=/tmp; fi
  scratch=$(mktemp -d "$parent/trestle-test.XXXXXX")
  chmod 755 "$scratch"
}

wants_18() {
  [[ -z $given_database ]] && [[ $("$STACK/postgres.sh" major "$("$STACK/postgres.sh" bin)") -lt 18 ]]
}

install() {
  # Some tests start a broker of their own, whatever is given.
  local parts=(build lint clients kafka pgbouncer promtool)
  [[ -n $given_database ]] || parts+=(postgres postgres18 plpgsql_check)
  "$STACK/install.sh" "${parts[@]}"
}

url() { echo "postgres://trestle:$PG_PASSWORD@localhost:$1/trestle"; }

start_servers() {
  if [[ -z $given_database ]]; then
    local port
    port=$(free_port)
    export DATABASE_URL
    DATABASE_URL=$(url "$port")
    start_server PostgreSQL postgres.sh start "$scratch/postgres" "$port" throwaway
  fi
  if [[ -z $given_kafka ]]; then
    local kafka_port
    kafka_port=$(free_port)
    export KAFKA_BROKERS=127.0.0.1:$kafka_port
    start_server Kafka kafka.sh start "$scratch/kafka" "$kafka_port" throwaway
  fi
  if wants_18; then
    port_18=$(free_port)
    start_server "PostgreSQL 18" postgres18.sh start "$scratch/postgres18" "$port_18"
    server_18=$!
  fi
}

start_server() {
  background "$STACK/timed.sh" "$1 is ready" "$STACK/$2" "${@:3}"
  servers+=($!)
}

# Tells the tests where the clients are.
install_clients() {
  export CLIENTS_DIR
  CLIENTS_DIR=$("$STACK/clients.sh" path)
  background "$STACK/timed.sh" "Kafka clients are there" "$STACK/clients.sh" install
  clients=$!
}

# A person without a network can still test; CI must not pass for less than it says.
await_clients() {
  local status=0
  doing="installing the Kafka clients"
  wait "$clients" || status=$?
  [[ $status != 0 ]] || return 0
  [[ $status == 3 && -z ${CI:-} ]] || fail "kcat, confluent-kafka and kafkajs could not all be installed"
  CLIENTS_DIR=
}

await_servers() {
  local server status
  doing="starting the servers"
  for server in "${servers[@]}"; do
    status=0
    wait "$server" || status=$?
    if [[ $server == "$server_18" && $status == 3 ]]; then
      port_18=
    elif [[ $status != 0 ]]; then
      exit "$status"
    fi
  done
}

stage() {
  local since
  since=$(now_ms)
  doing=$1
  run "${@:2}"
  took "$since" "$1"
}

test_on_18() {
  local binary
  if [[ -n $given_database ]]; then
    say "DATABASE_URL is set: no second run on PostgreSQL 18."
  elif [[ -n $port_18 ]]; then
    for binary in $TEST_BINARIES_ON_18; do
      stage "tests on PostgreSQL 18: $binary" env DATABASE_URL="$(url "$port_18")" cargo test --test "$binary"
    done
  elif [[ -n $server_18 ]]; then
    # As for the clients.
    [[ -z ${CI:-} ]] || fail "PostgreSQL 18 could not be downloaded"
    say "NOT TESTED on PostgreSQL 18, because it could not be downloaded."
  fi
}

mention_clients() {
  [[ -n $CLIENTS_DIR ]] || say "NOT TESTED with kcat, confluent-kafka and kafkajs, because they could not all be installed."
}

# A test spends most of its time waiting for a bridge, a lease or a broker, so there is room for two on a
# core. A person who sets the number knows better.
share_the_cores() {
  export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
}

main() {
  trap cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  install
  took "$began" "tools are there"
  make_scratch
  start_servers
  install_clients
  stage "build" cargo test --no-run
  stage "lint" "$STACK/lint.sh"
  await_servers
  await_clients
  share_the_cores
  # What the tests leave behind when they are killed goes with the rest.
  stage "tests" env TMPDIR="$scratch" cargo test --no-fail-fast
  test_on_18
  mention_clients
}

main
