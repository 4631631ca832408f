#!/usr/bin/env bash
# Everything that can be said about the sources without running them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

cargo fmt --check
cargo clippy --all-targets -- -D warnings
if command -v cargo-deny >/dev/null; then cargo deny check bans licenses sources; fi
if command -v shellcheck >/dev/null; then shellcheck -x -P stack stack/*.sh examples/consumers/*.sh .ci/run; fi
"$STACK/lint-sql.sh"
