#!/usr/bin/env bash
# An Apache Kafka broker, one node, from its published jars.
#   kafka.sh java                 prints a Java that is new enough
#   kafka.sh cached               succeeds if the jars need no download
#   kafka.sh check DIR PORT       fails if another program has the port
#   kafka.sh start DIR PORT durable|throwaway|secured
#   kafka.sh stop  DIR [now]
#   kafka.sh lend  DIR KIND       starts it on a free port, says `ready`, and removes it with DIR when
#                                 standard input ends
#   kafka.sh password DIR USER PASSWORD
# A secured one is for tests. It reads ca.pem and server.pem (its key and certificate) in DIR, makes the
# users in DIR/scram, a line each (SCRAM-SHA-512=[name=..,password=..]), and writes the ports of its
# listeners to DIR/port (open), DIR/port.sasl_ssl (passwords) and DIR/port.ssl (certificates).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

JAVA_MAJOR_MIN=17
POM=$STACK/kafka/pom.xml
# Named after the list of jars, so that a change of the list is a new download.
LIBS=$(cache_dir)/kafka-$(sha256sum "$POM" | cut -c1-12)

find_java() {
  local java version
  for java in "${JAVA_HOME:-/nowhere}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    [[ -x $java ]] || continue
    version=$("$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p')
    if ((${version:-0} >= JAVA_MAJOR_MIN)); then
      echo "$java"
      return
    fi
  done
  return 1
}

cached() { [[ -d $LIBS ]]; }

download() {
  cached && return
  local new=$LIBS.$$ log
  log=$(mktemp)
  mkdir -p "$(cache_dir)"
  say "Downloading Apache Kafka ..."
  if ! mvn -B -f "$POM" dependency:copy-dependencies -DoutputDirectory="$new" >"$log" 2>&1; then
    show_log "$log"
    rm -rf "$new"
    fail "Maven could not download Apache Kafka"
  fi
  rm -f "$log"
  chmod -R a+rX "$new"
  mv -T "$new" "$LIBS" 2>/dev/null || rm -rf "$new"
}

running_port() {
  server_pid "$1" "$1/pid" >/dev/null && cat "$1/port"
}

check() {
  if [[ $(running_port "$1") != "$2" ]]; then require_port "$2" Kafka KAFKA_PORT; fi
}

# A free port that is none of these.
another_port() {
  local port
  port=$(free_port)
  while [[ " $* " == *" $port "* ]]; do port=$(free_port); done
  echo "$port"
}

write() { as_server tee "$1" >/dev/null; }

secured_listeners() {
  local dir=$1 passwords certificates
  passwords=$(another_port "${@:2}")
  certificates=$(another_port "$passwords" "${@:2}")
  write "$dir/port.sasl_ssl" <<<"$passwords"
  write "$dir/port.ssl" <<<"$certificates"
  echo ",SASL_SSL://127.0.0.1:$passwords,SSL://127.0.0.1:$certificates"
}

secured_properties() {
  cat "$STACK/kafka/secured.properties"
  echo "ssl.keystore.location=$1/server.pem"
  echo "ssl.truststore.location=$1/ca.pem"
}

configure() {
  local dir=$1 port=$2 kind=$3 controller more=
  controller=$(another_port "$port")
  if [[ $kind == secured ]]; then more=$(secured_listeners "$dir" "$port" "$controller"); fi
  write "$dir/log4j2.properties" <"$STACK/kafka/log4j2.properties"
  {
    cat "$STACK/kafka/server.properties"
    if [[ $kind == secured ]]; then secured_properties "$dir"; fi
    echo "listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller$more"
    echo "advertised.listeners=PLAINTEXT://127.0.0.1:$port$more"
    echo "controller.quorum.voters=1@127.0.0.1:$controller"
    echo "log.dirs=$dir/data"
  } | write "$dir/server.properties"
  write "$dir/port" <<<"$port"
}

tool() {
  local dir=$1
  as_server "$JAVA" -XX:TieredStopAtLevel=1 -cp "$LIBS/*" -Dlog4j2.configurationFile="$dir/log4j2.properties" "${@:2}"
}

format() {
  local dir=$1 id users=()
  [[ ! -e $dir/data/meta.properties ]] || return 0
  if [[ -e $dir/scram ]]; then mapfile -t users <"$dir/scram"; fi
  id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')
  tool "$dir" kafka.tools.StorageTool format --cluster-id="$id" --config "$dir/server.properties" --ignore-formatted \
    "${users[@]/#/--add-scram=}"
}

# In a session of its own: an interrupt at the terminal is not meant for the broker.
launch() {
  local dir=$1 options=(-Xmx1g)
  # Starts in half the time, at the price of throughput.
  [[ $2 == durable ]] || options+=(-XX:TieredStopAtLevel=1)
  as_server rm -f "$dir/pid"
  as_server truncate -s 0 "$dir/server.log"
  # shellcheck disable=SC2016 # the inner shell expands it
  as_server setsid --fork bash -c 'echo $$ >"$1/pid"; exec "${@:2}" >>"$1/server.log" 2>&1' kafka "$dir" \
    "$JAVA" "${options[@]}" -Dlog4j2.configurationFile="$dir/log4j2.properties" -cp "$LIBS/*" \
    kafka.Kafka "$dir/server.properties" </dev/null >/dev/null 2>&1
}

# Up to 60 s. Gives up at once when the process is gone.
await_ready() {
  local dir=$1 port=$2
  for _ in {1..600}; do
    if grep -q 'Kafka Server started' "$dir/server.log" && port_open "$port"; then return; fi
    if [[ -s $dir/pid ]] && ! server_pid "$dir" "$dir/pid" >/dev/null; then return 1; fi
    sleep 0.1
  done
  return 1
}

start() {
  local dir=$1 port=$2 kind=$3
  check "$dir" "$port"
  [[ $(running_port "$dir") != "$port" ]] || return 0
  stop "$dir"
  JAVA=$(find_java) || fail "Kafka needs Java $JAVA_MAJOR_MIN or newer"
  download
  ensure_server_user
  make_server_dir "$dir"
  configure "$dir" "$port" "$kind"
  if ! format "$dir" >"$dir/format.log" 2>&1; then
    show_log "$dir/format.log"
    fail "Kafka could not create its data in $dir"
  fi
  launch "$dir" "$kind"
  if ! await_ready "$dir" "$port"; then
    show_log "$dir/server.log"
    stop "$dir" now
    fail "Kafka did not start on port $port"
  fi
}

stop() {
  local signal=TERM
  [[ ${2:-} != now ]] || signal=KILL
  stop_server "$1" "$1/pid" "$signal"
}

# The end of whoever borrowed it, however that comes about, closes our standard input.
lend() {
  LENT=$1
  trap 'stop "$LENT" now; rm -rf "$LENT"' EXIT
  start "$LENT" "$(free_port)" "$2" </dev/null
  trap '' PIPE
  say ready || true
  cat >/dev/null
}

# Of a user of a running broker, for SCRAM-SHA-512.
password() {
  local dir=$1 user=$2 password=$3
  JAVA=$(find_java)
  tool "$dir" kafka.admin.ConfigCommand --bootstrap-server "127.0.0.1:$(cat "$dir/port")" --alter \
    --entity-type users --entity-name "$user" --add-config "SCRAM-SHA-512=[password=$password]"
}

case ${1:-} in
  java) find_java ;;
  cached | check | start | stop | lend | password) "$@" ;;
  *) fail "usage: see the head of $0" ;;
esac
