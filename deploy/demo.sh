#!/usr/bin/env bash
# From a fresh clone to numbers: installs what is missing, builds, and runs the examples through the
# command line, the C++ client and the Python client, on a private daemon that starts by itself.
#
#   deploy/demo.sh [--programs FOLDER]
#
# FOLDER has bin/kiln, bin/kilnd and libexec/kiln-worker already, as a build folder, the wheel kiln-daemon
# (.../site-packages/kiln_daemon) and an installation (/usr) have them; then nothing is compiled but the example in C++,
# where FOLDER has the client's library.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
step() { printf '\n== %s (%d s)\n' "$*" $((SECONDS - start)); }

programs=
case "${1:-}" in
  "") ;;
  --programs) programs=$(realpath "${2:?"--programs names a folder"}") ;;
  *) echo "usage: $0 [--programs FOLDER]" >&2; exit 2 ;;
esac
for program in bin/kiln bin/kilnd libexec/kiln-worker; do
  if [ -n "$programs" ] && [ ! -x "$programs/$program" ]; then
    echo "$programs has no $program: name a build folder or an installation, or leave --programs out to build" >&2
    exit 1
  fi
done

if [ -z "$programs" ]; then
  step "Debian packages"
  ./deploy/install-deps.sh --build

  step "Build"
  if [ ! -f build/release/build.ninja ]; then
    cmake --preset release -DKILN_TESTS=OFF > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
    rm -f build-configure.log
  fi
  cmake --build --preset release
  programs=$PWD/build/release
fi

# A daemon of the demo's own: nothing of it stays behind, and what the user runs is left alone.
bin=$programs/bin
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
prefix=
if [ -f "$programs/cmake_install.cmake" ]; then  # a build
  prefix=$PWD/build/stage
  cmake --install "$programs" --prefix "$prefix" > /dev/null
elif [ -n "$(find "$programs"/lib* -maxdepth 4 -name kilnConfig.cmake 2>/dev/null | head -n 1)" ]; then
  prefix=$programs
fi
if [ -n "$prefix" ]; then
  cmake -S examples/cpp -B build/example-cpp -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release > /dev/null
  cmake --build build/example-cpp > /dev/null
  build/example-cpp/kiln_example
else
  echo "left out: $programs has no C++ library"
fi

step "Python client (examples/python)"
for program in examples/python/*.py; do
  printf '\n-- %s\n' "$program"
  "$python" "$program"
done

printf '\nDone in %d s. What to read next: README.md, docs/.\n' $((SECONDS - start))
