#!/usr/bin/env bash
# Makes the sandbox image in the calling user's own image store; does nothing when it is there already.
#
#   build-image.sh [--profile minimal|data] [--runtime podman|docker] [--tag NAME] [--suite trixie]
#                  [--mirror URL] [--with "python3-yaml …"] [--force]
#   build-image.sh --pull [REFERENCE] [--runtime …] [--tag NAME]
#
# The profile minimal has Python and its library; data has numpy, pandas, matplotlib, scipy and Pillow, too.
# Without --pull the image is built from Debian packages by build-rootfs.sh, which lies beside this script.
# The root file system is kept in the cache folder, so that another store gets it without a second build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
profile=minimal
tag=
runtime=
suite=trixie
mirror=
with=
force=
pull=
default_reference=docker.io/library/python:3.13-slim

say() { printf 'image: %s\n' "$*" >&2; }
die() { printf 'image: error: %s\n' "$*" >&2; exit 1; }
usage() { sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case $1 in
    --runtime) runtime=${2:?--runtime needs podman or docker}; shift 2 ;;
    --profile) profile=${2:?--profile needs minimal or data}; shift 2 ;;
    --tag) tag=${2:?--tag needs a name}; shift 2 ;;
    --suite) suite=${2:?--suite needs a Debian suite}; shift 2 ;;
    --mirror) mirror=${2:?--mirror needs a URL}; shift 2 ;;
    --with) with=${2?--with needs package names}; shift 2 ;;
    --force) force=1; shift ;;
    --pull)
      pull=$default_reference; shift
      case ${1:-} in ''|-*) ;; *) pull=$1; shift ;; esac ;;
    -h|--help) usage ;;
    *) printf 'image: unknown argument %s\n' "$1" >&2; usage ;;
  esac
done

case $profile in
  minimal) default_tag=localhost/bulkhead-sandbox:latest packages= ;;
  data)
    default_tag=localhost/bulkhead-sandbox:data
    packages="python3-numpy python3-pandas python3-matplotlib python3-scipy python3-pil" ;;
  *) die "there is no profile '$profile'; profiles are minimal and data" ;;
esac
tag=${tag:-$default_tag}
packages=${packages}${with:+ $with}

if [ -z "$runtime" ]; then
  for r in podman docker; do command -v "$r" >/dev/null && { runtime=$r; break; }; done
fi
case $runtime in
  podman|docker) command -v "$runtime" >/dev/null || die "$runtime is not installed; on Debian: apt-get install $runtime" ;;
  '') die "neither podman nor docker is installed; on Debian: apt-get install podman uidmap" ;;
  *) die "--runtime is podman or docker, not '$runtime'" ;;
esac

image_id() { "$runtime" image inspect --format '{{.Id}}' "$tag" 2>/dev/null || true; }
image_label() { "$runtime" image inspect --format "{{index .Config.Labels \"$1\"}}" "$tag" 2>/dev/null || true; }

# The store is asked before anything is built: its failures are the commonest ones.
reason=$("$runtime" version 2>&1 >/dev/null) || case $reason in
  *'invalid internal status'*)
    say "podman has lost its processes; mending that with: podman system migrate"
    podman system migrate >&2 || true ;;
esac
reason=$("$runtime" version 2>&1 >/dev/null) || die "$runtime doesn't work for $(id -un): $(printf '%s' "$reason" | tail -3)"
if [ "$runtime" = podman ] && [ "$(podman info --format '{{.Store.GraphDriverName}}' 2>/dev/null)" = vfs ]; then
  say "warning: this store uses the driver vfs, which copies the whole image for every container; write"
  say "warning:   [storage] and driver = \"overlay\" to ~/.config/containers/storage.conf, then podman system reset"
fi

