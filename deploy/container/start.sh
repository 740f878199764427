#!/bin/sh
# What the container runs: makes the sandbox image the first time (Debian's packages, so that needs the network; it is
# kept in the volume), then serves. Arguments are handed on to `bulkhead serve`.
set -eu

config=${BULKHEAD_CONFIG:-$HOME/MCPs/bulkhead.toml}
if [ ! -f "$config" ]; then
  echo "start-bulkhead: error: there is no configuration at $config: put one there (deploy/examples/bulkhead.toml), or name another in BULKHEAD_CONFIG" >&2
  exit 2
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
