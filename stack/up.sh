#!/usr/bin/env bash
# Starts PostgreSQL and Kafka, migrates, creates the logins, says how to connect.
# STACK_MODE=native or STACK_MODE=docker skips the choice between the two.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

url() { echo "postgres://$1:$1@localhost:$PG_PORT/trestle"; }

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
  "$STACK/install.sh" build postgres kafka
}

prepare_docker() {
  "$STACK/docker.sh" check
  "$STACK/install.sh" build
}

build() { cargo build --bin trestle; }

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

migrate() { DATABASE_URL=$(url trestle) cargo run --quiet --bin trestle -- migrate; }

create_logins() { "$STACK/psql.sh" -X -q -v ON_ERROR_STOP=1 -f - <"$STACK/roles.sql"; }

print_connections() {
  cat <<EOF

The stack is up.

  administrator  DATABASE_URL=$(url trestle)
  application    DATABASE_URL=$(url trestle_app)
  bridge         DATABASE_URL=$(url trestle_bridge)
  operator       DATABASE_URL=$(url trestle_operator)
  Kafka          KAFKA_BROKERS=127.0.0.1:$KAFKA_PORT

Next: cargo run -- --help    look at the database: make psql    stop: make down
EOF
}

main() {
  local mode
  mode=$(mode)
  case $mode in native | docker) ;; *) fail "STACK_MODE is $mode, but can only be native or docker" ;; esac
  "prepare_$mode"
  start_and_build "$mode"
  migrate
  create_logins
  print_connections
}

main
