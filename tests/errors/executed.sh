#!/usr/bin/env bash
# Runs all tests with what clang and coverage.py count, then lists the refusals that none has executed.
#
#   tests/errors/executed.sh [PYTHON]   after the build of the preset coverage
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-build/venv/bin/python}
build=$PWD/build/coverage
rm -rf "$build"/coverage/*.profraw
# A test that fails is the business of the other builds: here counts what it has executed.
ctest --test-dir "$build" --no-tests=error -j "$(nproc)" || echo "some tests failed"
export KILN_DAEMON="$build/bin/kilnd" PATH="$build/bin:$PATH" PYTHONPATH="$PWD/client/python"
export COVERAGE_FILE="$build/python.coverage"
"$python" -m coverage run --source=client/python/kiln -m pytest -q tests/client/python tests/errors tests/e2e ||
  echo "some tests failed"
# The daemon kills its workers in the end, with what they have counted: here it is one process.
mkdir -p "$build/one_process"
printf '#!/bin/sh\nexec "%s" --isolation none "$@"\n' "$build/bin/kilnd" >"$build/one_process/kilnd"
chmod +x "$build/one_process/kilnd"
KILN_DAEMON="$build/one_process/kilnd" "$python" -m coverage run --append --source=client/python/kiln \
  -m pytest -q tests/errors tests/e2e --ignore=tests/errors/test_cpp.py || echo "some tests failed"
"$python" -m coverage json -q -o "$build/python.json"
"$python" tests/errors/executed.py --build "$build" --python "$build/python.json"
