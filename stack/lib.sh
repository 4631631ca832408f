#!/usr/bin/env bash
# Shared by the scripts of the stack: where things live, who runs the servers,
# which ports are free, and how a server is stopped.
set -euo pipefail

PROJECT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for the scripts that source this one
STACK=$PROJECT/stack
PG_PORT=${PG_PORT:-54320}
KAFKA_PORT=${KAFKA_PORT:-9092}
ADMIN_PORT=${ADMIN_PORT:-9464}
BANK_PORT=${BANK_PORT:-9480}
# shellcheck disable=SC2034 # as above
PG_PASSWORD=trestle
# docker-compose.yml reads the first two.
export PG_PORT KAFKA_PORT ADMIN_PORT BANK_PORT

# rustup adds itself to the PATH of new shells only.
if [[ -d ${CARGO_HOME:-${HOME:-/root}/.cargo}/bin ]]; then
  PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
fi

say() { printf '%s\n' "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

is_root() { [[ $(id -u) -eq 0 ]]; }

# PostgreSQL refuses to run as root, so root lends both servers another user.
server_user() {
  if ! is_root; then
    id -un
  elif id -u postgres >/dev/null 2>&1; then
    echo postgres
  else
    echo trestle
  fi
}

ensure_server_user() {
  local user
  user=$(server_user)
  id -u "$user" >/dev/null 2>&1 || useradd --system --home-dir / --shell /usr/sbin/nologin "$user"
}

# From / because the project may lie where the other user cannot go.
as_server() {
  if ! is_root; then
    (cd / && exec "$@")
    return
  fi
  local user
  user=$(server_user)
  (cd / && exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups env HOME=/ "$@")
}

# Root's cache lies outside /root, where the servers' user can read it.
cache_dir() {
  if is_root; then
    echo /var/cache/trestle
  else
    echo "${XDG_CACHE_HOME:-$HOME/.cache}/trestle"
  fi
}

state_dir() {
  if is_root; then
    echo "/var/lib/trestle/$(printf '%s' "$PROJECT" | sha256sum | cut -c1-12)"
  else
    echo "$PROJECT/.stack"
  fi
}

# Makes a server's directory, owned by the user who runs the server.
make_server_dir() {
  mkdir -p "$1"
  if is_root; then
    chown "$(server_user)" "$1"
  fi
}

# Where up.sh's build has put a program: built trestle, built examples/demo
# cargo run would compile most of it again, because the features differ without the example.
built() {
  local folder
  folder=$(cd "$PROJECT" && cargo metadata --no-deps --format-version 1 | sed -nE 's/.*"target_directory":"([^"]+)".*/\1/p')
  echo "$folder/debug/$1"
}

# The development logins have their name for a password.
database_url() { echo "postgres://$1:$1@localhost:$PG_PORT/trestle"; }

# Prints the body of the answer, and fails if that is not 200: http METHOD PORT PATH
# By the shell alone, because a fresh machine has no curl.
http() {
  local answer
  answer=$({
    printf '%s %s HTTP/1.0\r\nContent-Length: 0\r\n\r\n' "$1" "$3" >&3
    timeout 5 cat <&3
  } 3<>"/dev/tcp/127.0.0.1/$2") || return 1
  if [[ $answer == *$'\r\n\r\n'* ]]; then printf '%s\n' "${answer#*$'\r\n\r\n'}"; fi
  [[ $answer == HTTP/1.[01]\ 200\ * ]]
} 2>/dev/null

port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Below the range from which the kernel takes ports for outgoing connections.
free_port() {
  local port attempt
  for attempt in {1..100}; do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if ! port_open "$port"; then
      echo "$port"
      return
    fi
  done
  fail "no free port found in $attempt attempts"
}

# Fails if the port stays taken. A server that was just killed needs a moment: up to 2 s.
require_port() {
  for _ in {1..20}; do
    port_open "$1" || return 0
    sleep 0.1
  done
  fail "port $1 is taken by another program, $2 cannot use it. Choose another one: $3=$(free_port) make up"
}

show_log() {
  if [[ -s $1 ]]; then
    printf -- '--- the last lines of %s\n' "$1" >&2
    tail -n 20 "$1" >&2
  fi
}

# Prints the process id in a pid file if that process still is the server that
# belongs to the directory, and not a later process with the same number.
server_pid() {
  local dir=$1 pid_file=$2 pid
  pid=$(head -n 1 "$pid_file" 2>/dev/null) && [[ -n $pid ]] || return 1
  grep -qaF -- "$dir/" "/proc/$pid/cmdline" 2>/dev/null || return 1
  echo "$pid"
}

# A process that dies has closed its ports only when it is gone, or a zombie.
is_gone() { [[ ! -e /proc/$1 ]] || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# Sends the signal, waits up to 30 s, then kills.
stop_server() {
  local dir=$1 pid_file=$2 signal=$3 pid
  pid=$(server_pid "$dir" "$pid_file") || return 0
  kill -s "$signal" "$pid" 2>/dev/null || return 0
  for _ in {1..300}; do
    if is_gone "$pid"; then return 0; fi
    sleep 0.1
  done
  kill -s KILL "$pid" 2>/dev/null || true
}

now_ms() { date +%s%3N; }

# Says how long a stage took: took <since, from now_ms> <stage>
took() {
  local ms=$(($(now_ms) - $1))
  printf '%6d.%d s  %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$2"
}

# Makes a directory for servers of the script's own, $scratch/postgres and $scratch/kafka: both are stopped and
# gone with it when the script ends.
own_scratch() {
  scratch=$(mktemp -d "/tmp/trestle-$1.XXXXXX")
  chmod 755 "$scratch"
  trap remove_scratch EXIT
  trap 'exit 130' INT TERM HUP
}

remove_scratch() {
  local status=$?
  set +e
  "$STACK/kafka.sh" stop "$scratch/kafka" now
  "$STACK/postgres.sh" stop "$scratch/postgres" now
  rm -rf "$scratch"
  exit "$status"
}
