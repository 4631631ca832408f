#!/usr/bin/env bash
# The stack in containers.
#   docker.sh available           succeeds if a Docker engine and compose answer
#   docker.sh check               fails if another program has one of the ports
#   docker.sh up | down | reset
#   docker.sh running SERVICE     succeeds if that container runs
#   docker.sh broker stop|start   the broker alone
#   docker.sh psql [ARGUMENTS]    psql inside the PostgreSQL container, as PG_LOGIN
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

compose() {
  if docker compose version >/dev/null 2>&1; then
    docker compose "$@"
  else
    docker-compose "$@"
  fi
}

available() {
  command -v docker >/dev/null && docker info >/dev/null 2>&1 || return 1
  docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null
}

# What docker knows about a service's container: state_of SERVICE TEMPLATE
state_of() {
  local id
  id=$(compose ps -q "$1" 2>/dev/null) && [[ -n $id ]] || return 1
  docker inspect -f "$2" "$id"
}

running() { [[ $(state_of "$1" '{{.State.Running}}') == true ]]; }

published() {
  running "$1" && [[ $(compose port "$1" "$2" 2>/dev/null) == *":$3" ]]
}

check() {
  published postgres 5432 "$PG_PORT" || require_port "$PG_PORT" PostgreSQL PG_PORT
  published redpanda 9092 "$KAFKA_PORT" || require_port "$KAFKA_PORT" Kafka KAFKA_PORT
}

# Older versions of compose cannot wait. Up to 90 s.
await_healthy() {
  local service=$1
  for _ in {1..90}; do
    [[ $(state_of "$service" '{{.State.Health.Status}}') != healthy ]] || return 0
    sleep 1
  done
  return 1
}

up_and_wait() {
  if compose up --help 2>/dev/null | grep -q -- '--wait'; then
    compose up -d --wait
  else
    compose up -d && await_healthy postgres && await_healthy redpanda
  fi
}

up() {
  check
  if ! up_and_wait; then
    compose logs --tail=20 >&2 || true
    fail "the containers did not start"
  fi
}

# With what only runs where somebody asked for it.
down() { compose --profile monitoring down; }
reset() { compose --profile monitoring down --volumes; }

broker() {
  compose "$1" redpanda
  if [[ $1 == start ]]; then await_healthy redpanda; fi
}

psql() {
  local options=()
  [[ -t 0 ]] || options=(-T)
  compose exec "${options[@]}" postgres psql -U "${PG_LOGIN:-trestle}" -d trestle "$@"
}

case ${1:-} in
  available | check | up | down | reset | running | broker | psql) "$@" ;;
  *) fail "usage: see the head of $0" ;;
esac
