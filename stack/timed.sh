#!/usr/bin/env bash
# Runs a command and says how long it took: timed.sh NAME COMMAND...
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

since=$(now_ms)
"${@:2}"
took "$since" "$1"
