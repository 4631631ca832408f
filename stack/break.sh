#!/usr/bin/env bash
# Breaks the bank, then the broker, then lets the bank refuse a payment, and shows what becomes
# of the payments. Whatever was broken is mended at the end, also after an interrupt.
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"

broker_is_down=
log=$(state_dir)/bridge/server.log
log_seen=0

broker() {
  if "$STACK/docker.sh" available && "$STACK/docker.sh" running postgres; then
    "$STACK/docker.sh" broker "$1" >/dev/null 2>&1 || fail "the broker did not $1"
  elif [[ $1 == stop ]]; then
    "$STACK/kafka.sh" stop "$(state_dir)/kafka"
  else
    # The broker must not inherit what cleanup ignores: it would be deaf to the signal that stops it.
    (trap - INT TERM HUP && exec setsid --wait "$STACK/kafka.sh" start "$(state_dir)/kafka" "$KAFKA_PORT" durable)
  fi
}

start_broker() {
  broker start
  broker_is_down=
}

# A payment that the bank has refused is not left behind, in case the story ended before its replay.
replay_refused() {
  http PUT "$BANK_PORT" /answer/200 >/dev/null || return 0
  ask "SELECT r.sequence_id
       FROM outbox.payment_outbox_failures AS f JOIN outbox.payment_outbox_attempts AS a USING (outbox_id)
       CROSS JOIN LATERAL outbox.replay_failed_outbox(f.outbox_id, 'make break', 'the bank was only playing') AS r
       WHERE f.resolution IS NULL AND a.state = 'FAILED' AND a.$(ours)" >/dev/null
}

cleanup() {
  local status=$?
  trap '' INT TERM HUP
  set +e
  if [[ -n $broker_is_down ]]; then
    say "Starting the broker again."
    # It may still be on its way down.
    broker stop
    start_broker
  fi
  if [[ -n $watcher ]]; then replay_refused; fi
  close_far_end
  exit "$status"
}

# Prints the value of a rail's gauge: gauge NAME RAIL
gauge() { http GET "$ADMIN_PORT" /metrics | sed -nE "s/^$1\{rail=\"$2\"\} ([0-9.]+)$/\1/p"; }

# The bridge takes the sample every 5 s: up to 30 s.
await_breaker() {
  for _ in {1..60}; do
    if [[ $(gauge rail_breaker_open "$1") == "$2" ]]; then return; fi
    sleep 0.5
  done
  fail "the breaker of $1 did not become $2"
}

# What the bridge has logged about destinations since the last time.
show_log_news() {
  tail -n "+$((log_seen + 1))" "$log" | grep -E '"destination":' |
    sed -nE 's/^.*"level":"([A-Z]+)".*"message":"([^"]*)".*"destination":"([^"]*)".*$/  log      \1 \3: \2/p' | uniq || true
  log_seen=$(wc -l <"$log")
}

# How many attempts of this run the ledger has: attempts STATE RAIL
attempts() {
  ask "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = '$1' AND rail_type = '$2' AND $(ours)"
}

show_trouble() {
  await_breaker "$1" 1
  say "  metrics  rail_breaker_open{rail=\"$1\"} 1"
  show_log_news
  say "  ledger   $(attempts RETRYABLE "$1") attempts RETRYABLE, $(attempts FAILED "$1") FAILED; $(pending) payments wait"
}

break_bank() {
  title "1. The bank answers 503. Six payments for it are committed:"
  bank_answers 503
  pay bank alice bob carol alice bob carol
  commit
  watch 5
  say "  One probe after 1 s, 2 s, 4 s, ...; nothing else is sent to a bank that is down."
  show_trouble bank
  title "   The bank is back:"
  bank_answers 200
  await 6 new 60 || fail "not all payments arrived in order"
  show_log_news
}

break_broker() {
  title "2. The broker is stopped. Six payments for it are committed:"
  broker_is_down=yes
  broker stop
  pay kafka alice bob carol alice bob carol
  commit
  say "  The bridge waits 5 s for the broker's word (delivery_timeout_seconds) before it gives up for now."
  show_trouble kafka
  title "   The broker is started:"
  start_broker
  await 6 new 90 || fail "not all payments arrived in order"
  show_log_news
  [[ $(attempts FAILED bank) == 0 && $(attempts FAILED kafka) == 0 ]] || fail "a payment failed, although only its rail was down"
  say "  Nothing FAILED: a rail that is down costs time, but no payment."
}

refuse_payment() {
  local first
  title "3. The bank refuses a payment for good (422):"
  bank_answers 422
  pay bank dave
  commit
  await 1 refused 30 || fail "the payment did not reach the bank"
  first=$key
  say "  It is FAILED, and its dead letter is on the topic payments.dlq:"
  await 1 letter 30 || fail "the dead letter did not arrive"
  replay "$first"
}

replay() {
  local failed
  failed=$(ask "SELECT outbox_id FROM outbox.payment_outbox_attempts WHERE state = 'FAILED' AND $(ours)")
  title "   The operator has made sure that the bank takes it now, and sends it again:"
  bank_answers 200
  say "  SELECT * FROM outbox.replay_failed_outbox('$failed', 'you', 'the account is open');"
  ask "SELECT FROM outbox.replay_failed_outbox('$failed', 'you', 'the account is open')" >/dev/null
  await 1 new 30 || fail "the payment did not arrive"
  [[ $key == "$1" ]] || fail "it came with another Idempotency-Key"
  say "  The same Idempotency-Key as before: had the bank booked it after all, it would not pay twice."
}

main() {
  begin
  log_seen=$(wc -l <"$log")
  break_bank
  break_broker
  refuse_payment
  await_all_delivered || fail "the outbox still has payments"
  await_breaker bank 0
  await_breaker kafka 0
  title "All $payments payments arrived in order. The stack is whole again."
  say "Next: kill -9 $(cat "$(state_dir)/bridge/pid")    the bridge; then make demo starts another one"
}

main
