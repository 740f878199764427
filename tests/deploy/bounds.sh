#!/bin/bash
# Runs a command as systemd would within deploy/systemd/bulkhead.service, as far as that can be had without systemd: in
# namespaces of its own, with the file system read-only and the capabilities given.
#
#   bounds.sh ACCOUNT STATE-FOLDER RUNTIME-FOLDER CAPABILITIES UMASK COMMAND…    as root
#
# STATE-FOLDER and RUNTIME-FOLDER are the two that may be written to. Everything that is started ends with it.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  exec unshare --mount --pid --fork --kill-child --mount-proc --propagation slave "${BASH_SOURCE[0]}" inside "$@"
fi
account=$2 state=$3 runtime=$4 capabilities=$5 mask=$6
shift 6

mount --make-rshared /
for folder in "$state" "$runtime"; do mount --bind "$folder" "$folder"; done
cut -d' ' -f5 /proc/self/mountinfo | sort -u | while IFS= read -r mounted; do # ProtectSystem=strict
  case $mounted in
    /dev|/dev/*|/proc|/proc/*|/sys|/sys/*|"$state"|"$runtime") ;;
    *) mount -o remount,bind,ro "$mounted" ;;
  esac
done
for folder in /home /root /run/user; do # ProtectHome=tmpfs
  [ ! -d "$folder" ] || mount -t tmpfs -o ro,mode=0755 tmpfs "$folder"
done
for folder in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done # PrivateTmp
cd "$state"
umask "$mask"
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME="$state" \
  USER="$account" LOGNAME="$account" XDG_RUNTIME_DIR="$runtime" \
  setpriv --reuid "$account" --regid "$account" --init-groups --bounding-set "-all,$capabilities" "$@"
