#!/usr/bin/env bash
# One check of run.sh, by its name. Runs in an empty folder below its own home folder, with what run.sh hands over in the environment: BINARY and
# ROOT (the server and its sample scopes), INTO (where the clients are), GUARDED and OPEN (servers over HTTP, with the token
# ACK_MEM_TOKEN and without one). A command that fails fails the check; what is printed is shown then.
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
name="$1"

# program FOLDER NAME: an installed program.
program() {
  echo "$INTO/$1/node_modules/.bin/$2"
}

# target stdio|http: the command or the address of the server, in the array `server`.
target() {
  case "$1" in
    stdio) server=("$here/tap.sh" "$PWD/lines" ${FAULT:+node "$here/fault.mjs" "$FAULT" stdio} "$BINARY" --root "$ROOT" serve) ;;
    http) server=("$GUARDED") ;;
  esac
}

python() {
  local major="$1"
  target "$2"
  "$INTO/python-$major/bin/python" -W ignore "$here/session.py" "$2" "$3" "${server[@]}"
  protocol_only "$2"
}

typescript() {
  local major="$1"
  target "$2"
  node "$here/session.mjs" "$major" "$INTO/typescript-$major" "$2" "$3" "${server[@]}"
  protocol_only "$2"
}

# protocol_only stdio|http: the server has written messages and nothing else.
protocol_only() {
  [ "$1" = http ] || node "$here/lines.mjs" lines
}

conformance() {
  local revision="$1" suite
  suite=("$(program conformance conformance)" server --url "$OPEN" -o results)
  case "$revision" in
    2025-06-18)
      # What Codex and Gemini CLI ask for. The suite has no set of requirements for it.
      "${suite[@]}" --suite all --spec-version "$revision" --expected-failures "$here/conformance-2025-11-25.yml"
      ;;
    *) "${suite[@]}" --requirements "$revision" --expected-failures "$here/conformance-$revision.yml" ;;
  esac
  if [ "$revision" = 2026-07-28 ]; then
    # Not scored by the suite yet, and kept by this server.
    "${suite[@]}" --scenario http-header-validation --spec-version "$revision"
  fi
}

# inspect OUTCOME TEXT ARGUMENT...: the Inspector ends with this outcome and prints this text.
inspect() {
  local outcome="$1" text="$2" ended=0 said
  shift 2
  said="$("$(program inspector mcp-inspector)" --cli "$@" ${header[@]+"${header[@]}"} --protocol-era "$era" --format json "${server[@]}" 2>&1)" || ended=$?
  if [ "$ended" -ne "$outcome" ] || [[ "$said" != *"$text"* ]]; then
    printf 'ended with %s instead of %s, or without %s: %s\n%s\n' "$ended" "$outcome" "$text" "$*" "${said:0:3000}"
    return 1
  fi
  protocol_only "$transport"
}

inspector() {
  transport="$1"
  era="$2"
  header=()
  target "$1"
  if [ "$1" = http ]; then
    header=(--header "Authorization: Bearer $ACK_MEM_TOKEN")
  fi
  # Outcome 6 is a schema that some host would refuse, 5 an error result.
  inspect 0 '"query_memories"' --method tools/list --strict
  inspect 0 '"results"' --method tools/call --tool-name query_memories --tool-args-json '{"query":"connection pool"}'
  inspect 0 '"scopes"' --method tools/call --tool-name list_scopes
  inspect 0 '"project"' --method tools/call --tool-name get_context
  inspect 5 memory_not_found --method tools/call --tool-name get_memory --tool-args-json '{"id":"no-such-memory"}'
  inspect 0 '"ok":200,' --method tools/call --tool-name query_memories --tool-args-json '{"query":"connection pool"}' \
    --load --load-requests 200 --load-concurrency 16
  inspect 0 memory://scopes --method resources/list
  inspect 0 'memory://scope/{name}' --method resources/templates/list
  inspect 0 '"contents"' --method resources/read --uri memory://scopes
  inspect 1 'there is no resource' --method resources/read --uri memory://nothing
  inspect 0 recall --method prompts/list
  inspect 0 '"messages"' --method prompts/get --prompt-name recall --prompt-args query=pool
}

