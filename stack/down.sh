#!/usr/bin/env bash
# Stops what up.sh started, natively or in containers. The data stays.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$(state_dir)
# First, so that it can write down what became of the rows under way.
"$STACK/bridge.sh" stop "$dir/bridge"
"$STACK/kafka.sh" stop "$dir/kafka" &
"$STACK/postgres.sh" stop "$dir/postgres"
wait
if "$STACK/docker.sh" available; then "$STACK/docker.sh" down; fi
say "The stack is down."
