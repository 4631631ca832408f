#!/usr/bin/env bash
# Installs what the named parts lack, in one go: install.sh build postgres kafka postgres18 pgbouncer promtool lint plpgsql_check clients
# Says nothing when all is there.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

missing=()

lacks() { ! command -v "$1" >/dev/null 2>&1; }

# librdkafka is compiled by cmake; the TLS library's build needs perl.
need_build() {
  lacks cargo && fail "cargo is not installed. Install Rust first, see https://rustup.rs"
  if lacks cc || lacks c++; then missing+=(gcc g++ libc6-dev); fi
  local tool
  for tool in cmake perl make pkg-config; do
    if lacks "$tool"; then missing+=("$tool"); fi
  done
}

need_postgres() {
  if ! "$STACK/postgres.sh" bin >/dev/null 2>&1; then missing+=(postgresql postgresql-contrib); fi
}

need_kafka() {
  if ! "$STACK/kafka.sh" java >/dev/null 2>&1; then missing+=("$(java_package)"); fi
  if ! "$STACK/kafka.sh" cached && lacks mvn; then missing+=(maven); fi
}

# The default Java of some releases is older than what the broker needs.
java_package() {
  local package
  for package in openjdk-21-jre-headless openjdk-17-jre-headless; do
    if [[ -n $(apt-cache madison "$package" 2>/dev/null) ]]; then
      echo "$package"
      return
    fi
  done
  echo default-jre-headless
}

need_postgres18() {
  if ! "$STACK/postgres18.sh" cached && lacks npm; then missing+=(npm); fi
}

need_pgbouncer() {
  if ! "$STACK/pgbouncer.sh" bin >/dev/null 2>&1; then missing+=(pgbouncer); fi
}

# Debian has it in the package of the server.
need_promtool() {
  if lacks promtool; then missing+=(prometheus); fi
}

need_lint() {
  if lacks shellcheck; then missing+=(shellcheck); fi
  if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then return; fi
  lacks rustup && fail "cargo fmt or cargo clippy is missing: install rustfmt and clippy"
  rustup component add rustfmt clippy
}

as_admin() {
  if is_root; then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

apt_install() {
  as_admin env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
    install -y -q --no-install-recommends "$@"
}

apt_update() { as_admin apt-get -o DPkg::Lock::Timeout=300 update -q; }

# The package would create a cluster on port 5432 and start it.
without_main_cluster() {
  local dir=/etc/postgresql-common/createcluster.d status=0
  as_admin mkdir -p "$dir"
  echo 'create_main_cluster = false' | as_admin tee "$dir/trestle.conf" >/dev/null
  "$@" || status=$?
  as_admin rm -f "$dir/trestle.conf"
  return "$status"
}

# The packages of PgBouncer and Prometheus would start them, and again at every boot.
without_services() {
  local policy=/usr/sbin/policy-rc.d status=0 ours=
  if [[ ! -e $policy ]]; then
    ours=yes
    printf '#!/bin/sh\nexit 101\n' | as_admin tee "$policy" >/dev/null
    as_admin chmod +x "$policy"
  fi
  "$@" || status=$?
  [[ -z $ours ]] || as_admin rm -f "$policy"
  return "$status"
}

not_at_boot() {
  local service
  for service in pgbouncer prometheus; do
    [[ " ${missing[*]} " != *" $service "* ]] || as_admin update-rc.d "$service" disable
  done
}

install_missing() {
  [[ ${#missing[@]} -gt 0 ]] || return 0
  lacks apt-get && fail "please install: ${missing[*]} (this machine has no apt-get to do it with)"
  if ! is_root && lacks sudo; then
    fail "please install as root: apt-get install ${missing[*]} (there is no sudo to do it with)"
  fi
  say "Installing: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { apt_update && java_again && without_services without_main_cluster apt_install "${missing[@]}" && not_at_boot; } >"$log" 2>&1; then
    show_log "$log"
    fail "apt-get could not install: ${missing[*]}"
  fi
  rm -f "$log"
}

# Which Java there is, is known only after the package lists were fetched.
java_again() {
  local i
  for i in "${!missing[@]}"; do
    case ${missing[i]} in *-jre-headless) missing[i]=$(java_package) ;; esac
  done
}

# Lets the tests check the bodies of SQL functions. They do without it where it
# cannot be had, and a failure is remembered for a day.
try_plpgsql_check() {
  local bin major failed
  bin=$("$STACK/postgres.sh" bin)
  major=$("$STACK/postgres.sh" major "$bin")
  failed=$(cache_dir)/no-plpgsql-check-$major
  [[ -e $bin/../lib/plpgsql_check.so || -n $(find "$failed" -mtime -1 2>/dev/null) ]] && return
  lacks apt-get && return
  if (apt_install "postgresql-$major-plpgsql-check" || { apt_update && apt_install "postgresql-$major-plpgsql-check"; }) >/dev/null 2>&1; then
    rm -f "$failed"
  else
    say "plpgsql_check for PostgreSQL $major could not be installed; going on without it."
    mkdir -p "$(cache_dir)" && touch "$failed"
  fi
}

# The clients that the tests read topics with. Whoever needs them says what is missing.
try_clients() {
  local packages=()
  lacks kcat && packages+=(kcat)
  lacks node && packages+=(nodejs)
  if ! "$STACK/clients.sh" cached; then
    "$STACK/clients.sh" python >/dev/null || packages+=(python3 python3-venv)
    lacks npm && packages+=(npm)
  fi
  if [[ ${#packages[@]} == 0 ]] || lacks apt-get; then return; fi
  say "Installing: ${packages[*]}"
  if ! (apt_install "${packages[@]}" || { apt_update && apt_install "${packages[@]}"; }) >/dev/null 2>&1; then
    say "apt-get could not install: ${packages[*]}; going on without."
  fi
}

main() {
  local part optional=()
  for part in "$@"; do
    case $part in
      plpgsql_check | clients) optional+=("try_$part") ;;
      *) "need_$part" ;;
    esac
  done
  install_missing
  for part in "${optional[@]}"; do "$part"; done
}

main "$@"
