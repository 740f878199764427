#!/usr/bin/env bash
# Makes the root file system of the sandbox image from Debian packages, as one tar file.
#
#   build-rootfs.sh [--suite trixie] [--mirror URL] [--with "python3-numpy …"] OUT.tar
#
# Works as root and as an ordinary user (mmdebstrap then uses a user namespace, which needs sub-uids).
# No maintainer script runs: packages are only unpacked, and what their scripts would have set up is
# done here. The result depends on nothing but the packages, so that it can be cached.
set -euo pipefail

suite=trixie          # Python 3.13
mirror=
packages="python3,dash,coreutils,tzdata"
out=

say() { printf 'rootfs: %s\n' "$*" >&2; }
die() { printf 'rootfs: error: %s\n' "$*" >&2; exit 1; }
usage() { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case $1 in
    --suite) suite=${2:?--suite needs a Debian suite}; shift 2 ;;
    --mirror) mirror=${2:?--mirror needs a URL}; shift 2 ;;
    --with) packages="$packages,$(printf '%s' "${2?--with needs package names}" | tr -s ' ,' ',')"; shift 2 ;;
    -h|--help) usage ;;
    -*) printf 'rootfs: unknown option %s\n' "$1" >&2; usage ;;
    *) [ -z "$out" ] || usage; out=$1; shift ;;
  esac
done
[ -n "$out" ] || usage
command -v mmdebstrap >/dev/null ||
  die "mmdebstrap is missing, and the image can't be made without it; install it with: apt-get install mmdebstrap"

# The machine's own Debian mirror is the one that is known to work here; apt itself is asked, because
# it reads both forms of sources files. Another distribution's mirror doesn't hold Debian suites.
default_mirror=http://deb.debian.org/debian
machine_mirror() {
  local id='' codename=''
  id=$(. /etc/os-release 2>/dev/null; printf '%s' "${ID:-}")
  codename=$(. /etc/os-release 2>/dev/null; printf '%s' "${VERSION_CODENAME:-}")
  [ "$id" = debian ] && [ -n "$codename" ] || return 0
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v want="$codename" '$2 == want && $3 == "main" && $1 ~ /^(http|https|file|copy|mirror)/ { print $1; exit }'
}
if [ -z "$mirror" ]; then
  mirror=$(machine_mirror)
  mirror=${mirror:-$default_mirror}
fi

# mmdebstrap's apt doesn't read this machine's apt.conf.d; proxies and the checks that an archive
# snapshot needs switched off are handed on.
work=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-rootfs.XXXXXX")
partial=
cleanup() { rm -rf "$work"; [ -z "$partial" ] || rm -f "$partial"; }
trap cleanup EXIT
trap 'exit 130' INT TERM
apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https Acquire::Check-Valid-Until \
  Acquire::Check-Date Acquire::Retries | sed '/ "";$/d' >"$work/apt.conf"

# Runs before anything is unpacked: a merged /usr, whatever the suite ships.
setup_hook='set -eu
root=$1
for d in bin sbin lib; do mkdir -p "$root/usr/$d"; [ -e "$root/$d" ] || ln -s "usr/$d" "$root/$d"; done
if [ "$(dpkg --print-architecture)" = amd64 ]; then
  mkdir -p "$root/usr/lib64"; [ -e "$root/lib64" ] || ln -s usr/lib64 "$root/lib64"
fi'

