#!/usr/bin/env bash
# Sets Bulkhead up, runs a sample program in the sandbox against a sample MCP server, and prints what to paste
# into an agent's configuration. Arguments are handed on to setup.sh.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$repo/build
arguments=("$@")
while [ $# -gt 0 ]; do
  case $1 in -h|--help) sed -n '2,3s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;; esac
  if [ "$1" = --build-dir ]; then build=${2:?--build-dir needs a folder}; shift; fi
  shift
done

BULKHEAD_QUICKSTART=1 bash "$repo/deploy/setup.sh" "${arguments[@]+"${arguments[@]}"}"

# As root, Bulkhead and the servers it starts run as the account, which may not be able to read this checkout.
if [ "$(id -u)" = 0 ]; then
  examples=/var/lib/bulkhead/examples
  install -d -m 0755 "$examples"
  install -m 0644 "$repo"/deploy/examples/*.py "$examples/"
  servers=$examples/servers.json
  state=/var/lib/bulkhead/MCPs
else
  examples=$repo/deploy/examples
  servers=$build/quickstart-servers.json
  state=$HOME/MCPs
fi
sed "s|@EXAMPLES@|$examples|" "$repo/deploy/examples/servers.json.in" >"$servers"

printf '\nRunning %s in the sandbox, with the server "sample" within reach:\n\n' "$examples/report.py" >&2
MCP_SERVERS_CONFIG=$servers "$build/bulkhead" run "$examples/report.py" --server sample ||
  { printf '\nThe sample did not run. This says what is wrong: %s doctor\n' "$build/bulkhead" >&2; exit 1; }

printf '\nTo give an agent the tool run_python, put this into its MCP configuration; your own servers\n' >&2
printf 'go into files in %s (%s is the sample, and is written anew each time):\n\n' "$state" "$servers" >&2
cat <<JSON
{
  "mcpServers": {
    "bulkhead": {
      "command": "$build/bulkhead",
      "args": [],
      "env": { "MCP_SERVERS_CONFIG": "$servers" }
    }
  }
}
JSON
