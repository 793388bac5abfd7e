#!/usr/bin/env bash
# Packs a built binary in every way of packaging/, installs each package and talks to it:
# `tests/packaging/run.sh target/debug/ack-memory`.
#
# Everything happens in a temporary folder with its own home folder. Packages are installed without
# a network. Only `mcpb` and `uv` come from npm and PyPI; without them, their checks are skipped.
# Prints one line per check and exits with 0 if none failed.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/packaging/run.sh [--into DIR] [--within SECONDS] [--all] [--keep DIR] BINARY

  --into DIR   where mcpb and uv are installed, and found again by later runs
  --within S   fail after so many seconds
  --all        fail instead of skipping a check
  --keep DIR   leave the packages there
USAGE
}

here="$(cd "$(dirname "$0")" && pwd)"
packaging="$(cd "$here/../../packaging" && pwd)"
into=""
within=""
all=false
keep=""
binary=""
while [ $# -gt 0 ]; do
  case "$1" in
    --into) into="${2:?--into wants a folder}"; shift ;;
    --within) within="${2:?--within wants seconds}"; shift ;;
    --all) all=true ;;
    --keep) keep="${2:?--keep wants a folder}"; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) binary="$1" ;;
  esac
  shift
done
if ! [ -x "$binary" ]; then
  usage >&2
  exit 2
fi

