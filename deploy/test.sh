#!/usr/bin/env bash
# Sets up, then runs every test suite. The last line is "N passed, N failed".
#
#   deploy/test.sh [--long] [--build-dir DIR]
#
# --long adds clang-tidy, fuzzes the parsers (each for BULKHEAD_FUZZ_SECONDS, 60 by default) and lets the integration
# tests run their long forms (BULKHEAD_TEST_LONG=1).
# A suite that can't run, or runs nothing, counts as one failure. Logs: BUILD-DIR/test-logs/.
set -uo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$repo/build
long=''
while [ $# -gt 0 ]; do
  case $1 in
    --long) long=1; shift ;;
    --build-dir) build=${2:?--build-dir needs a folder}; shift 2 ;;
    -h|--help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) printf 'test: unknown argument %s (see --help)\n' "$1" >&2; exit 2 ;;
  esac
done
sanitized=$build-asan
caller_path=$PATH
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset LIBRARY_PATH LD_LIBRARY_PATH CPATH PYTHONPATH PYTHONHOME CC CXX
# Node is often installed beside the system's folders.
command -v node >/dev/null || PATH=$PATH:$(dirname "$(PATH=$caller_path command -v node || echo /usr/bin/node)")
export PYTHONDONTWRITEBYTECODE=1
[ -z "$long" ] || export BULKHEAD_TEST_LONG=1
cd "$repo" || exit 1

logs=$build/test-logs
mkdir -p "$logs"
passed=0
failed=0
summary=()
running=''
trap '[ -z "$running" ] || kill -TERM "$running" 2>/dev/null; exit 130' INT TERM

# Adds up what the programs of a log said: GoogleTest, CAF's test framework, and "N passed, N failed".
count_log() {
  awk '
    match($0, /\[  PASSED  \] [0-9]+ test/)  { split(substr($0, RSTART), f, " "); p += f[4] }
    match($0, /\[  FAILED  \] [0-9]+ test/)  { split(substr($0, RSTART), f, " "); n += f[4] }
    /^([0-9]+: )? +tests: +[0-9]+/           { p += $NF }
    /^([0-9]+: )? +failed tests:/            { listing = 1; next }
    listing && /^([0-9]+: )? +- [^ ]+:/      { p--; n++; next }
                                             { listing = 0 }
    /^[0-9]+ passed, [0-9]+ failed$/         { p += $1; n += $3 }
    END { print p + 0, n + 0 }' "$1"
}

# What GoogleTest, CAF's test framework, unittest and the sanitizers put before a failure's description.
failure_marks=': Failure$|^([0-9]+: )?!! |^(FAIL|ERROR): |Sanitizer: |runtime error: '

# suite NAME SECONDS COMMAND…: runs a suite and adds its numbers to the sums.
suite() {
  local name=$1 seconds=$2 log="$logs/$1.log" started=$SECONDS status p n
  shift 2
  printf '\n== %s\n' "$name" >&2
  timeout -k 20 "$seconds" "$@" >"$log" 2>&1 </dev/null &
  running=$!
  wait "$running"
  status=$?
  running=''
  read -r p n < <(count_log "$log")
  # An exit status that no counted test explains, and a suite that ran nothing, are failures too.
  if [ "$status" -ne 0 ] && [ "$n" -eq 0 ]; then n=1; fi
  if [ "$status" -eq 0 ] && [ $((p + n)) -eq 0 ]; then n=1; echo "nothing ran" >>"$log"; fi
  passed=$((passed + p))
  failed=$((failed + n))
  [ "$status" -ne 124 ] || echo "did not end within $seconds s" >>"$log"
  if [ "$n" -ne 0 ]; then
    printf '   exit status %s; the failures in %s, and its end:\n' "$status" "$log" >&2
    { grep -aE -B1 -A8 "$failure_marks" "$log" | head -150; echo ...; tail -40 "$log"; } | sed 's/^/   | /' >&2
  fi
  summary+=("$(printf '%-28s %5d passed %4d failed %5d s' "$name" "$p" "$n" $((SECONDS - started)))")
  printf '   %d passed, %d failed, %d s\n' "$p" "$n" $((SECONDS - started)) >&2
  [ "$n" -eq 0 ]
}

# A check that passes or fails as a whole.
check() {
  local name=$1 seconds=$2
  shift 2
  # shellcheck disable=SC2016  # expanded by the inner shell
  suite "$name" "$seconds" bash -c '"$@" && echo "1 passed, 0 failed"' check "$@"
}

# unittest counts skipped tests differently from version to version; here a skipped test hasn't passed.
unittest_runner='
import sys, unittest
class Result(unittest.TextTestResult):
    passed = 0
    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