# Both entries of a list of servers are called connected.
both_connected() {
  local said="$1" entry
  printf '%s\n' "$said"
  for entry in ack-memory ack-http; do
    grep -qE "(^|[^a-z-])$entry:.*[^s]Connected" <<< "$said"
  done
}

claude_code() {
  local claude
  claude="$(program claude claude)"
  export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1
  mkdir -p "$HOME/.claude"
  "$BINARY" --root "$ROOT" connect claude-code --yes
  "$claude" mcp add --transport http ack-http "$GUARDED" --header "Authorization: Bearer $ACK_MEM_TOKEN"
  both_connected "$("$claude" mcp list)"
}

claude_code_plugin() {
  local claude
  claude="$(program claude claude)"
  export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1
  "$claude" plugin validate --strict "$here/../../plugins/ack-memory"
  "$claude" plugin validate --strict "$here/../../.claude-plugin/marketplace.json"
}

mcpb_manifest() {
  "$(program mcpb mcpb)" validate "$here/../../packaging/manifest.json"
}

codex() {
  mkdir -p "$HOME/.codex"
  # A model that is not there, so that nobody is asked for one.
  cat > "$HOME/.codex/config.toml" << TOML
model_provider = "none"

[model_providers.none]
name = "none"
base_url = "http://127.0.0.1:9"

[analytics]
enabled = false

[mcp_servers.ack-http]
url = "$GUARDED"
bearer_token_env_var = "ACK_MEM_TOKEN"
TOML
  "$BINARY" --root "$ROOT" connect codex --yes
  "$(program codex codex)" mcp list
  node "$here/codex.mjs" "$(program codex codex)" ack-memory ack-http
}

gemini() {
  local gemini
  gemini="$(program gemini gemini)"
  export GEMINI_CLI_TRUST_WORKSPACE=true
  mkdir -p "$HOME/.gemini"
  "$BINARY" --root "$ROOT" connect gemini --yes
  "$gemini" mcp add --scope user --transport http -H "Authorization: Bearer $ACK_MEM_TOKEN" ack-http "$GUARDED"
  both_connected "$("$gemini" mcp list 2>&1)"
}

servers_hold() {
  local server
  for server in $SERVERS; do
    kill -0 "$server"
  done
}

stores_unchanged() {
  (cd "$ROOT" && find . -type f -exec cksum {} + | sort) | diff "$BEFORE" -
}

cd "$HOME/project"
case "$name" in
  conformance-* | inspector-* | claude-code* | gate-* | session-* | team-azure) PATH="$NEWER_NODE:$PATH" ;;
esac
IFS=- read -r first second third fourth <<< "$name"
case "$name" in
  python-*) python "$second" "$third" "$fourth" ;;
  typescript-*) typescript "$second" "$third" "$fourth" ;;
  conformance-*) conformance "${name#conformance-}" ;;
  inspector-*) inspector "$second" "$third" ;;
  claude-code) claude_code ;;
  claude-code-plugin) claude_code_plugin ;;
  http-guarded) node "$here/guard.mjs" "$GUARDED" ;;
  gate-*) node "$here/gate.mjs" ;;
  session-*) node "$here/agent.mjs" "${name#session-}" ;;
  desk-*) node "$here/desk.mjs" "$second" ;;
  bucket-conditions) "$INTO/python-moto/bin/python" "$here/bucket.py" "$second" ;;
  proxy-*) python3 -B "$here/proxies.py" "$second" ;;
  team-*) "$INTO/python-moto/bin/python" -B "$here/team.py" "$second" ;;
  mcpb-manifest) mcpb_manifest ;;
  codex) codex ;;
  gemini) gemini ;;
  servers-hold) servers_hold ;;
  stores-unchanged) stores_unchanged ;;
  *)
    echo "there is no check $name ($first)" >&2
    exit 2
    ;;
esac
