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
export XDG_CACHE_HOME=$PWD/build/demo-cache

step "Command line: running sums over columns (examples/cumsum.kiln)"
data=build/demo
mkdir -p "$data"
kiln run examples/cumsum.kiln --in X=examples/data/x_10x1024.npy --timings
kiln lower examples/cumsum.kiln

step "Python environment"
./deploy/python-env.sh build/demo-venv
python=build/demo-venv/bin/python

step "Command line, compared with numpy"
"$python" - "$data" <<'PYTHON'
import sys
import numpy as np
for name, shape in (("A", (200, 300)), ("B", (300, 100)), ("X", (64, 1000))):
    np.save(f"{sys.argv[1]}/{name}.npy", np.random.default_rng(1).uniform(-1, 1, shape).astype("float32"))
PYTHON
# run_and_compare TITLE NUMPY-EXPRESSION FILE INPUTS...: the output goes to Y.npy.
run_and_compare() {
  local title=$1 expected=$2 file=$3
  shift 3
  printf '\n-- %s\n' "$title"
  kiln run "$file" "$@" --timings
  "$python" - "$data" "$expected" <<'PYTHON'
import sys
import numpy as np
folder, expected = sys.argv[1:]
A, B, X, Y = (np.load(f"{folder}/{name}.npy") for name in "ABXY")
np.testing.assert_allclose(Y, eval(expected), rtol=1e-4, atol=1e-5)
print(f"equal to numpy's {expected}")
PYTHON
}
run_and_compare "running sums" "np.cumsum(X, axis=0)" examples/cumsum.kiln --in "X=$data/X.npy" --out "S=$data/Y.npy"
run_and_compare "matmul, scheduled by Kiln" "A @ B" examples/matmul.kiln --no-schedule \
  --in "A=$data/A.npy" --in "B=$data/B.npy" --out "C=$data/Y.npy"
run_and_compare "matmul, scheduled by hand (32, 32, 4)" "A @ B" examples/matmul.kiln \
  --in "A=$data/A.npy" --in "B=$data/B.npy" --out "C=$data/Y.npy"
run_and_compare "softmax" "np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)" examples/softmax.kiln \
  --in "X=$data/X.npy" --out "Y=$data/Y.npy"

step "C++ client (examples/cpp)"
cmake --install build/release --prefix build/stage > /dev/null
cmake -S examples/cpp -B build/example-cpp -G Ninja -DCMAKE_PREFIX_PATH="$PWD/build/stage" \
  -DCMAKE_BUILD_TYPE=Release > /dev/null
cmake --build build/example-cpp > /dev/null
build/example-cpp/kiln_example

step "Python client (examples/python)"
for program in examples/python/*.py; do
  printf '\n-- %s\n' "$program"
  "$python" "$program"
done

printf '\nDone in %d s. What to read next: README.md, docs/.\n' $((SECONDS - start))
