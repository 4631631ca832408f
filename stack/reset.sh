#!/usr/bin/env bash
# Stops what up.sh started and deletes its data.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$STACK/down.sh"
if "$STACK/docker.sh" available; then "$STACK/docker.sh" reset; fi
rm -rf "$(state_dir)"
say "Its data is gone."
