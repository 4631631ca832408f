#!/usr/bin/env bash
# A PgBouncer in transaction mode in front of a PostgreSQL server, for the tests.
#   pgbouncer.sh bin                                    prints where it is
#   pgbouncer.sh run DIR PORT HOST PORT USER PASSWORD   in the foreground, until it gets a signal
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Debian has it where only root's PATH leads.
find_bin() { PATH=$PATH:/usr/sbin command -v pgbouncer; }

# Fewer connections to the server than one worker has to the pooler, so that every one is shared.
settings() {
  local dir=$1 port=$2 host=$3 server_port=$4
  echo "[databases]"
  echo "* = host=$host port=$server_port"
  echo "[pgbouncer]"
  echo "pool_mode = transaction"
  echo "default_pool_size = 4"
  echo "listen_addr = 127.0.0.1"
  echo "listen_port = $port"
  echo "unix_socket_dir ="
  echo "auth_type = scram-sha-256"
  echo "auth_file = $dir/users"
}

run() {
  local dir=$1 user=$5 password=$6 bin
  bin=$(find_bin) || fail "PgBouncer is not installed: stack/install.sh pgbouncer"
  ensure_server_user
  make_server_dir "$dir"
  settings "$@" | as_server tee "$dir/pgbouncer.ini" >/dev/null
  echo "\"$user\" \"$password\"" | as_server tee "$dir/users" >/dev/null
  # Not as_server, whose subshell would stay between the caller's signals and the server.
  local as=(env)
  if is_root; then as=(setpriv --reuid="$(server_user)" --regid="$(id -g "$(server_user)")" --init-groups); fi
  exec "${as[@]}" "$bin" -q "$dir/pgbouncer.ini"
}

case ${1:-} in
  bin) find_bin ;;
  run) run "${@:2}" ;;
  *) fail "usage: see the head of $0" ;;
esac
