#!/usr/bin/env bash
# A PostgreSQL server from the machine's own binaries.
#   postgres.sh bin                                     prints where they are
#   postgres.sh major BIN                               prints their major version
#   postgres.sh check DIR PORT                          fails if another program has the port
#   postgres.sh start DIR PORT durable|throwaway|bench|secured [BIN]
#   postgres.sh stop  DIR [now]
#   postgres.sh lend  DIR KIND                          starts it on a free port, says which, and removes
#                                                       it with DIR when standard input ends
# With STANDBY_OF, the port of another such server, start and lend make new data as a copy of that server's, and
# follow it.
# A secured one is a throw-away server for tests that speaks TLS. It reads ca.pem, server.pem, server.key
# and pg_hba.conf in DIR.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Debian's packages first, newest first: what is in the PATH there is a wrapper.
bin_candidates() {
  { compgen -G '/usr/lib/postgresql/*/bin' || true; } | sort -t/ -k5,5nr
  local in_path
  if in_path=$(command -v postgres); then dirname "$(readlink -f "$in_path")"; fi
  { compgen -G '/usr/pgsql-*/bin' || true; } | sort -Vr
  echo /usr/local/pgsql/bin
}

find_bin() {
  local dir
  while read -r dir; do
    if [[ -x $dir/postgres && -x $dir/initdb && -x $dir/pg_ctl ]]; then
      echo "$dir"
      return
    fi
  done < <(bin_candidates)
  return 1
}

