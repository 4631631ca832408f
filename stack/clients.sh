#!/usr/bin/env bash
# The Kafka clients that the tests read topics with: kcat, confluent-kafka and kafkajs.
#   clients.sh cached     succeeds if the last two need no download
#   clients.sh python     prints a Python that can make an environment of its own
#   clients.sh path       prints where they are: python/bin/python and node_modules
#   clients.sh install    downloads them the first time, and ends with 3 if one of the three
#                         cannot be had
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CONFLUENT_KAFKA=confluent-kafka==2.16.1
KAFKAJS=kafkajs@2.2.4
# Named after the versions, so that a change of one is a new download.
CLIENTS=$(cache_dir)/clients-$(sha256sum <<<"$CONFLUENT_KAFKA $KAFKAJS" | cut -c1-12)

# Debian ships Python without ensurepip until python3-venv is installed.
find_python() {
  local python
  for python in "$(command -v python3 || true)" /usr/bin/python3; do
    if [[ -x $python ]] && "$python" -c 'import ensurepip, venv' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

# It runs them, because the Python below may have been replaced since.
works() {
  "$1/python/bin/python" -c 'import confluent_kafka' && NODE_PATH=$1/node_modules node -e 'require("kafkajs")'
}

cached() { [[ -d $CLIENTS ]] && works "$CLIENTS" 2>/dev/null; }

# Chained, because its caller's `if` switches errexit off.
unpack() {
  local new=$1 python
  python=$(find_python) &&
    "$python" -m venv "$new/python" &&
    "$new/python/bin/python" -m pip install --no-input --only-binary :all: "$CONFLUENT_KAFKA" &&
    npm install --prefix "$new" --ignore-scripts --no-audit --no-fund "$KAFKAJS" &&
    chmod -R a+rX "$new" &&
    works "$new"
}

download() {
  local new=$CLIENTS.$$ log
  log=$(mktemp)
  rm -rf "$CLIENTS"
  mkdir -p "$new"
  if ! unpack "$new" >"$log" 2>&1; then
    show_log "$log"
    rm -rf "$new" "$log"
    say "$CONFLUENT_KAFKA and $KAFKAJS could not both be had." >&2
    exit 3
  fi
  rm -f "$log"
  mv -T "$new" "$CLIENTS" 2>/dev/null || rm -rf "$new"
}

install() {
  if ! command -v kcat >/dev/null; then
    say "kcat is not installed." >&2
    exit 3
  fi
  cached || download
}

case ${1:-} in
  python) find_python ;;
  path) echo "$CLIENTS" ;;
  cached | install) "$@" ;;
  *) fail "usage: see the head of $0" ;;
esac
