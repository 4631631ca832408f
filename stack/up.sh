#!/usr/bin/env bash
# Starts PostgreSQL, Kafka and the bridge, with schema, logins, topics and policies, and says
# how to connect. Once more changes nothing, unless the sources have changed.
# STACK_MODE=native or STACK_MODE=docker skips the choice between the two.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

mode() {
  if [[ -n ${STACK_MODE:-} ]]; then
    echo "$STACK_MODE"
  elif "$STACK/docker.sh" available; then
    echo docker
  else
    echo native
  fi
}

start_native() {
  local dir started
  dir=$(state_dir)
  started=$(now_ms)
  "$STACK/postgres.sh" start "$dir/postgres" "$PG_PORT" durable && took "$started" "PostgreSQL on port $PG_PORT" &
  local postgres=$!
  "$STACK/kafka.sh" start "$dir/kafka" "$KAFKA_PORT" durable && took "$started" "Kafka on port $KAFKA_PORT" &
  local kafka=$! failed=0
  wait "$postgres" || failed=1
  wait "$kafka" || failed=1
  return "$failed"
}

prepare_native() {
  local dir
  dir=$(state_dir)
  "$STACK/postgres.sh" check "$dir/postgres" "$PG_PORT"
  "$STACK/kafka.sh" check "$dir/kafka" "$KAFKA_PORT"
  "$STACK/bridge.sh" check "$dir/bridge"
  "$STACK/install.sh" build postgres kafka
}

prepare_docker() {
  "$STACK/docker.sh" check
  "$STACK/bridge.sh" check "$(state_dir)/bridge"
  "$STACK/install.sh" build
}

build() { cargo build --bin trestle --example demo; }

# The servers start while cargo compiles.
start_and_build() {
  local servers failed=
  case $1 in
    native) start_native & ;;
    docker) "$STACK/docker.sh" up & ;;
  esac
  servers=$!
  build || failed="the build failed"
  wait "$servers" || failed="the servers did not all start"
  [[ -z $failed ]] || fail "$failed, see above. What runs is left running; make down stops it"
}

# trestle AS-WHOM COMMAND...
trestle() {
  DATABASE_URL=$(database_url "$1") KAFKA_BROKERS=127.0.0.1:$KAFKA_PORT \
    "$(built trestle)" --config "$STACK/trestle.toml" "${@:2}"
}

create_logins() { "$STACK/psql.sh" -X -q -v ON_ERROR_STOP=1 -f - <"$STACK/roles.sql"; }

create_topics() { KAFKA_BROKERS=127.0.0.1:$KAFKA_PORT "$(built examples/demo)" topics; }

# The bridge refuses to run under other policies than those in force.
apply_policies() { trestle trestle_operator policies --apply --reason "make up" --actor "make up" >/dev/null; }

start_bridge() {
  local started
  started=$(now_ms)
  "$STACK/bridge.sh" start "$(state_dir)/bridge"
  took "$started" "the bridge on port $ADMIN_PORT"
}

print_connections() {
  cat <<EOF

The stack is up.

  administrator  DATABASE_URL=$(database_url trestle)
  application    DATABASE_URL=$(database_url trestle_app)
  bridge         DATABASE_URL=$(database_url trestle_bridge)
  operator       DATABASE_URL=$(database_url trestle_operator)
  Kafka          KAFKA_BROKERS=127.0.0.1:$KAFKA_PORT

The bridge runs as trestle_bridge: http://127.0.0.1:$ADMIN_PORT/metrics
Its log: $(state_dir)/bridge/server.log

Next: make demo    then: make break    look at the database: make psql    stop: make down
EOF
}

main() {
  local mode
  mode=$(mode)
  case $mode in native | docker) ;; *) fail "STACK_MODE is $mode, but can only be native or docker" ;; esac
  "prepare_$mode"
  start_and_build "$mode"
  trestle trestle migrate
  create_logins
  create_topics
  apply_policies
  start_bridge
  print_connections
}

main