suite = unittest.defaultTestLoader.discover(sys.argv[1])
result = unittest.TextTestRunner(resultclass=Result).run(suite)
for test, reason in result.skipped:
    print("skipped:", test, reason)
failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
sys.stderr.flush()
print("%d passed, %d failed" % (result.passed, failed), flush=True)
sys.exit(failed != 0)
'

unit_tests() { # BUILD-DIR
  ctest --test-dir "$1" -V --no-tests=error --timeout 300
}

build_sanitized() {
  cmake -S "$repo" -B "$sanitized" -G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" \
    -DBULKHEAD_SANITIZE=address,undefined -DPython3_EXECUTABLE=/usr/bin/python3 &&
    cmake --build "$sanitized" -j "$(nproc)" --target protocol_tests io_tests actor_tests
}

sources() { find actors main protocol tests \( -name '*.cpp' -o -name '*.hpp' \) -not -path '*/node_modules/*' | sort; }

format_check() {
  local file bad=0 good=0
  while IFS= read -r file; do
    if clang-format --dry-run -Werror "$file"; then good=$((good + 1)); else bad=$((bad + 1)); fi
  done < <(sources)
  echo "$good passed, $bad failed"
  [ "$bad" -eq 0 ]
}

tidy_check() {
  local files
  # What only clang builds isn't among the build's commands.
  files=$(sources | grep '\.cpp$' | grep -v '/fuzz_main\.cpp$')
  # shellcheck disable=SC2016
  printf '%s\n' "$files" | xargs -P "$(nproc)" -I{} sh -c \
    'if clang-tidy -quiet -warnings-as-errors="*" -p "$1" "$2" >"$3/tidy.$$" 2>&1; then echo ok; else cat "$3/tidy.$$"; echo "bad $2"; fi; rm -f "$3/tidy.$$"' \
    tidy "$build" {} "$logs" >"$logs/tidy.all"
  grep -v '^ok$' "$logs/tidy.all"
  echo "$(grep -c '^ok$' "$logs/tidy.all") passed, $(grep -c '^bad ' "$logs/tidy.all") failed"
  ! grep -q '^bad ' "$logs/tidy.all"
}

# One interpreter of each version from 3.9 on, the system's first.
pythons() {
  local candidate version seen=' '
  for candidate in /usr/bin/python3 /usr/bin/python3.[0-9]* /usr/local/bin/python3.[0-9]* "$HOME"/.pyenv/versions/3.*/bin/python3; do
    case $candidate in *-config) continue ;; esac
    [ -x "$candidate" ] || continue
    version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 9) else "")' 2>/dev/null) || continue
    case "$seen" in *" $version "*) continue ;; esac
    [ -n "$version" ] || continue
    seen="$seen$version "
    printf '%s %s\n' "$version" "$candidate"
  done
}

export -f unit_tests build_sanitized format_check tidy_check sources
export repo build sanitized logs

printf '== setup\n' >&2
if bash "$repo/deploy/setup.sh" --tests --build-dir "$build"; then
  suite unit 900 bash -c 'unit_tests "$build"'
else
  printf '   setup failed (its words are above): the suites that need the program fail too\n' >&2
  failed=$((failed + 1))
  summary+=("$(printf '%-28s %5d passed %4d failed' setup 0 1)")
fi
while read -r version python; do
  suite "guest-python$version" 300 "$python" -c "$unittest_runner" "$repo/tests/guest"
done < <(pythons)
suite deploy 900 env BULKHEAD_BINARY="$build/bulkhead" /usr/bin/python3 -c "$unittest_runner" "$repo/tests/deploy"
suite conformance 900 env BULKHEAD_BINARY="$build/bulkhead" /usr/bin/python3 "$repo/tests/conformance/run.py"
suite integration 3000 env BULKHEAD_BINARY="$build/bulkhead" /usr/bin/python3 "$repo/tests/integration/run.py"
if check sanitizer-build 2400 bash -c build_sanitized; then
  # CAF and the tests run slower under the sanitizers; leaks count.
  suite unit-sanitized 1500 env ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 bash -c 'unit_tests "$sanitized"'
fi
suite format 120 bash -c format_check
if [ -n "$long" ]; then
  suite clang-tidy 3600 bash -c tidy_check
  # The time is for the build, above all.
  fuzz_seconds=${BULKHEAD_FUZZ_SECONDS:-60}
  suite fuzz $((3600 + 20 * fuzz_seconds)) "$repo/tests/fuzz/run.sh" --seconds "$fuzz_seconds" --build-dir "$build-fuzz"
fi

printf '\n' >&2
printf '%s\n' "${summary[@]}" >&2
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
