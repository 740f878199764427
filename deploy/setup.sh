#!/usr/bin/env bash
# Sets Bulkhead up on Debian 12: packages, program, account, image. Run it as often as you like.
#
#   deploy/setup.sh [--build-dir DIR] [--tests] [--run-only] [--no-build] [--no-image] [--any-system]
#
# As root:  makes the account "bulkhead", which has no password and no shell, and has every container run
#           rootless as that account.
# As a user: containers run rootless as yourself; sudo is asked for only when packages or sub-uids are missing.
# --run-only leaves out what only building needs, and the build: for machines that get the program from elsewhere.
# --tests adds what deploy/test.sh needs: clang and its tools, runsc, test suites, and Node where there is none.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$repo/build
account=bulkhead
account_home=/var/lib/bulkhead
account_runtime=/run/bulkhead
sub_ids=65536
with_tests='' run_only='' no_build='' no_image='' any_system=''
system_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

while [ $# -gt 0 ]; do
  case $1 in
    --build-dir) build=${2:?--build-dir needs a folder}; shift 2 ;;
    --tests) with_tests=1; shift ;;
    --run-only) run_only=1 no_build=1; shift ;;
    --no-build) no_build=1; shift ;;
    --no-image) no_image=1; shift ;;
    --any-system) any_system=1; shift ;;
    -h|--help) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) printf 'setup: unknown argument %s (see --help)\n' "$1" >&2; exit 2 ;;
  esac
done

steps=6
step_number=0
step() { step_number=$((step_number + 1)); printf '\n[%d/%d] %s\n' "$step_number" "$steps" "$*" >&2; }
say() { printf '      %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }
is_root() { [ "$(id -u)" = 0 ]; }

# Tools of the system alone: a compiler or Python from a version manager's PATH doesn't fit Debian's libraries.
caller_path=$PATH
export PATH=$system_path
unset LIBRARY_PATH LD_LIBRARY_PATH CPATH PYTHONPATH PYTHONHOME CC CXX

# --- 1 -------------------------------------------------------------------------------------------
check_system() {
  local id='' version='' pretty=''
  if [ -r /etc/os-release ]; then
    id=$(. /etc/os-release; printf '%s' "${ID:-}")
    version=$(. /etc/os-release; printf '%s' "${VERSION_ID:-}")
    pretty=$(. /etc/os-release; printf '%s' "${PRETTY_NAME:-}")
  fi
  step "The system: ${pretty:-unknown} on $(uname -m), kernel $(uname -r)"
  [ "$(uname -s)" = Linux ] || die "this script sets Bulkhead up on Linux; this is $(uname -s)"
  if [ "$id" != debian ] || [ "$version" != 12 ]; then
    [ -n "$any_system" ] || die "this script knows Debian 12 (bookworm), and this is ${pretty:-another system}. \
Its libraries (CAF 0.17, podman 4.3) differ elsewhere. To try all the same: $0 --any-system; without apt, install what the list in this script names"
    command -v apt-get >/dev/null || die "there is no apt-get here; install what the list in this script names, then run: $0 --any-system"
    say "not Debian 12: package names and versions may not fit"
  fi
  if is_root; then
    say "as root: the account '$account' will be made, and containers run rootless as that account"
  else
    say "as $(id -un): containers will run rootless as you; sudo is asked for only if packages or sub-uids are missing"
  fi
}

# --- 2 -------------------------------------------------------------------------------------------
build_packages="g++ cmake ninja-build ccache libcaf-dev libboost-dev libboost-system-dev nlohmann-json3-dev libfmt-dev
  libspdlog-dev libcli11-dev libexpected-dev libacl1-dev libsqlite3-dev libcurl4-openssl-dev libssl-dev libyaml-cpp-dev
  libtomlplusplus-dev libre2-dev libcjose-dev libsystemd-dev prometheus-cpp-dev libgtest-dev python3"
# uidmap: maps of sub-uids; catatonit: the init inside; slirp4netns: podman wants it even where no network is.
runtime_packages="podman crun runc uidmap fuse-overlayfs catatonit acl slirp4netns mmdebstrap debian-archive-keyring
  util-linux ca-certificates"

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

node_there() { PATH=$caller_path command -v node >/dev/null; }

# With root's rights; says what is run.
privileged() {
  if is_root; then "$@"; return; fi
  command -v sudo >/dev/null || die "this needs root's rights, and sudo isn't installed; as root, run: $*"
  say "sudo $*"
  sudo "$@"
}

install_packages() {
  local wanted=$runtime_packages missing=() p
  [ -n "$run_only" ] || wanted="$build_packages $wanted"
  if [ -n "$with_tests" ]; then
    # The JSON Schema test suite is in two packages: of draft 7, and of 2020-12 too.
    # clang comes with clang-tidy anyway; libclang-rt-dev, with what it needs 7 MB to fetch, has libFuzzer and the sanitizers.
    wanted="$wanted clang-format clang-tidy clang libclang-rt-dev runsc json-schema-test-suite
      libtest-json-schema-acceptance-perl systemd openssl"
    # The browser in which the web page is looked at.
    wanted="$wanted chromium"
    # Node comes from elsewhere on many machines, and then npm with it.
    node_there || wanted="$wanted nodejs npm"
  fi
  step "Packages"
  for p in $wanted; do installed "$p" || missing+=("$p"); done
  if [ ${#missing[@]} -eq 0 ]; then say "all there"; return; fi
  say "installing ${missing[*]}"
  privileged env DEBIAN_FRONTEND=noninteractive apt-get -qq update >&2 ||
    say "apt-get update failed; going on with the lists that are there"
  privileged env DEBIAN_FRONTEND=noninteractive apt-get -y -qq install --no-install-recommends "${missing[@]}" >&2 ||
    die "apt-get could not install ${missing[*]} (its words are above); check /etc/apt's sources and the network, then run this again"
}

# --- 3 -------------------------------------------------------------------------------------------
build_program() {
  local jobs memory_jobs
  step "The program: $build/bulkhead"
  if [ -n "$no_build" ]; then say "skipped"; return; fi
  # A translation unit with actors takes up to 1.5 GB.
  jobs=$(nproc)
  memory_jobs=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) / 1500000))
  [ "$memory_jobs" -ge "$jobs" ] || jobs=$((memory_jobs > 1 ? memory_jobs : 1))
  cmake -S "$repo" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython3_EXECUTABLE=/usr/bin/python3 >&2 ||
    die "cmake could not configure the build in $build (its words are above); remove that folder if it stems from another machine"
  say "compiling with $jobs processes; the first time takes several minutes"
  cmake --build "$build" -j "$jobs" >&2 || die "the build failed (the compiler's words are above)"
  say "$("$build/bulkhead" --version)"
}