# Runs after unpacking, with the root file system as $1.
extract_hook='set -eu
root=$1
cd "$root"
for d in dev proc sys run etc var/tmp tmp workspace ipc projects root; do mkdir -p "$d"; done
chmod 1777 tmp var/tmp workspace
chmod 0755 ipc projects
printf "%s\n" "root:x:0:0:root:/root:/usr/sbin/nologin" "sandbox:x:65534:65534:sandbox:/workspace:/bin/sh" >etc/passwd
printf "%s\n" "root:x:0:" "sandbox:x:65534:" >etc/group
printf "%s\n" "passwd: files" "group: files" "hosts: files" >etc/nsswitch.conf
printf "%s\n" "127.0.0.1 localhost" "::1 localhost" >etc/hosts
: >etc/resolv.conf
: >etc/hostname
ln -sf /usr/share/zoneinfo/Etc/UTC etc/localtime
[ -e usr/bin/sh ] || ln -s dash usr/bin/sh
# What the alternatives system would have linked for numpy and scipy.
for lib in blas/libblas lapack/liblapack; do
  for so in usr/lib/*-linux-gnu/$lib.so.3; do
    [ -e "$so" ] || continue
    ln -sf "${so#usr/lib/*-linux-gnu/}" "${so%/*/*}/${so##*/}"
  done
done
# mmdebstrap removes this file in the end and fails without it.
keep_for_mmdebstrap() { mkdir -p etc/apt/apt.conf.d; : >etc/apt/apt.conf.d/00mmdebstrap; }
# Licence texts stay: images may be passed on.
if [ -d usr/share/doc ]; then
  find usr/share/doc -mindepth 1 ! -name copyright ! -type d -delete
  find usr/share/doc -mindepth 1 -type d -empty -delete
fi
rm -rf usr/share/man usr/share/info usr/share/lintian usr/share/locale usr/share/bug usr/share/perl* \
  usr/share/polkit-1 usr/share/debianutils usr/lib/binfmt.d usr/lib/tmpfiles.d usr/share/menu usr/share/pixmaps usr/share/applications usr/share/bash-completion usr/share/gcc* \
  usr/share/i18n usr/share/readline usr/share/doc-base usr/share/apport usr/share/debconf \
  usr/share/unicode usr/share/javascript usr/share/tcltk usr/share/X11 usr/share/gdb usr/share/glib-2.0 \
  usr/share/binfmts usr/share/python3/runtime.d usr/share/zsh usr/share/libc-bin usr/share/initramfs-tools \
  usr/bin/perl* usr/lib/*-linux-gnu/perl* usr/bin/apt* usr/lib/apt etc/apt var/lib/apt var/cache/* \
  usr/bin/dpkg* usr/libexec/dpkg usr/sbin/* usr/lib/dpkg usr/share/dpkg etc/dpkg var/lib/dpkg \
  etc/cron* etc/init.d etc/logrotate.d etc/alternatives etc/systemd usr/lib/systemd usr/lib/init \
  usr/lib/*-linux-gnu/gconv usr/lib/mime usr/lib/valgrind etc/pam.d usr/lib/*-linux-gnu/security \
  usr/lib/python3*/test usr/lib/python3*/ensurepip usr/lib/python3*/idlelib usr/lib/python3*/lib2to3/tests
keep_for_mmdebstrap
[ ! -d usr/lib/python3/dist-packages ] ||
  find usr/lib/python3/dist-packages -type d -name tests ! -path "*/numpy/_core/tests" -prune -exec rm -rf {} +
# numpy.testing, which scipy imports, takes a module from there.
[ ! -d usr/lib/python3/dist-packages/numpy/_core/tests ] ||
  find usr/lib/python3/dist-packages/numpy/_core/tests -mindepth 1 ! -name __init__.py ! -name _natype.py -delete
find . -xdev -type f -perm /6000 -exec chmod ug-s {} +
find . -xdev -type d -perm /6000 -exec chmod ug-s {} +
# Without .pyc files an import of asyncio takes half a second, and a read-only root never gets any.
# Unchecked: nobody can change the sources, so that not even their time stamps are compared.
py=$(ls usr/bin/python3.[0-9]* | grep -E "python3\.[0-9]+$" | sort -V | tail -1)
[ -n "$py" ] || { echo "no python3 was unpacked" >&2; exit 1; }
ln -sf "${py##*/}" usr/bin/python3
find usr/lib/python3* -name __pycache__ -prune -exec rm -rf {} +
libs=$(for d in usr/lib/python3*; do printf "/%s " "$d"; done)
chroot "$root" "/$py" -I -S -m compileall -q --invalidation-mode unchecked-hash $libs ||
  echo "some modules could not be compiled (they will still run)" >&2
chroot "$root" "/$py" -I -c "import asyncio, ssl, sqlite3, ctypes, bz2, lzma, zlib, zoneinfo, multiprocessing, decimal, hashlib, readline, uuid, xml.etree.ElementTree" ||
  { echo "the standard library is incomplete" >&2; exit 1; }
# matplotlib would look through all fonts at every first import; the guest lends it this list. Sorted, since
# matplotlib lists them in another order each time.
if [ -d usr/lib/python3/dist-packages/matplotlib ]; then
  fonts=usr/share/bulkhead/matplotlib
  mkdir -p "$fonts"
  chroot "$root" /usr/bin/env "MPLCONFIGDIR=/$fonts" MPLBACKEND=Agg "/$py" -I -B -c "
import json, pathlib, matplotlib.pyplot
for path in pathlib.Path(\"/$fonts\").glob(\"fontlist-*.json\"):
    fonts = json.loads(path.read_text())
    for kind in (\"ttflist\", \"afmlist\"):
        fonts[kind].sort(key=json.dumps)
    path.write_text(json.dumps(fonts, indent=1))"
  find "$fonts" -mindepth 1 ! -name "fontlist-*.json" -delete
fi
chroot "$root" "/$py" -I -B -c "
import importlib, importlib.util
for name in (\"numpy.testing\", \"pandas\", \"scipy.optimize\", \"scipy.stats\", \"PIL.Image\", \"sympy\"):
    if importlib.util.find_spec(name.partition(\".\")[0]):
        importlib.import_module(name)" || { echo "a package lacks something that it imports" >&2; exit 1; }
find . -xdev -newermt @"$SOURCE_DATE_EPOCH" -exec touch -h -d @"$SOURCE_DATE_EPOCH" {} +'

mkdir -p "$(dirname "$out")"
partial="$out.partial.$$"
keyrings=()
for k in /usr/share/keyrings/debian-archive-keyring.gpg /etc/apt/keyrings/debian-archive-keyring.gpg; do
  [ -r "$k" ] && keyrings+=("--keyring=$k")
done
[ ${#keyrings[@]} -gt 0 ] ||
  die "Debian's archive keys are missing, so packages can't be verified; install them with: apt-get install debian-archive-keyring"

say "unpacking $suite ($packages) from $mirror"
started=$(date +%s)
# A fixed date keeps two builds of the same packages alike.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1735689600}
log=$work/log
aptopt=()
[ -s "$work/apt.conf" ] && aptopt=("--aptopt=$work/apt.conf")
chmod 0755 "$work"
if ! mmdebstrap --variant=extract --format=tar --include="$packages" "${keyrings[@]}" "${aptopt[@]}" \
    --setup-hook="$setup_hook" --extract-hook="$extract_hook" \
    "$suite" "$partial" "deb $mirror $suite main" >"$log" 2>&1; then
  sed 's/^/rootfs:   /' "$log" | tail -25 >&2
  die "mmdebstrap could not make the root file system of $suite from $mirror (its last words are above). \
Check that this machine reaches its Debian mirror (apt-get update) and, without root, that you have sub-uids \
(grep ^$(id -un): /etc/subuid); another mirror can be given with --mirror URL"
fi
[ -z "${BULKHEAD_VERBOSE:-}" ] || sed 's/^/rootfs:   /' "$log" >&2
mv -f "$partial" "$out"
partial=
say "made $out: $(( $(stat -c %s "$out") / 1048576 )) MB in $(( $(date +%s) - started )) s"