# The first container in a user namespace of its own makes podman copy the image once; better now than later.
warm_up() {
  local options=(--rm --pull=never --network none --user 65534:65534) reason
  [ "$runtime" = podman ] || return 0
  [ "$(id -u)" = 0 ] || options+=(--userns=nomap)
  # crun refuses cgroup v1 beside v2.
  [ ! -d /sys/fs/cgroup/unified ] || ! command -v runc >/dev/null || set -- --runtime runc
  if ! reason=$(podman "$@" run "${options[@]}" "$tag" python3 -I -c 'import asyncio' 2>&1); then
    say "warning: the image is made, but a container from it doesn't start: $(printf '%s' "$reason" | tail -2)"
    say "warning:   'bulkhead doctor' tells more"
  fi
}

if [ -n "$pull" ]; then
  say "pulling $pull with $runtime"
  "$runtime" pull "$pull" >&2 || die "$runtime could not pull $pull (its words are above); without --pull the image is built from Debian packages instead"
  "$runtime" tag "$pull" "$tag"
  warm_up
  say "$tag is $pull"
  exit 0
fi

# Everything that shapes the image goes into the recipe; its hash is the image's version.
recipe=$(cat "$here/build-rootfs.sh" "${BASH_SOURCE[0]}" | { cat; printf '%s|%s|%s' "$suite" "$packages" "$(uname -m)"; } | sha256sum | cut -c1-16)
old=$(image_id)
if [ -n "$old" ] && [ -z "$force" ] && [ "$(image_label org.bulkhead.recipe)" = "$recipe" ]; then
  say "$tag is up to date (profile $profile, recipe $recipe)"
  exit 0
fi

if [ "$(id -u)" = 0 ]; then
  cache=${XDG_CACHE_HOME:-/var/cache}/bulkhead
else
  cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set, and the root file system is kept under it}/.cache}/bulkhead
fi
rootfs=$cache/rootfs-$profile-$recipe.tar
# One that root made may be used by all; one that some other account made may not.
shared=/var/cache/bulkhead/rootfs-$profile-$recipe.tar
[ -f "$rootfs" ] || [ ! -f "$shared" ] || [ "$(stat -c %u "$shared")" != 0 ] || rootfs=$shared
if [ -f "$rootfs" ] && [ -z "$force" ]; then
  say "taking the root file system from $rootfs"
else
  rootfs=$cache/rootfs-$profile-$recipe.tar
  mkdir -p "$cache"
  bash "$here/build-rootfs.sh" --suite "$suite" ${mirror:+--mirror "$mirror"} ${packages:+--with "$packages"} "$rootfs"
  # Older recipes' files are of no use any more; once there were no profiles in their names.
  find "$cache" -maxdepth 1 \( -name "rootfs-$profile-*.tar" -o -name 'rootfs-????????????????.tar' \) \
    ! -name "${rootfs##*/}" -delete
fi

say "importing into $runtime as $tag"
quiet=
[ "$runtime" = docker ] || quiet=--quiet
"$runtime" import $quiet \
  -c 'CMD ["python3"]' -c 'WORKDIR /workspace' \
  -c 'ENV PATH=/usr/bin:/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1' \
  -c "LABEL org.bulkhead.image=sandbox" -c "LABEL org.bulkhead.recipe=$recipe" -c "LABEL org.bulkhead.source=debian:$suite" \
  "$rootfs" "$tag" >/dev/null || die "$runtime could not import $rootfs (its words are above)"
new=$(image_id)
[ -n "$new" ] || die "$runtime imported $rootfs, but doesn't know $tag afterwards"
if [ -n "$old" ] && [ "$old" != "$new" ]; then
  # A container of the old one may still run; then it stays until the next time.
  "$runtime" image rm "$old" >/dev/null 2>&1 || say "the image before this one stays; a container may still use it"
fi
warm_up
say "$tag is ready (profile $profile, recipe $recipe, $(( $(stat -c %s "$rootfs") / 1048576 )) MB)"
[ "$profile" = minimal ] || [ "$tag" != "$default_tag" ] || say "runs take it with MCP_BRIDGE_IMAGE=$profile"
