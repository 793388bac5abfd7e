#!/usr/bin/env bash
# Has other people's clients and testers talk to a built server: `tests/clients/run.sh target/debug/ack-memory`.
#
# They are installed from npm and PyPI in the versions that package.json and requirements-*.txt name, into a folder of their own
# that later runs use again. The checks themselves (checks.sh) reach nothing but servers on 127.0.0.1 over sample scopes: each
# runs with an empty home folder, a bare environment, a time limit, and a proxy that leads nowhere. One line a check; the
# outcome is 0 when none failed.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: tests/clients/run.sh [--self-test] [--only NAME]... [--into DIR] [--within SECONDS] [--all] [--list] BINARY

  --self-test  plant faults between the server and the checks, and see that the checks notice each
  --only NAME  only checks whose names begin with NAME; may be repeated
  --into DIR   where the clients are installed (default: a folder of the user's in the temporary folder)
  --within S   begin no check after so many seconds
  --all        what cannot be installed, or is not begun, is a failure instead of being skipped
  --list       print the names of the checks and end
EOF
}

here="$(cd "$(dirname "$0")" && pwd)"
only=()
into=""
within=""
all=false
list=false
self_test=false
binary=""
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only+=("${2:?--only wants a name}"); shift ;;
    --into) into="${2:?--into wants a folder}"; shift ;;
    --within) within="${2:?--within wants seconds}"; shift ;;
    --all) all=true ;;
    --list) list=true ;;
    --self-test) self_test=true ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) binary="$1" ;;
  esac
  shift
done
if ! $list && ! [ -x "$binary" ]; then
  usage >&2
  exit 2
fi

# Versions published after this day are not taken, so that what the clients themselves depend on stays as it was.
published_before=2026-11-22

passed=0
failed=0
skipped=0
ran=0

# ---- Installing

# The reason why the last installation did not work.
reason=""

# left SECONDS: so many, or what --within leaves.
left() {
  local most="$1" rest
  rest=$((${within:-$((SECONDS + most))} - SECONDS))
  echo $((rest < 1 ? 1 : rest < most ? rest : most))
}

# npm_package FOLDER PACKAGE [FLAG...]: installs the version that package.json names, unless it is there.
npm_package() {
  local folder="$into/$1" package="$2" version
  shift 2
  if ! command -v npm > /dev/null; then
    reason="npm is not installed"
    return 1
  fi
  version="$(node -p 'require(process.argv[1]).devDependencies[process.argv[2]]' "$here/package.json" "$package")"
  if [ "$(cat "$folder/installed" 2> /dev/null)" = "$package@$version" ]; then
    return 0
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  echo '{ "private": true }' > "$folder/package.json"
  if ! limited "$(left 120)" npm install --prefix "$folder" --no-save --no-audit --no-fund --loglevel=error \
    --fetch-retries=1 --before="$published_before" "$@" "$package@$version" > "$folder/log" 2>&1 < /dev/null; then
    reason="npm cannot install $package@$version: $(complaint "$folder/log")"
    return 1
  fi
  echo "$package@$version" > "$folder/installed"
}

# python_packages NAME: a virtual environment with what requirements-NAME.txt lists, the program itself first.
python_packages() {
  local folder="$into/python-$1" wanted="$here/requirements-$1.txt"
  if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2> /dev/null; then
    reason="Python 3.10 or newer is not installed"
    return 1
  fi
  if cmp -s "$wanted" "$folder/installed"; then
    return 0
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  if ! limited "$(left 60)" python3 -m venv "$folder" > "$folder.log" 2>&1 ||
    ! limited "$(left 120)" "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" > "$folder.log" 2>&1; then
    reason="pip cannot install $(grep -m 1 == "$wanted"): $(complaint "$folder.log")"
    return 1
  fi
  cp "$wanted" "$folder/installed"
}

# The stores that other programs wrote.
real_stores() {
  if [ -z "${ACK_TEST_REAL_STORES:-}" ]; then
    reason="ACK_TEST_REAL_STORES names no samples"
    return 1
  fi
}

