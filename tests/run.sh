#!/usr/bin/env bash
# All tests, from a fresh clone on a fresh Debian 12 machine. Progress on the way, summaries at the end.
#
#   tests/run.sh          what CI runs
#   tests/run.sh --long   also the long suites and the image builds
#   tests/run.sh --quick  release build and its tests only
set -euo pipefail
cd "$(dirname "$0")/.."

long=0
quick=0
for argument in "$@"; do
  case "$argument" in
    --long) long=1 ;;
    --quick) quick=1 ;;
    *) echo "usage: $0 [--long|--quick]" >&2; exit 2 ;;
  esac
done
start=$SECONDS
failures=()
summaries=build/summaries.txt
mkdir -p build
: > "$summaries"

say() { printf '\n== %s (%d s)\n' "$*" $((SECONDS - start)); }

# What the test executables of a log say together: each of their shards has a summary of its own.
sum_of_shards() {
  awk '/^[0-9]+: \[  (PASSED|SKIPPED|FAILED) +\] [0-9]+ test/ { split($0, half, "] "); n[$3] += half[2]; shards += $3 == "PASSED" }
    END { if (shards) printf "GoogleTest: %d passed, %d skipped, %d failed, in %d processes\n", n["PASSED"], n["SKIPPED"], n["FAILED"], shards }' "$1"
}

