#!/usr/bin/env bash
# Fuzzes the parsers: each target replays its corpus, then libFuzzer looks for inputs that break it.
#
#   tests/fuzz/run.sh [--seconds N] [--build-dir DIR] [--merge] [TARGET…]
#
# --seconds  how long each target looks (default 10; 0: the corpus alone)
# --merge    puts what reached code that no input reached before into tests/fuzz/corpus, to be committed
# TARGET     guest_frame, json_rpc, …: the folders of tests/fuzz/corpus (default: all)
# An input that broke a target is DIR/broken/TARGET-…: give it to DIR/tests/fuzz/fuzz_TARGET to see it again.
# The last line is "N passed, N failed". It takes clang with libFuzzer (Debian: clang, libclang-rt-dev).
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
build=$repo/build-fuzz
seconds=10
merge=''
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number}; shift 2 ;;
    --build-dir) build=${2:?--build-dir needs a folder}; shift 2 ;;
    --merge) merge=1; shift ;;
    -h|--help) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) printf 'fuzz: unknown argument %s (see --help)\n' "$1" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
case $seconds in ''|*[!0-9]*) printf 'fuzz: --seconds takes a whole number, not %s\n' "$seconds" >&2; exit 2 ;; esac
if [ ${#targets[@]} -eq 0 ]; then
  for folder in "$here"/corpus/*/; do targets+=("$(basename "$folder")"); done
fi
for target in "${targets[@]}"; do
  [ -d "$here/corpus/$target" ] || { printf 'fuzz: there is no corpus of %s in %s\n' "$target" "$here/corpus" >&2; exit 2; }
done

die() { printf 'fuzz: %s\n' "$*" >&2; exit 1; }
command -v clang++ >/dev/null || die "there is no clang++; on Debian: apt-get install clang libclang-rt-dev"
jobs=$(nproc)
memory_jobs=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) / 1500000))
[ "$memory_jobs" -ge "$jobs" ] || jobs=$((memory_jobs > 1 ? memory_jobs : 1))
cmake -S "$repo" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug \
  "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -gline-tables-only" -DBULKHEAD_FUZZERS=ON -DBULKHEAD_TESTS=OFF \
  -DPython3_EXECUTABLE=/usr/bin/python3 >&2 || die "cmake could not configure $build (its words are above)"
cmake --build "$build" -j "$jobs" --target "${targets[@]/#/fuzz_}" >&2 || die "the build failed (the compiler's words are above)"

export ASAN_OPTIONS=detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
# -timeout: one input may take so many seconds, which is generous for a machine that is busy with other things.
bounds=(-timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=4096)
found=$build/found
broken=$build/broken
mkdir -p "$found" "$broken"

# fuzz TARGET: replays the corpus, then looks for more.
fuzz() {
  local target=$1 program=$build/tests/fuzz/fuzz_$1
  mkdir -p "$found/$target"
  "$program" "${bounds[@]}" -artifact_prefix="$broken/$target-" -runs=0 "$here/corpus/$target" || return 1
  [ "$seconds" -eq 0 ] ||
    "$program" "${bounds[@]}" -artifact_prefix="$broken/$target-" -max_total_time="$seconds" -print_final_stats=1 \
      "$found/$target" "$here/corpus/$target" || return 1
}

# keep TARGET: adds to the corpus what reaches code that nothing in it reaches; how often doesn't count, or it would grow
# for ever.
keep() {
  local target=$1
  "$build/tests/fuzz/fuzz_$target" "${bounds[@]}" -merge=1 -use_counters=0 "$here/corpus/$target" "$found/$target"
}

passed=0
failed=0
for target in "${targets[@]}"; do
  printf '== %s\n' "$target"
  if fuzz "$target" 2>&1 && { [ -z "$merge" ] || keep "$target" 2>&1; }; then
    passed=$((passed + 1))
  else
    printf '!! %s broke; inputs: %s/%s-*\n' "$target" "$broken" "$target"
    failed=$((failed + 1))
  fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
