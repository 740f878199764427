#!/bin/sh
# What compose.yaml asks whether the container is healthy: the server in it, in the clear or, with [tls] in its
# configuration, over TLS. Its certificate has another name than this address, between which and us there is nobody.
ask() {
  curl --fail --silent --show-error --output /dev/null --max-time 4 "$@"
}
ask http://127.0.0.1:8765/readyz 2>/dev/null || ask --insecure https://127.0.0.1:8765/readyz