# run NAME COMMAND...: runs it, keeps the lines that sum it up, goes on after a failure.
run() {
  local name=$1
  shift
  say "$name"
  local log=build/log-${name//[^a-z0-9]/-}.txt
  local begin=$SECONDS
  local result=passed
  "$@" 2>&1 | tee "$log" || { result=FAILED; failures+=("$name"); }
  {
    echo "-- $name: $result in $((SECONDS - begin)) s"
    grep -E '^([0-9]+: \[  FAILED  \] [A-Za-z]+[A-Za-z/]*\.|(FAILED|ERROR) tests/|[0-9]+ (passed|failed).* in |=+ .*(passed|failed|error).* =+$|[0-9]+% tests passed|Total Test time|The following tests FAILED|[[:space:]]+[0-9]+ - .*\((Failed|Timeout|SEGFAULT|Not Run|Subprocess aborted)\))' "$log" || true
    sum_of_shards "$log"
  } >> "$summaries"
}

# Labels of the tests of C++. What computes with code for CPUs and GPUs, and the installed library, are tested as they
# are shipped, all else by sanitizers, which find what that would and more, but take four times as long; what is random,
# both ways. With --quick there are no sanitizers, and with --long all is tested both ways.
computing="compiled;cuda_code;fuzz;installed"
sanitized="analysis;autodiff;client;codegen;cuda;fuzz;ir;language;passes;predict;program;runtime;schedule;server;tile"
if [ $((quick + long)) -gt 0 ]; then computing=""; fi
if [ $long -eq 1 ]; then sanitized=""; fi

# build PRESET LABELS [TARGET...]: LABELS are those of the tests that are wanted, "" all of them.
build() {
  # The demo may have configured the same folder without tests.
  cmake --preset "$1" -DKILN_TESTS=ON -DKILN_TEST_LABELS="$2" >"build/configure-$1.txt" 2>&1 ||
    { cat "build/configure-$1.txt"; return 1; }
  grep -- '-- Kiln' "build/configure-$1.txt" || true
  cmake --build --preset "$1" ${3:+--target "${@:3}"}
}

# tests_of PRESET LABELS: the tests with these labels, each of which must exist; "": all.
tests_of() {
  local label labels
  labels=$(ctest --test-dir "build/$1" --print-labels)
  for label in ${2//;/ }; do
    grep -qx "  $label" <<< "$labels" || { echo "no test of $1 has the label $label"; return 1; }
  done
  LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" \
    ctest --test-dir "build/$1" --verbose --no-tests=error -j "$(nproc)" ${2:+-L "^(${2//;/|})\$"}
}

# What is random gets a fifth of the rounds, and other ones: the rounds of the release build are all run there. Where
# memory came from is kept for 8 calls, not 30, which takes a tenth of the time. Where the loader has the variables of
# threads, clang 14 guesses from what stands before them, and the search for leaks may end with that.
sanitized_tests_of() {
  ASAN_OPTIONS=malloc_context_size=8:intercept_tls_get_addr=0 KILN_FUZZ_PERCENT=20 KILN_FUZZ_SEED=5000000 tests_of "$@"
}

long_suites() { KILN_LONG=1 KILN_FUZZ_ROUNDS=20000 tests_of release fuzz; }

long_python_tests() {
  KILN_LONG=1 KILN_DAEMON="$PWD/build/release/bin/kilnd" PATH="$PWD/build/release/bin:$PATH" \
    build/venv/bin/python -m pytest -q tests/e2e tests/deploy -k 'real_digits or slurm or newcomer or test_gpu_'
}

# Each process has daemons of its own; tests that share what is compiled are kept in one (tests/conftest.py). Many of
# them wait for something, so that there is one process more than cores.
python_tests() {
  deploy/python-env.sh build/venv test
  KILN_DAEMON="$PWD/build/release/bin/kilnd" PATH="$PWD/build/release/bin:$PATH" \
    build/venv/bin/python -m pytest -q -n $(($(nproc) < 4 ? $(nproc) + 1 : 4)) tests/client/python tests/docs tests/errors tests/e2e tests/gpu tests/deploy
}

# Ten minutes in all, half of them for whole requests, which are the slowest to try. What is found
# stays in tests/fuzz/corpus, to be mended and committed.
guided_fuzzing() {
  local inputs=build/fuzz/inputs target failed=0
  local -A seconds=([kernel]=120 [text]=120 [schedule]=60 [request]=300)
  build/fuzz/bin/kiln_fuzz_seeds "$inputs" tests/kernels/*.kiln examples/*.kiln compiler/operators/*.kiln
  for target in kernel text schedule request; do
    mkdir -p "tests/fuzz/corpus/$target"
    KILN_FUZZ_TARGET=$target build/fuzz/bin/kiln_fuzz "$inputs/$target" "tests/fuzz/corpus/$target" \
      -max_total_time="${seconds[$target]}" -timeout=120 -rss_limit_mb=4096 -max_len=16384 -print_final_stats=1 \
      -artifact_prefix="tests/fuzz/corpus/$target/" || failed=1
  done
  return $failed
}

# Each file for itself and without precompiled headers, which would hide that it misses one of its includes. The
# folder is configured only; what is generated is that of the build.
tidy() {
  local base files
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify -q HEAD~1 || true)
  fi
  [ -n "$base" ] || { echo "no earlier commit to compare with"; return 0; }
  cmake --preset asan -B build/tidy -DKILN_PCH=OFF -DKILN_UNITY=OFF >build/configure-tidy.txt 2>&1 ||
    { cat build/configure-tidy.txt; return 1; }
  sed -i "s#$PWD/build/tidy/#$PWD/build/asan/#g" build/tidy/compile_commands.json
  # Those that are built: limits.cc of the benchmarks is compiled for the machine it runs on.
  files=$(git diff --name-only --diff-filter=d "$base" -- '*.cc' |
    while read -r file; do
      if grep -qF "/$file\"" build/tidy/compile_commands.json; then echo "$file"; fi
    done |
    head -n 20)
  [ -n "$files" ] || { echo "no source files changed"; return 0; }
  echo "$files" | xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/tidy --quiet --warnings-as-errors='*'
}

say "Debian packages"
./deploy/install-deps.sh
# Most of it waits for the network, while the build computes.
deploy/python-env.sh build/venv test >build/log-python-environment.txt 2>&1 &
python_environment=$!

run "tree checks" python3 tests/check_tree.py
run "release build" build release "$computing"
wait "$python_environment" || true  # Installed again by its tests, to say what is wrong.
export VIRTUAL_ENV=$PWD/build/venv  # has NVRTC, where the host has no toolkit
run "release tests" tests_of release "$computing"
run "python tests" python_tests
if [ $quick -eq 0 ]; then
  run "sanitizer build (address, undefined)" build asan "$sanitized" kiln_tests
  run "sanitizer tests (address, undefined)" sanitized_tests_of asan "$sanitized"
  run "clang-tidy on changed files" tidy
  run "thread sanitizer build" build tsan "runtime;server" kiln_tests
  run "thread sanitizer tests" sanitized_tests_of tsan "runtime;server"
fi
if [ $long -eq 1 ]; then
  run "long suites" long_suites
  run "fuzzing build" build fuzz ""
  run "coverage-guided fuzzing" guided_fuzzing
  run "long python tests" long_python_tests
  run "image build" ./deploy/build-image.sh
fi

printf '\n==== Summary after %d s\n' $((SECONDS - start))
cat "$summaries"
if [ ${#failures[@]} -gt 0 ]; then
  printf '\nFAILED: %s\n' "${failures[*]}"
  exit 1
fi
printf '\nAll passed.\n'
