#!/usr/bin/env bash
# Shared by demo.sh and break.sh: payments, the far end where they arrive, and how both end.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

# The instructions of this run begin like this. Whatever else is in the outbox is not its concern.
RUN=demo-$(date +%s)-$$
payments=0
statements=()
watcher=
arrivals=
key=

title() {
  if [[ -t 1 ]]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi
}

bring_up() {
  local log
  if ! "$STACK/bridge.sh" alive "$(state_dir)/bridge"; then
    say "The stack is not up: running make up first."
    "$STACK/up.sh"
    return
  fi
  # It may be of older sources, or its broker may be gone.
  log=$(mktemp)
  if ! "$STACK/up.sh" >"$log" 2>&1; then
    show_log "$log"
    rm -f "$log"
    fail "the stack is not up any more, and make up failed"
  fi
  rm -f "$log"
}

# How both begin. The cleanup is that of the script.
begin() {
  bring_up
  trap cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  open_far_end
}

# In a session of its own: an interrupt at the terminal must not close the bank before its rows are paid.
open_far_end() {
  require_port "$BANK_PORT" "the demo's bank" BANK_PORT
  exec {arrivals}< <(exec setsid "$(built examples/demo)" --brokers "127.0.0.1:$KAFKA_PORT" \
    watch --bank-port "$BANK_PORT" --instructions "$RUN")
  watcher=$!
  await 1 ready 30 || fail "the demo's bank and consumer did not start"
}

# The bank stays until what was committed for it is paid, so that nothing is left waiting.
close_far_end() {
  [[ -n $watcher ]] || return 0
  http PUT "$BANK_PORT" /answer/200 >/dev/null || true
  await_all_delivered || say "Some payments of this demo still wait; the next demo's bank takes them."
  kill "$watcher" 2>/dev/null || true
  watcher=
}

bank_answers() { http PUT "$BANK_PORT" "/answer/$1" >/dev/null || fail "the demo's bank is gone"; }

# Adds a payment to the next transaction: pay RAIL PARTICIPANT...
pay() {
  local participant
  for participant in "${@:2}"; do
    payments=$((payments + 1))
    statements+=("SELECT * FROM outbox.enqueue_payment_outbox('$RUN-$payments', '$participant', 'pay', '$1', '{\"amount\": \"$payments.00\", \"currency\": \"EUR\", \"destination\": \"rent\"}');")
  done
}

# Ends the transaction as the application would: finish COMMIT|ROLLBACK
# Prints how many of the rows are new.
finish() {
  local rows
  rows=$(printf '%s\n' BEGIN\; "${statements[@]}" "$1;" |
    PG_LOGIN=trestle_app "$STACK/psql.sh" -X -q -A -t -v ON_ERROR_STOP=1 -f -) || return 1
  grep -c '|t$' <<<"$rows" || true
}

commit() {
  finish COMMIT >/dev/null
  statements=()
}

# A question to the ledger, as the operator.
ask() { PG_LOGIN=trestle_operator "$STACK/psql.sh" -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"; }

ours() { echo "instruction_id LIKE '$RUN-%'"; }

pending() { ask "SELECT count(*) FROM outbox.payment_outbox_pending WHERE $(ours)"; }

# Up to 60 s, as long as there is a bridge. It says what it returns, because in a trap a plain
# return means the status of what the signal interrupted.
await_all_delivered() {
  for _ in {1..120}; do
    if [[ $(pending) == 0 ]]; then return 0; fi
    "$STACK/bridge.sh" alive "$(state_dir)/bridge" || return 1
    sleep 0.5
  done
  return 1
}

show_arrival() {
  case $1 in
    ready) ;;
    late) say "  $2  OVERTAKEN" ;;
    again) say "  $2  (again)" ;;
    *) say "  $2" ;;
  esac
}

# Shows what arrives until there were so many of a kind: await COUNT KIND SECONDS
# Fails when the time is over, or at once when a payment was overtaken. The last Idempotency-Key
# is left in $key.
await() {
  local count=$1 until=$((SECONDS + $3)) kind text
  while ((count > 0)); do
    if ((SECONDS >= until)); then return 1; fi
    # shellcheck disable=SC2034 # for the scripts that source this one
    IFS=$'\t' read -r -t $((until - SECONDS)) -u "$arrivals" kind text key || return 1
    show_arrival "$kind" "$text"
    if [[ $kind == late ]]; then return 1; fi
    if [[ $kind == "$2" ]]; then count=$((count - 1)); fi
  done
}

# Shows what arrives for so many seconds.
watch() { await 1000000 nothing "$1" || true; }
