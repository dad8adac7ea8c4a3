#!/usr/bin/env bash
# From a fresh clone to numbers: installs what is missing, builds, and runs the examples through the
# command line, the C++ client and the Python client, on a private daemon that starts by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
step() { printf '\n== %s (%d s)\n' "$*" $((SECONDS - start)); }

step "Debian packages"
./deploy/install-deps.sh --build

step "Build"
if [ ! -f build/release/build.ninja ]; then
  cmake --preset release -DKILN_TESTS=OFF > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
  rm -f build-configure.log
fi
cmake --build --preset release

# A daemon of the demo's own: nothing of it stays behind, and what the user runs is left alone.
bin=$PWD/build/release/bin
export XDG_RUNTIME_DIR
XDG_RUNTIME_DIR=$(mktemp -d)
export KILN_DAEMON=$bin/kilnd
export PATH=$bin:$PATH
unset KILN_ADDRESS
stop() {
  pkill -f "kilnd --listen unix:$XDG_RUNTIME_DIR" || true
  rm -rf "$XDG_RUNTIME_DIR"
}
trap stop EXIT

step "Command line: a running sum over columns (examples/cumsum.kiln)"
kiln run examples/cumsum.kiln --in X=examples/data/x_10x1024.npy --timings
echo
kiln lower examples/cumsum.kiln

step "C++ client (examples/cpp)"
cmake --install build/release --prefix build/stage > /dev/null
cmake -S examples/cpp -B build/example-cpp -G Ninja -DCMAKE_PREFIX_PATH="$PWD/build/stage" \
  -DCMAKE_BUILD_TYPE=Release > /dev/null
cmake --build build/example-cpp > /dev/null
build/example-cpp/kiln_example

step "Python client (examples/python)"
./deploy/python-env.sh build/demo-venv
for program in examples/python/*.py; do
  printf '\n-- %s\n' "$program"
  build/demo-venv/bin/python "$program"
done

printf '\nDone in %d s. What to read next: README.md, docs/.\n' $((SECONDS - start))