work="$(cd "$(mktemp -d)" && pwd)"
watch=""
child=""
finish() {
  [ -z "$watch" ] || kill "$watch" 2> /dev/null || true
  [ -z "$child" ] || kill -TERM -- "-$child" 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'echo "not done after $within seconds" >&2; exit 143' TERM
if [ -n "$within" ]; then
  # Its output goes nowhere: it would keep a pipe after this script open until the time is over.
  (trap 'kill "$nap"; exit' TERM; sleep "$within" & nap=$!; wait "$nap"; kill -TERM $$) \
    > /dev/null 2>&1 &
  watch=$!
fi

into="${into:-$work/tools}"
mkdir -p "$into" "$work/home"
into="$(cd "$into" && pwd)"
packages="$work/packages"
if [ -n "$keep" ]; then
  mkdir -p "$keep"
  packages="$(cd "$keep" && pwd)"
fi
# A debug build is mostly debug information.
cp "$binary" "$work/ack-memory"
strip "$work/ack-memory" 2> /dev/null || true
binary="$work/ack-memory"
# In the place of what notices.py makes, which needs cargo and the sources of all crates.
echo "the licences of the linked crates" > "$work/THIRD-PARTY-LICENSES.txt"
common=(--out "$packages" --notices "$work/THIRD-PARTY-LICENSES.txt")

# Nothing of the user's: no settings, no caches, no memories.
export HOME="$work/home" npm_config_cache="$work/npm-cache" npm_config_update_notifier=false
unset ACK_MEM_PATH ACK_MEM_DB ACK_MEM_SCOPE CLAUDE_PROJECT_DIR

passed=0
failed=0
skipped=0

line() {
  printf '%-28s %s\n' "$1" "$2${3:+: $3}"
}

# skip REASON: ends a check that cannot run here.
skip() {
  echo "$1"
  exit 77
}

# check NAME: runs the function of that name in a process group of its own.
check() {
  local name="$1" started=$SECONDS status log="$work/$1.log"
  set -m
  (
    cd "$work"
    "${name//-/_}"
  ) > "$log" 2>&1 < /dev/null &
  child=$!
  set +m
  # Waiting, unlike a command in the foreground, ends at once with a signal.
  set +e
  wait "$child"
  status=$?
  set -e
  child=""
  if [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
    line "$name" ok "$((SECONDS - started)) s"
  elif [ "$status" -eq 77 ] && ! $all; then
    skipped=$((skipped + 1))
    line "$name" skipped "$(tail -n 1 "$log")"
  else
    failed=$((failed + 1))
    line "$name" FAILED
    tail -n 25 "$log" | cut -c1-400 | sed 's/^/    /'
  fi
}

need() {
  command -v "$1" > /dev/null || skip "$1 is not installed"
}

# one FILE...: the only file of a pattern.
one() {
  if [ $# -ne 1 ] || ! [ -f "$1" ]; then
    echo "expected one file, not $*" >&2
    return 1
  fi
  echo "$1"
}

# One version, in Cargo.toml and in every file that repeats it.
versions() {
  python3 - "$packaging" <<'PYTHON'
import json, sys
from pathlib import Path

packaging = Path(sys.argv[1])
sys.path.insert(0, str(packaging))
import common

version = common.product()["version"]
plugin = "../plugins/ack-memory/.claude-plugin/plugin.json"
for name in ("manifest.json", "server.json", plugin):
    found = json.loads((packaging / name).read_text())["version"]
    assert found == version, f"{name} says {found}, Cargo.toml says {version}"
PYTHON
}

# ---- npm

npm_pack() {
  need npm
  need node
  "$packaging/npm/pack.py" "$binary" "${common[@]}"
}

npm_install() {
  need npm
  mkdir npm
  cd npm
  echo '{ "private": true }' > package.json
  npm install --offline --no-audit --no-fund --loglevel=error "$packages"/ack-memory-*.tgz
  test "$(npx --offline ack-memory --version)" = "$("$binary" --version)"
  # The exit status of a wrong argument passes through.
  local status=0
  npx --offline ack-memory no-such-command || status=$?
  test "$status" -eq 2
}

launcher() {
  echo "$work/npm/node_modules/.bin/ack-memory"
}

installed() {
  [ -x "$(launcher)" ] || skip "the npm package is not installed"
}

talk() {
  "$here/talk.py" "$@" serve
  "$here/talk.py" --signal SIGTERM "$@" serve
  "$here/talk.py" --signal SIGINT "$@" serve
}

npm_mcp() {
  installed
  talk "$(launcher)"
}

# As with a Node that cannot replace its own process.
without_execve() {
  echo 'delete process.execve;' > "$work/without-execve.cjs"
  export NODE_OPTIONS="--require $work/without-execve.cjs"
}

npm_mcp_child() {
  installed
  without_execve
  talk "$(launcher)"
}

# stand_in NAME SCRIPT: copies the installation and replaces the binary with a script.
stand_in() {
  local places
  cp -R "$work/npm" "$work/$1"
  places=("$work/$1"/node_modules/ack-memory-*/bin/ack-memory)
  printf '#!/bin/sh\n%s\n' "$2" > "$(one "${places[@]}")"
}

npm_killed_child() {
  installed
  without_execve
  # shellcheck disable=SC2016
  stand_in killed 'kill -KILL $$'
  local status=0
  "$work/killed/node_modules/.bin/ack-memory" || status=$?
  test "$status" -eq 137
}

npm_platform_missing() {
  installed
  cp -R npm missing
  rm -r missing/node_modules/ack-memory-*
  local status=0 message
  message="$(missing/node_modules/.bin/ack-memory --version 2>&1)" || status=$?
  echo "$message"
  test "$status" -eq 1
  grep -q 'is not installed' <<< "$message"
  grep -q -- '--omit=optional' <<< "$message"
}

npm_platform_unknown() {
  installed
  local message
  echo 'Object.defineProperty(process, "arch", { value: "mips" });' > arch.cjs
  message="$(NODE_OPTIONS="--require $work/arch.cjs" "$(launcher)" --version 2>&1)" && return 1
  echo "$message"
  grep -q 'there is no binary for .* mips, only for ' <<< "$message"
}

npm_no_glibc() {
  installed
  [ "$(uname -s)" = Linux ] || skip "only Linux has several C libraries"
  local message
  echo 'const fs = require("node:fs"); fs.existsSync = () => false;' > no-loader.cjs
  message="$(NODE_OPTIONS="--require $work/no-loader.cjs" "$(launcher)" --version 2>&1)" && return 1
  echo "$message"
  grep -q 'the binary needs glibc' <<< "$message"
}

# ---- PyPI

wheel_pack() {
  "$packaging/pypi/wheel.py" "$binary" "${common[@]}"
}

# The tag of a Linux wheel is the newest glibc that binutils finds in the binary.
wheel_tag() {
  local wheels=("$packages"/*.whl) newest
  one "${wheels[@]}"
  [[ "${wheels[0]}" == *manylinux* ]] || skip "not a Linux wheel"
  need objdump
  newest="$(objdump -T "$binary" | grep -oE 'GLIBC_2\.[0-9]+' | sort -t. -k2 -n | tail -n 1)"
  [[ "${wheels[0]}" == *-"manylinux_${newest/GLIBC_2./2_}_"* ]]
}

wheel_install() {
  python3 -m venv venv || skip "Python's venv module is not installed"
  local wheels=("$packages"/*.whl)
  venv/bin/pip install --quiet --disable-pip-version-check --no-index "${wheels[@]}"
  test "$(venv/bin/ack-memory --version)" = "$("$binary" --version)"
  # Pip checks only parts of the record.
  venv/bin/python - "${wheels[0]}" <<'PYTHON'
import base64, csv, hashlib, io, sys, zipfile

wheel = zipfile.ZipFile(sys.argv[1])
record = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(record).decode()))}
assert set(rows) == set(wheel.namelist()), "RECORD names other files"
for name, (digest, size) in rows.items():
    data = wheel.read(name)
    known = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    assert name == record or (digest, size) == (f"sha256={known}", str(len(data))), name
PYTHON
}

wheel_mcp() {
  [ -x venv/bin/ack-memory ] || skip "the wheel is not installed"
  talk venv/bin/ack-memory
}

# Leaves the command in `uvx`.
provide_uvx() {
  uvx="$(command -v uvx || true)"
  [ -z "$uvx" ] || return 0
  uvx="$into/uv/bin/uvx"
  [ ! -x "$uvx" ] || return 0
  rm -rf "$into/uv"
  python3 -m venv "$into/uv" || skip "Python's venv module is not installed"
  "$into/uv/bin/pip" install --quiet --disable-pip-version-check --retries 1 uv ||
    skip "pip cannot install uv"
}

wheel_uvx() {
  local wheels=("$packages"/*.whl) said
  provide_uvx
  said="$("$uvx" --offline --from "${wheels[0]}" ack-memory --version)"
  test "$said" = "$("$binary" --version)"
}

# ---- Bundle

# The same version in the same folder as tests/clients/run.sh.
provide_mcpb() {
  need npm
  need node
  local package
  package="@anthropic-ai/mcpb"
  package+="@$(node -p 'require(process.argv[1]).devDependencies[process.argv[2]]' \
    "$here/../clients/package.json" "$package")"
  if [ "$(cat "$into/mcpb/installed" 2> /dev/null)" != "$package" ]; then
    rm -rf "$into/mcpb"
    mkdir -p "$into/mcpb"
    echo '{ "private": true }' > "$into/mcpb/package.json"
    npm install --prefix "$into/mcpb" --no-save --no-audit --no-fund --loglevel=error \
      --fetch-retries=1 "$package" || skip "npm cannot install $package"
    echo "$package" > "$into/mcpb/installed"
  fi
}

mcpb_pack() {
  provide_mcpb
  "$packaging/mcpb/pack.py" "$binary" "${common[@]}" --mcpb "$into/mcpb/node_modules/.bin/mcpb"
}

mcpb_mcp() {
  local bundles=("$packages"/*.mcpb)
  [ -f "${bundles[0]}" ] || skip "there is no bundle"
  "$into/mcpb/node_modules/.bin/mcpb" unpack "$(one "${bundles[@]}")" bundle
  "$into/mcpb/node_modules/.bin/mcpb" validate bundle/manifest.json
  # Like a client: run the manifest's command with its variables filled in.
  mkdir -p memories
  python3 - "$here/talk.py" <<'PYTHON'
import json, subprocess, sys

server = json.load(open("bundle/manifest.json"))["server"]["mcp_config"]
command = [
    part.replace("${__dirname}", "bundle").replace("${user_config.root}", "memories")
    for part in [server["command"], *server["args"]]
]
sys.exit(subprocess.run([sys.argv[1], *command]).returncode)
PYTHON
}

# ---- Archive and formula

archive_pack() {
  "$packaging/archive.py" "$binary" "${common[@]}"
  cd "$packages"
  python3 - ./*.sha256 <<'PYTHON'
import hashlib, sys

(file,) = sys.argv[1:]
digest, name = open(file).read().split()
assert hashlib.sha256(open(name, "rb").read()).hexdigest() == digest, name
PYTHON
}

archive_run() {
  local archives=("$packages"/*.tar.gz)
  mkdir archive
  tar xzf "$(one "${archives[@]}")" -C archive --strip-components=1
  test "$(archive/ack-memory --version)" = "$("$binary" --version)"
  bash -n archive/completions/ack-memory.bash
}

formula() {
  "$packaging/homebrew/formula.py" --repository https://example.org/ack-memory \
    --out "$packages" "$packages"/*.tar.gz
  grep -q 'sha256 "[0-9a-f]\{64\}"' "$packages/ack-memory.rb"
  if grep -n '@' "$packages/ack-memory.rb"; then
    return 1
  fi
  need ruby
  ruby -c "$packages/ack-memory.rb"
}

# The registry looks for its name of the server in the packages that the entry names.
registry_entry() {
  installed
  "$packaging/server_json.py" --repository https://example.org/ack-memory --out entry
  python3 - "$packages" <<'PYTHON'
import json, sys, tarfile, zipfile
from pathlib import Path

entry = json.loads(Path("entry/server.json").read_text())
versions = {package["registryType"]: package["version"] for package in entry["packages"]}
main = next(Path(sys.argv[1]).glob(f"ack-memory-{versions['npm']}.tgz"))
npm = json.load(tarfile.open(main).extractfile("package/package.json"))
assert npm["mcpName"] == entry["name"], npm["mcpName"]
wheel = next(Path(sys.argv[1]).glob(f"ack_memory-{versions['pypi']}-*.whl"))
info = f"ack_memory-{versions['pypi']}.dist-info/METADATA"
assert f"mcp-name: {entry['name']} " in zipfile.ZipFile(wheel).read(info).decode()
PYTHON
}

# Every package has our licences and, with the binary, those of the linked crates.
licences() {
  python3 - "$packages" "$packaging/.." <<'PYTHON'
import sys, tarfile, zipfile
from pathlib import Path

packages = [file for file in Path(sys.argv[1]).iterdir() if file.suffix not in (".rb", ".sha256")]
ours = {file.name for file in Path(sys.argv[2]).glob("LICENSE*")}
assert ours and packages
for file in packages:
    archive = zipfile.ZipFile(file) if zipfile.is_zipfile(file) else tarfile.open(file)
    names = archive.namelist() if hasattr(archive, "namelist") else archive.getnames()
    names = {Path(name).name for name in names}
    wanted = ours | {"THIRD-PARTY-LICENSES.txt"} if "ack-memory" in names else ours
    assert wanted <= names, f"{file.name} has no {sorted(wanted - names)}"
PYTHON
}

for name in \
  versions npm-pack npm-install npm-mcp npm-mcp-child npm-killed-child npm-platform-missing \
  npm-platform-unknown npm-no-glibc wheel-pack wheel-tag wheel-install wheel-mcp wheel-uvx \
  mcpb-pack mcpb-mcp archive-pack archive-run formula registry-entry licences; do
  check "$name"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