# --- 4 -------------------------------------------------------------------------------------------
# The first sub-uid or sub-gid above all ranges that anybody has.
free_start() {
  awk -F: 'BEGIN { top = 100000 } NF >= 3 && $2 + $3 > top { top = $2 + $3 } END { print top }' /etc/subuid /etc/subgid 2>/dev/null ||
    echo 100000
}
has_sub_ids() { # FILE NAME UID
  awk -F: -v name="$2" -v uid="$3" -v want=$sub_ids \
    '($1 == name || $1 == uid) && $3 >= want { found = 1 } END { exit !found }' "$1" 2>/dev/null
}
sub_ids_given=''
give_sub_ids() { # NAME
  local name=$1 uid start options=()
  uid=$(id -u "$name")
  start=$(free_start)
  has_sub_ids /etc/subuid "$name" "$uid" || options+=(--add-subuids "$start-$((start + sub_ids - 1))")
  has_sub_ids /etc/subgid "$name" "$uid" || options+=(--add-subgids "$start-$((start + sub_ids - 1))")
  if [ ${#options[@]} -eq 0 ]; then say "sub-uids and sub-gids of $name are there"; return; fi
  privileged usermod "${options[@]}" "$name" || die "usermod could not give $name sub-uids; as root, run: usermod ${options[*]} $name"
  say "gave $name ${options[*]}"
  sub_ids_given=1
}

make_account() {
  step "The account"
  if ! is_root; then
    give_sub_ids "$(id -un)"
    # Podman keeps the old map until it's told.
    [ -z "$sub_ids_given" ] || podman system migrate >&2 ||
      say "podman didn't take the new sub-ids (its words are above); once its containers have ended: podman system migrate"
    return
  fi
  if id "$account" >/dev/null 2>&1; then
    say "the account $account is there"
    [ "$(getent passwd "$account" | cut -d: -f6)" = "$account_home" ] ||
      die "an account '$account' exists whose home isn't $account_home, so it isn't Bulkhead's; rename it, or run Bulkhead with --account NAME"
  else
    useradd --system --user-group --home-dir "$account_home" --no-create-home --shell /usr/sbin/nologin "$account" ||
      die "useradd could not make the account $account"
    say "made the account $account"
  fi
  install -d -m 0700 -o "$account" -g "$account" "$account_home"
  give_sub_ids "$account"
}

# --- 5 -------------------------------------------------------------------------------------------
delegate_v1() {
  local controller folder done=() missing=()
  for controller in memory pids cpu; do
    folder=/sys/fs/cgroup/$controller/$account
    if [ -d "/sys/fs/cgroup/$controller" ] && mkdir -p "$folder" 2>/dev/null &&
       chown "$account:$account" "$folder" "$folder/cgroup.procs" "$folder/tasks" 2>/dev/null; then
      done+=("$folder")
    else
      missing+=("$controller")
    fi
  done
  [ ${#done[@]} -eq 0 ] || say "cgroup v1: delegated ${done[*]}"
  [ ${#missing[@]} -eq 0 ] ||
    say "the cgroup can't be delegated under ${missing[*]}: such limits won't be enforced, and 'bulkhead doctor' says so"
}

delegation_remarks() { # USER
  local uid controllers
  uid=$(id -u "$1")
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    if [ ! -d /run/systemd/system ]; then
      say "cgroup v2 without systemd: 'bulkhead doctor' says which limits hold"
      return
    fi
    controllers=$(cat "/sys/fs/cgroup/user.slice/user-$uid.slice/user@$uid.service/cgroup.controllers" 2>/dev/null || true)
    case " $controllers " in
      *" memory "*) say "cgroup v2: systemd delegates $controllers to $1" ;;
      *) say "cgroup v2: for limits to be enforced, $1 needs a service manager of its own: loginctl enable-linger $1" ;;
    esac
  else
    say "cgroup v1: memory, pids and cpu limits of a user's containers aren't enforced here; they are when Bulkhead is set up and started as root"
  fi
}

prepare_runtime() {
  step "Resource limits and runtime folder"
  if ! is_root; then delegation_remarks "$(id -un)"; return; fi
  install -d -m 0700 -o "$account" -g "$account" "$account_runtime"
  say "$account_runtime belongs to $account"
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then delegation_remarks "$account"; else delegate_v1; fi
}

# --- 6 -------------------------------------------------------------------------------------------
# Runs a command as the account (as oneself, when not root), with nothing of the caller's environment but proxies.
as_account() {
  local variables=(PATH="$system_path" LANG=C.UTF-8) name
  if ! is_root; then "$@"; return; fi
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || variables+=("$name=${!name}")
  done
  (cd "$account_home" && exec env -i "${variables[@]}" HOME="$account_home" XDG_RUNTIME_DIR="$account_runtime" \
    USER="$account" LOGNAME="$account" setpriv --reuid "$account" --regid "$account" --init-groups "$@" </dev/null)
}

# Rootless podman may fall back to a driver that copies the image for every container. Somebody who has a
# store or a configuration keeps it; build-image.sh says when it is of that kind.
choose_store() {
  local home=${HOME:-} owner config options fresh=''
  owner=$(id -un)
  if is_root; then home=$account_home owner=$account; fi
  config=$home/.config/containers/storage.conf
  [ ! -e "$config" ] || return 0
  if is_root && [ -d "$home/.local/share/containers/storage/vfs" ]; then
    say "dropping a store that copies the image for every container"
    as_account podman system reset -f >/dev/null 2>&1 ||
      die "podman could not drop the store in $home/.local/share/containers; remove that folder and run this again"
  fi
  [ -e "$home/.local/share/containers/storage" ] || fresh=1
  [ -n "$fresh" ] || is_root || return 0
  as_account mkdir -p "${config%/*}"
  # The kernel's own overlay first, then the one by FUSE.
  for options in '' '[storage.options.overlay]\nmount_program = "/usr/bin/fuse-overlayfs"\n'; do
    printf "[storage]\ndriver = \"overlay\"\n$options" >"$config"
    if as_account podman info >/dev/null 2>&1; then
      say "image store of $owner: overlay${options:+ by FUSE} ($config)"
      return
    fi
  done
  # The trial has left its choice in a new store's database.
  rm -f "$config"
  [ -z "$fresh" ] || rm -rf "$home/.local/share/containers/storage"
  say "neither the kernel nor fuse-overlayfs mounts overlays for $owner here: every container will copy the image"
}

make_image() {
  step "The sandbox image"
  choose_store
  if [ -n "$no_image" ]; then say "skipped"; return; fi
  if [ -x "$build/bulkhead" ]; then
    # As root it becomes the account by itself.
    "$build/bulkhead" image build >&2 || die "the image could not be made (the reason is above)"
    return
  fi
  # The account may not be able to read this checkout (under /root, say): it gets copies.
  scripts=$(mktemp -d /tmp/bulkhead-image.XXXXXX)
  install -m 0755 "$repo"/deploy/image/build-image.sh "$repo"/deploy/image/build-rootfs.sh "$scripts/"
  chmod 0755 "$scripts"
  as_account bash "$scripts/build-image.sh" --runtime podman >&2 || die "the image could not be made (the reason is above)"
}

scripts=''
trap '[ -z "$scripts" ] || rm -rf "$scripts"' EXIT
check_system
install_packages
build_program
make_account
prepare_runtime
make_image
# Quickstart itself is next when it runs this.
[ -n "${BULKHEAD_QUICKSTART:-}" ] || printf '\nBulkhead is set up. Next: deploy/quickstart.sh runs a sample, %s/bulkhead doctor checks every limit.\n' "$build" >&2