# A binary that knows buckets. The light build does not.
has_buckets() {
  local said
  said="$("$binary" --root "$root" publish platform --to s3://bucket/prefix --endpoint http://127.0.0.1:9 --list 2>&1 < /dev/null || true)"
  if [[ "$said" == *"light build"* ]]; then
    reason="the light build cannot publish to buckets"
    return 1
  fi
}

# Node 22: the one that is there, or one from npm beside the clients.
node_22() {
  if [ -z "$newer_node" ]; then
    if node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)' 2> /dev/null; then
      newer_node="$(dirname "$(command -v node)")"
    elif npm_package node node; then
      newer_node="$into/node/node_modules/.bin"
    else
      return 1
    fi
  fi
}
newer_node=""

# The desk's browser: Chromium of the system, and what drives and inspects it.
desk_browser() {
  if [ -z "$chromium" ]; then
    chromium="$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)"
  fi
  if [ -z "$chromium" ]; then
    reason="no Chromium is installed (Debian's package is \`chromium\`)"
    return 1
  fi
  npm_package playwright-core playwright-core && npm_package axe-core axe-core
}
chromium="${CHROMIUM:-}"

# reverse_proxy NAME: one of the system, and what makes its certificate.
reverse_proxy() {
  local program
  for program in "$1" openssl python3; do
    if ! command -v "$program" > /dev/null; then
      reason="$program is not installed (Debian's package has that name)"
      return 1
    fi
  done
}

# provide NAME: installs what a check needs. What did not work once is not tried again.
provide() {
  local known
  [ "$1" = nothing ] && return 0
  if [ -n "$within" ] && [ "$SECONDS" -ge "$within" ]; then
    reason="the time of --within is over"
    return 1
  fi
  for known in ${broken[@]+"${broken[@]}"}; do
    if [ "${known%%=*}" = "$1" ]; then
      reason="${known#*=}"
      return 1
    fi
  done
  install "$1" && return 0
  broken+=("$1=$reason")
  return 1
}
broken=()

install() {
  case "$1" in
    python-*) python_packages "${1#python-}" ;;
    buckets) has_buckets && python_packages moto ;;
    azurite) provide buckets && node_22 && npm_package azurite azurite ;;
    typescript-1) npm_package typescript-1 @modelcontextprotocol/sdk ;;
    typescript-2) npm_package typescript-2 @modelcontextprotocol/client ;;
    conformance | inspector) node_22 && npm_package "$1" "@modelcontextprotocol/$1" ;;
    claude) node_22 && npm_package claude @anthropic-ai/claude-code ;;
    claude-mem) provide claude && npm_package bun bun && npm_package claude-mem claude-mem --legacy-peer-deps ;;
    mcpb) npm_package mcpb @anthropic-ai/mcpb ;;
    codex) npm_package codex @openai/codex ;;
    gemini) node_22 && npm_package gemini @google/gemini-cli ;;
    opencode) npm_package opencode opencode-ai ;;
    copilot) node_22 && npm_package copilot @github/copilot ;;
    qwen) node_22 && npm_package qwen @qwen-code/qwen-code ;;
    cline) npm_package cline cline ;;
    browser) desk_browser ;;
    samples) real_stores && provide browser ;;
    caddy | nginx) reverse_proxy "$1" ;;
    *) reason="nobody knows how to install $1"; return 1 ;;
  esac
}

# ---- Running

# What an installer complains of: its first line about an error.
complaint() {
  grep -i -m 1 error "$1" 2> /dev/null | cut -c1-200 || echo "its time was over"
}

last() {
  grep -v '^[[:space:]]*$' "$1" 2> /dev/null | tail -n 1 | cut -c1-200
}

# The process group that `limited` waits for.
running=""

