#!/bin/sh
# What the container runs: makes the sandbox image the first time (Debian's packages, so that needs the network; it is
# kept in the volume), and a configuration where there is none, then serves. Arguments are handed on to `bulkhead serve`.
set -eu

config=${BULKHEAD_CONFIG:-$HOME/MCPs/bulkhead.toml}
if [ ! -f "$config" ] && [ -n "${BULKHEAD_CONFIG-}" ]; then
  echo "start-bulkhead: error: there is no configuration at $config, which BULKHEAD_CONFIG names: put one there (deploy/examples/bulkhead.toml), or unset the variable" >&2
  exit 2
fi
if [ ! -f "$config" ]; then
  # A volume that is new. The log is no place for a token.
  (umask 077 && bulkhead token new local --add-tenant --id first --config "$config" >"$HOME/first-token")
  echo "start-bulkhead: made $config with the tenant \"local\"; its token is in $HOME/first-token: copy it and remove that file" >&2
fi
# Without it, podman may choose a store that copies the image for every container.
storage=$HOME/.config/containers/storage.conf
if [ ! -e "$storage" ]; then
  mkdir -p "${storage%/*}"
  printf '[storage]\ndriver = "overlay"\n' >"$storage"
fi
# What another start of this container left there are sockets, locks and podman's notes of processes that are gone.
find "$XDG_RUNTIME_DIR" -mindepth 1 -delete
bulkhead image build
exec bulkhead serve --config "$config" --listen 0.0.0.0:8765 "$@"
