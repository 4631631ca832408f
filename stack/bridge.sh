#!/usr/bin/env bash
# The bridge of this project, in the background, with stack/trestle.toml.
#   bridge.sh check DIR    fails if another program has ADMIN_PORT
#   bridge.sh start DIR    starts it, or starts it again if it is of an older build or configuration
#   bridge.sh stop  DIR
#   bridge.sh alive DIR    succeeds if it runs, whatever it waits for
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

pid() { server_pid "$1" "$1/pid"; }

# The ports come by the environment; the first line tells one choice of them from another.
configuration() {
  echo "# PostgreSQL $PG_PORT, Kafka $KAFKA_PORT, bridge $ADMIN_PORT, bank $BANK_PORT"
  cat "$STACK/trestle.toml"
}

# Of a program that was built again while it runs, the kernel still has the old file.
is_current() {
  local dir=$1 pid
  pid=$(pid "$dir") || return 1
  cmp -s "/proc/$pid/exe" "$(built trestle)" && cmp -s <(configuration) "$dir/trestle.toml"
}

listens() { pid "$1" >/dev/null && grep -qF " bridge $ADMIN_PORT, " "$1/trestle.toml"; }

check() {
  if ! listens "$1"; then require_port "$ADMIN_PORT" "the bridge" ADMIN_PORT; fi
}

# There is a bridge, whatever it waits for.
alive() { listens "$1" && http GET "$ADMIN_PORT" /livez >/dev/null; }

ready() { listens "$1" && http GET "$ADMIN_PORT" /readyz >/dev/null; }

# In a session of its own: an interrupt at the terminal is not meant for the bridge.
launch() {
  local dir=$1
  rm -f "$dir/pid"
  : >"$dir/server.log"
  # shellcheck disable=SC2016 # the inner shell expands it
  DATABASE_URL=$(database_url trestle_bridge) KAFKA_BROKERS=127.0.0.1:$KAFKA_PORT \
    TRESTLE_ADMIN__LISTEN=127.0.0.1:$ADMIN_PORT TRESTLE_RAILS__BANK__URL=http://127.0.0.1:$BANK_PORT/payments \
    setsid --fork bash -c 'echo $$ >"$1/pid"; exec "${@:2}" >>"$1/server.log" 2>&1' bridge "$dir" \
    "$(built trestle)" --config "$dir/trestle.toml" run </dev/null >/dev/null 2>&1
}

# Up to 30 s. Gives up at once when the process is gone. While it turns into the program, it has
# no command line to know it by.
await_ready() {
  for _ in {1..300}; do
    if ready "$1"; then return; fi
    if [[ -s $1/pid ]] && is_gone "$(cat "$1/pid")"; then return 1; fi
    sleep 0.1
  done
  return 1
}

why_not() { http GET "$ADMIN_PORT" /readyz || true; }

# Of one that runs already, and has too much work or too little answer, another start helps nobody.
start() {
  local dir=$1 why
  check "$dir"
  if is_current "$dir"; then
    if ! ready "$dir"; then say "The bridge runs, but is not ready: $(why_not)"; fi
    return
  fi
  stop "$dir"
  mkdir -p "$dir"
  configuration >"$dir/trestle.toml"
  launch "$dir"
  if ! await_ready "$dir"; then
    show_log "$dir/server.log"
    why=$(why_not)
    fail "the bridge did not become ready on port $ADMIN_PORT${why:+: $why}"
  fi
}

stop() { stop_server "$1" "$1/pid" TERM; }

case ${1:-} in
  check | start | stop | alive) "$@" ;;
  *) fail "usage: see the head of $0" ;;
esac
