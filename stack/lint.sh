#!/usr/bin/env bash
# Everything that can be said about the sources without running them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$PROJECT"

cargo fmt --check
cargo clippy --all-targets -- -D warnings
"$STACK/lint-sql.sh"
if command -v shellcheck >/dev/null; then
  shellcheck -x -P stack stack/*.sh examples/consumers/*.sh .ci/run
else
  say "NOT CHECKED: shell scripts, because shellcheck is not installed: stack/install.sh lint"
fi
if command -v cargo-deny >/dev/null; then
  cargo deny check bans licenses sources
else
  say "NOT CHECKED: licences and sources of the dependencies, because cargo-deny is not installed: cargo install cargo-deny"
fi