# limited SECONDS COMMAND...: runs it in a process group of its own, which ends with it, or when the time is over (124).
limited() {
  local tenths=$(($1 * 10)) child outcome=0
  shift
  set -m
  "$@" &
  child=$!
  set +m
  running=$child
  while kill -0 "$child" 2> /dev/null; do
    if [ "$tenths" -le 0 ]; then
      kill -TERM -- "-$child" 2> /dev/null || true
      sleep 1
      kill -KILL -- "-$child" 2> /dev/null || true
      wait "$child" 2> /dev/null || true
      return 124
    fi
    sleep 0.1
    tenths=$((tenths - 1))
  done
  wait "$child" || outcome=$?
  kill -TERM -- "-$child" 2> /dev/null || true
  running=""
  return "$outcome"
}

# line NAME OUTCOME [MORE]: what is said of a check.
line() {
  printf '%-36s %s\n' "$1" "$2${3:+: $3}"
}

wanted() {
  local name
  [ ${#only[@]} -eq 0 ] && return 0
  for name in "${only[@]}"; do
    [[ "$1" == "$name"* ]] && return 0
  done
  return 1
}

# provided NAME NEED: whether the check is wanted and what it needs is there; says so where it is not.
provided() {
  wanted "$1" || return 1
  ran=$((ran + 1))
  if $list; then
    echo "$1"
    return 1
  fi
  provide "$2" && return 0
  if $all; then
    failed=$((failed + 1))
    line "$1" FAILED "$reason"
  else
    skipped=$((skipped + 1))
    line "$1" skipped "$reason"
  fi
  return 1
}

# attempt NAME SECONDS CHECK: runs a check in a home folder of its own and leaves its outcome in `outcome`, what it said in `log`.
attempt() {
  local home="$work/home-$1"
  log="$work/$1.log"
  outcome=0
  mkdir -p "$home/project"
  limited "$2" env -i HOME="$home" PATH="$PATH" TMPDIR="$home" LANG=C.UTF-8 TERM=dumb NO_COLOR=1 CI=1 \
    HTTP_PROXY="$nowhere" HTTPS_PROXY="$nowhere" http_proxy="$nowhere" https_proxy="$nowhere" \
    NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost \
    BINARY="$binary" ROOT="$root" INTO="$into" ACK_TEST_REAL_STORES="${ACK_TEST_REAL_STORES:-}" NEWER_NODE="$newer_node" FAULT="$fault" \
    CHROMIUM="$chromium" GUARDED="$guarded" OPEN="$open" ACK_MEM_TOKEN="$token" SERVERS="${servers[*]}" BEFORE="$work/before" \
    "$here/checks.sh" "$3" > "$log" 2>&1 < /dev/null || outcome=$?
}
fault=""

# told FINE NAME SECONDS: counts what an attempt came to, and says it.
told() {
  if $1; then
    passed=$((passed + 1))
    line "$2" ok "$((SECONDS - started)) s"
    return 0
  fi
  failed=$((failed + 1))
  case "$outcome" in
    124) line "$2" FAILED "not done after $3 seconds" ;;
    0) line "$2" FAILED "not noticed" ;;
    *) line "$2" FAILED ;;
  esac
  tail -n 25 "$log" | cut -c1-400 | sed 's/^/    /'
}

# check NAME SECONDS NEED: installs what is needed and runs the check of that name.
check() {
  local started=$SECONDS
  provided "$1" "$3" || return 0
  attempt "$1" "$2" "$1"
  if [ "$outcome" -eq 0 ]; then told true "$1" "$2"; else told false "$1" "$2"; fi
}

# plant FAULT WORDS CHECK...: each of these checks fails with that fault, and says these words (a regular expression) of it. With
# the fault `none` each passes.
plant() {
  local words="$2" behind="$guarded" name check started need
  fault="$1"
  shift 2
  for check in "$@"; do
    name="$fault/$check"
    started=$SECONDS
    case "$check" in
      python-* | typescript-*) need="${check%-*-*}" ;;
      session-*)
        need="${check#session-}"
        need="${need%-code}"
        ;;
      desk-*) need=browser ;;
      bucket-*) need=python-moto ;;
      team-*) need=buckets ;;
      *) need=nothing ;;
    esac
    provided "$name" "$need" || continue
    if [[ "$check" == *http* ]]; then
      proxy "$behind"
    fi
    attempt "${name//\//-}" 60 "$check"
    guarded="$behind"
    if [ "$fault" = none ]; then
      if [ "$outcome" -eq 0 ]; then told true "$name" 60; else told false "$name" 60; fi
    elif [ "$outcome" -ne 0 ] && [ "$outcome" -ne 124 ] && grep -qE "$words" "$log"; then
      told true "$name" 60
    else
      told false "$name" 60
    fi
  done
  fault=""
}