major() { "$1/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/'; }

running_port() {
  server_pid "$1" "$1/data/postmaster.pid" >/dev/null && sed -n 4p "$1/data/postmaster.pid"
}

check() {
  if [[ $(running_port "$1") != "$2" ]]; then require_port "$2" PostgreSQL PG_PORT; fi
}

# Under another name until it is whole, so that an interrupted start leaves nothing
# behind. Chained, because its caller's `if` switches errexit off.
create_data() {
  local dir=$1 bin=$2 new=$1/data.new options=(-U trestle -A scram-sha-256 -E UTF8 --locale=C)
  [[ $3 != throwaway && $3 != secured ]] || options+=(--no-sync)
  rm -rf "$new"
  as_server tee "$dir/password" >/dev/null <<<"$PG_PASSWORD" &&
    as_server "$bin/initdb" -D "$new" --pwfile="$dir/password" "${options[@]}" &&
    rm -f "$dir/password" &&
    echo "include 'stack.conf'" | as_server tee -a "$new/postgresql.conf" >/dev/null &&
    as_server touch "$new/stack.conf" &&
    as_server "$bin/postgres" --single -D "$new" postgres <<<'CREATE DATABASE trestle' &&
    mv "$new" "$dir/data"
}

# In the same way. What it follows stands in the copy, with the password.
copy_data() {
  local dir=$1 bin=$2 new=$1/data.new
  rm -rf "$new"
  PGPASSWORD=$PG_PASSWORD as_server "$bin/pg_basebackup" -D "$new" -d "host=localhost port=$STANDBY_OF user=trestle" \
    --write-recovery-conf --checkpoint=fast --no-sync &&
    mv "$new" "$dir/data"
}

new_data() { if [[ -n ${STANDBY_OF:-} ]]; then copy_data "$@"; else create_data "$@"; fi; }

# A key that others could read, or that belongs to somebody else, is refused.
copy_key() (
  umask 077
  as_server tee "$1/data/server.key" <"$1/server.key" >/dev/null
)

secured_settings() {
  echo "ssl = on"
  echo "ssl_ca_file = '$1/ca.pem'"
  echo "ssl_cert_file = '$1/server.pem'"
  echo "hba_file = '$1/pg_hba.conf'"
}

settings() {
  local dir=$1 port=$2 kind=$3 bin=$4
  if [[ $kind == secured ]]; then
    secured_settings "$dir"
    kind=throwaway
  fi
  echo "port = $port"
  echo "listen_addresses = 'localhost'"
  # A socket's path has room for 107 characters.
  if ((${#dir} < 80)); then echo "unix_socket_directories = '$dir/data'"; else echo "unix_socket_directories = ''"; fi
  echo "timezone = 'UTC'"
  echo "log_timezone = 'UTC'"
  echo "wal_level = replica"
  echo "max_prepared_transactions = 20"
  if [[ -e $bin/../lib/pg_stat_statements.so || -e $bin/../lib/postgresql/pg_stat_statements.so ]]; then
    echo "shared_preload_libraries = 'pg_stat_statements'"
  fi
  if [[ $kind == throwaway ]]; then
    echo "max_connections = 500"
    echo "shared_buffers = 256MB"
    echo "fsync = off"
    echo "full_page_writes = off"
    # Who is stopped by a test while it logs in would keep every DROP DATABASE waiting for a minute.
    echo "authentication_timeout = 10s"
  else
    echo "max_connections = 200"
  fi
  # A checkpoint in one case and not in the other would spoil the comparison.
  if [[ $kind == bench ]]; then
    echo "shared_buffers = 1GB"
    echo "max_wal_size = 32GB"
    echo "checkpoint_timeout = 1h"
  fi
}

# The number in a stale pid file may belong to another program by now, which
# PostgreSQL would take for a running server.
forget_reused_pid() {
  local pid_file=$1/data/postmaster.pid pid
  pid=$(head -n 1 "$pid_file" 2>/dev/null) || return 0
  if grep -qa . "/proc/$pid/cmdline" 2>/dev/null && ! server_pid "$1" "$pid_file" >/dev/null; then
    rm -f "$pid_file"
  fi
}

# A killed server that nobody buries keeps its number, but has no command line.
forget_zombie() {
  local pid
  pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) || return 0
  if grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; then rm -f "$1/data/postmaster.pid"; fi
}

# After a crash the old server and its children may need a moment to go: up to 10 s.
launch() {
  local dir=$1 bin=$2 attempt
  forget_reused_pid "$dir"
  for attempt in {1..20}; do
    as_server truncate -s 0 "$dir/server.log"
    if as_server "$bin/pg_ctl" start -w -t 60 -s -D "$dir/data" -l "$dir/server.log" >/dev/null 2>&1; then return; fi
    grep -qE 'shared memory block|lock file .* already exists' "$dir/server.log" || return 1
    sleep 0.5
    if ((attempt == 10)); then forget_zombie "$dir"; fi
  done
  return 1
}

bin_for_data() {
  local dir=$1 version
  version=$(cat "$dir/data/PG_VERSION" 2>/dev/null) || { find_bin; return; }
  local bin
  while read -r bin; do
    if [[ -x $bin/pg_ctl && $(major "$bin") == "$version" ]]; then
      echo "$bin"
      return
    fi
  done < <(bin_candidates)
  fail "the data in $dir belongs to PostgreSQL $version, which is not installed any more. Install it, or forget the data: make reset"
}

start() {
  local dir=$1 port=$2 kind=$3 bin=${4:-}
  check "$dir" "$port"
  [[ $(running_port "$dir") != "$port" ]] || return 0
  stop "$dir"
  ensure_server_user
  make_server_dir "$dir"
  [[ -n $bin ]] || bin=$(bin_for_data "$dir") || fail "PostgreSQL is not installed"
  if [[ ! -d $dir/data ]]; then
    if ! new_data "$dir" "$bin" "$kind" >"$dir/initdb.log" 2>&1; then
      show_log "$dir/initdb.log"
      fail "PostgreSQL could not create its data in $dir"
    fi
  fi
  if [[ $kind == secured ]]; then copy_key "$dir"; fi
  settings "$dir" "$port" "$kind" "$bin" | as_server tee "$dir/data/stack.conf" >/dev/null
  if ! launch "$dir" "$bin"; then
    show_log "$dir/server.log"
    fail "PostgreSQL did not start on port $port"
  fi
}

stop() {
  local signal=INT
  [[ ${2:-} != now ]] || signal=QUIT
  stop_server "$1" "$1/data/postmaster.pid" "$signal"
}

# The end of whoever borrowed it, however that comes about, closes our standard input.
lend() {
  local port
  LENT=$1
  trap 'stop "$LENT" now; rm -rf "$LENT"' EXIT
  port=$(free_port)
  start "$LENT" "$port" "$2" </dev/null
  trap '' PIPE
  say "$port" || true
  cat >/dev/null
}

case ${1:-} in
  bin) find_bin ;;
  major | check | start | stop | lend) "$@" ;;
  *) fail "usage: see the head of $0" ;;
esac
