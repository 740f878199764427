#!/usr/bin/env bash
# Installs the program and the units of `bulkhead serve`; starts nothing. Run deploy/setup.sh as root before.
#
#   deploy/systemd/install.sh [--program FILE] [--root DIR]
#
# --program: the built program (build/bulkhead beside this checkout's other folders otherwise)
# --root:    installs below DIR, without telling systemd (for packages and tests)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$here/../../build/bulkhead
root=''
account=bulkhead

say() { printf '%s\n' "$*" >&2; }
die() { printf 'install: error: %s\n' "$*" >&2; exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --program) program=${2:?--program needs a file}; shift 2 ;;
    --root) root=${2:?--root needs a folder}; shift 2 ;;
    -h|--help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) printf 'install: unknown argument %s (see --help)\n' "$1" >&2; exit 2 ;;
  esac
done

[ -x "$program" ] || die "there is no program at $program; build it with deploy/setup.sh, or name it: --program FILE"
[ -n "$root" ] || [ "$(id -u)" = 0 ] || die "this writes to /etc and /usr/local; run it as root"
uid=$(id -u "$account" 2>/dev/null) || die "there is no account '$account'; as root, run deploy/setup.sh first"

units=$root/etc/systemd/system
install -d -m 0755 "$root/usr/local/bin" "$units" "$units/bulkhead.service.d" "$root/etc/bulkhead"
# Another name first: a program that runs can't be written to, but replaced.
install -m 0755 "$program" "$root/usr/local/bin/.bulkhead.new"
mv -f "$root/usr/local/bin/.bulkhead.new" "$root/usr/local/bin/bulkhead"
install -m 0644 "$here/bulkhead.service" "$here/bulkhead.socket" "$units/"

# On cgroup v2 rootless podman has its limits set by the account's own service manager, over the user's bus.
drop_in=$units/bulkhead.service.d/10-user-manager.conf
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  cat >"$drop_in" <<UNIT
# Written by deploy/systemd/install.sh: who sets the limits of the sandboxes on cgroup v2.
[Unit]
Requires=user@$uid.service
After=user@$uid.service

[Service]
Environment=DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$uid/bus
BindPaths=/run/user/$uid
UNIT
  [ -n "$root" ] || [ "$(dpkg-query -W -f '${db:Status-Status}' dbus-user-session 2>/dev/null)" = installed ] ||
    say "install the package dbus-user-session, or memory and pids limits of sandboxes won't be enforced"
else
  rm -f "$drop_in"
  say "cgroup v1: delegated cgroups are gone after a boot; deploy/setup.sh --no-build --no-image makes them again"
fi

[ -n "$root" ] || systemctl daemon-reload ||
  die "systemd did not take the units (its words are above); they are in $units"
say "installed $root/usr/local/bin/bulkhead and the units in $units. Next:"
say "  1. tenants: /var/lib/$account/MCPs/bulkhead.toml, as in deploy/examples/bulkhead.toml; bulkhead token new NAME"
say "  2. systemctl enable --now bulkhead          (bulkhead.socket, too, if systemd is to listen)"
say "  3. journalctl -u bulkhead                   (which limits hold, and what is wrong)"
