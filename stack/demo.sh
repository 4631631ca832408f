#!/usr/bin/env bash
# Sends payments by SQL over a Kafka rail and an HTTP rail, and shows them arriving in order.
# Ends with 0 only when all of them did.
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"

cleanup() {
  local status=$?
  trap '' INT TERM HUP
  set +e
  close_far_end
  exit "$status"
}

one_transaction() {
  for _ in 1 2; do
    pay kafka alice bob carol
    pay bank alice bob carol
  done
  title "1. An application commits $payments payments in one transaction, as trestle_app:"
  # The payload on a line of its own: it is long.
  printf '  BEGIN;\n  %s\n  ... %s more ...\n  COMMIT;\n' "${statements[0]/, \'{/$',\n    \'{'}" "$((payments - 1))"
  finish COMMIT >/dev/null
  title "2. They arrive (participant, number, place, some headers, value):"
  await "$payments" new 30 || fail "not all $payments payments arrived in order"
}

the_same_again() {
  local new
  title "3. The application is not sure whether it committed, and does the same again:"
  new=$(finish COMMIT)
  statements=()
  [[ $new == 0 ]] || fail "$new rows are new, but the keys were used before"
  say "  $payments calls, $new new rows: the keys were used before, so nothing is sent twice."
}

roll_back() {
  title "4. Three payments are rolled back, then one is committed:"
  pay kafka alice alice alice
  finish ROLLBACK >/dev/null
  statements=()
  payments=$((payments - 3))
  pay kafka alice
  commit
  await 1 new 30 || fail "the payment did not arrive"
  say "  The next number, without a gap: what is rolled back was never there."
}

main() {
  begin
  one_transaction
  the_same_again
  roll_back
  await_all_delivered || fail "the outbox still has payments of this demo"
  title "All $payments payments arrived: in order for each participant on each rail, none lost, none twice."
  say "Next: make break           the bank and the broker fail, and nothing is lost"
  say "      make psql            SELECT state, rail_type, count(*) FROM outbox.payment_outbox_attempts GROUP BY 1, 2;"
  say "      http://127.0.0.1:$ADMIN_PORT/metrics"
}

main