# What nobody listens at: nothing gets out by way of it.
nowhere=http://127.0.0.1:9
servers=()

# serve NAME [ARGUMENT...]: starts a server and leaves its address in `url`.
serve() {
  local said="$work/$1" patience=300
  shift
  (cd "$work" && exec env -i HOME="$work" PATH="$PATH" ACK_MEM_TOKEN="$token" \
    "$binary" --root "$root" serve --http 127.0.0.1:0 "$@" > "$said.url" 2> "$said.log" < /dev/null) &
  servers+=($!)
  until [ -s "$said.url" ]; do
    patience=$((patience - 1))
    if [ "$patience" -le 0 ] || ! kill -0 "$!" 2> /dev/null; then
      echo "the server does not start: $(last "$said.log")" >&2
      exit 1
    fi
    sleep 0.1
  done
  url="$(cat "$said.url")"
}

# proxy URL: puts the fault before a server and leaves the address to ask instead in `guarded`.
proxy() {
  local said="$work/proxy-$((proxies += 1))" patience=100
  ACK_MEM_TOKEN="$token" node "$here/fault.mjs" "$fault" http "$1" > "$said" 2>&1 < /dev/null &
  proxied+=($!)
  until [ -s "$said" ]; do
    patience=$((patience - 1))
    if [ "$patience" -le 0 ]; then
      echo "the fault $fault cannot be planted: $(last "$said")" >&2
      exit 1
    fi
    sleep 0.1
  done
  guarded="$(cat "$said")"
}
proxied=()
proxies=0

finish() {
  local server
  if [ -n "$running" ]; then
    kill -TERM -- "-$running" 2> /dev/null || true
  fi
  for server in ${servers[@]+"${servers[@]}"} ${proxied[@]+"${proxied[@]}"}; do
    kill "$server" 2> /dev/null || true
  done
  rm -rf "$work"
}

if ! $list; then
  binary="$(cd "$(dirname "$binary")" && pwd)/$(basename "$binary")"
  into="${into:-${TMPDIR:-/tmp}/ack-memory-clients-$(id -u)}"
  mkdir -p -m 700 "$into"
  into="$(cd "$into" && pwd)"
  if ! [ -O "$into" ]; then
    echo "$into belongs to somebody else; choose a folder with --into" >&2
    exit 1
  fi
  work="$(cd "$(mktemp -d)" && pwd)"
  trap finish EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  root="$work/root"
  HOME="$work" "$binary" demo "$root" > "$work/demo.log" 2>&1
  # Every entry point is tried, those for what waits too.
  printf 'max_status = "all"\n' >> "$root/config.toml"
  (cd "$root" && find . -type f -exec cksum {} + | sort) > "$work/before"
  token="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  serve guarded
  guarded="$url"
  # The conformance suite sends no token.
  serve open --no-token
  open="$url"
fi

every_check() {
  local transport page
  for transport in stdio http; do
    check "python-1-$transport-initialize" 60 python-1
    check "python-2-$transport-initialize" 60 python-2
    check "python-2-$transport-discover" 60 python-2
    check "typescript-1-$transport-initialize" 60 typescript-1
    check "typescript-2-$transport-initialize" 60 typescript-2
    check "typescript-2-$transport-discover" 60 typescript-2
  done
  check http-guarded 60 nothing
  check proxy-caddy 60 caddy
  check proxy-nginx 60 nginx
  check bucket-conditions 60 python-moto
  check team-story 120 buckets
  check team-refused 60 buckets
  for page in keys plan select undo card together beside group stale approved changed two killed hostile many look; do
    check "desk-$page" 240 browser
  done
  check desk-sample 240 samples
  check conformance-2025-06-18 120 conformance
  check conformance-2025-11-25 120 conformance
  check conformance-2026-07-28 120 conformance
  check claude-code 60 claude
  check claude-code-plugin 60 claude
  check mcpb-manifest 60 mcpb
  check codex 60 codex
  check gemini 60 gemini
  check session-claude-code 200 claude
  check gate-claude-mem 200 claude-mem
  check session-codex 200 codex
  check session-gemini 200 gemini
  for transport in stdio http; do
    check "inspector-$transport-legacy" 90 inspector
    check "inspector-$transport-modern" 90 inspector
  done
  check session-copilot 200 copilot
  check session-qwen 200 qwen
  check session-opencode 200 opencode
  check session-cline 200 cline
  check team-azure 120 azurite
  # After all of them: the servers are still there, and no store was touched.
  check servers-hold 20 nothing
  check stores-unchanged 20 nothing
}

# Faults that were once not noticed, and their like, each where every kind of client has to notice it. With --all there are more clients.
every_fault() {
  local stdio=(python-2-stdio-discover typescript-2-stdio-discover)
  local http=(python-2-http-discover typescript-2-http-discover)
  local both=(python-2-http-discover typescript-2-stdio-discover)
  local sessions=(session-codex)
  if $all; then
    stdio+=(python-1-stdio-initialize typescript-1-stdio-initialize)
    http+=(python-1-http-initialize typescript-1-http-initialize)
    both=("${stdio[@]}" "${http[@]}")
    sessions+=(session-claude-code session-gemini)
  fi
  local rejected=ack_60cf92_2026-07-22_003
  plant none "" "${both[@]}" http-guarded "${sessions[@]}"
  plant no-token "let in|is refused|is answered" "${http[@]}" http-guarded
  plant any-token "let in|is refused|is answered" "${http[@]}" http-guarded
  plant another-memory "asked for" "${both[@]}"
  plant another-text "OOMKilled" "${both[@]}"
  plant marked-rejected "rejected" "${both[@]}"
  plant rejected-shown "$rejected" "${both[@]}" "${sessions[@]}"
  plant rejected-as-approved "$rejected" "${both[@]}" "${sessions[@]}"
  plant staging-as-approved "staging|waits" "${both[@]}"
  plant text-before "no message" "${stdio[@]}"
  plant text-between "no message" "${stdio[@]}"
  plant answered-twice "answered twice" "${stdio[@]}"
  plant no-tool "not offered|not in the result" "${sessions[@]}"
  plant not-told "told of the memories once" "${sessions[@]}"
  plant told-twice "told of the memories once" "${sessions[@]}"
  plant told-rejected "$rejected" "${sessions[@]}"
  plant told-anew "a short one" session-codex
  plant none "" desk-undo desk-hostile
  plant markup "memory text is markup|the page complains" desk-hostile
  plant another-memory "not what was pressed|is shown twice|Expected values" desk-keys
  plant focus-lost "focus is on the memory" desk-keys
  plant not-undone "undo goes back|nothing was taken back" desk-undo
  plant change-hidden "the change is not told" desk-changed
  plant no-difference "difference is not marked" desk-beside
  plant end-hidden "does not say that the desk has ended" desk-killed
  plant whole-queue "memories are in the page" desk-many
  plant faint "color-contrast" desk-look
  plant wide "pixels too wide" desk-look
  plant none "" bucket-conditions
  plant conditions-ignored "200 instead of 412" bucket-conditions
  plant conditions-kept "publishing is refused" team-refused
  plant head-kept "it is gone for everybody" team-story
}

if $self_test; then every_fault; else every_check; fi

if [ "$ran" -eq 0 ]; then
  echo "no check has a name that begins so; --list prints them all" >&2
  exit 2
fi
if ! $list; then
  echo "$passed passed, $failed failed, $skipped skipped"
fi
[ "$failed" -eq 0 ]
