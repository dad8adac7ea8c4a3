#!/usr/bin/env bash
# Builds examples/cpp against an installed client, as a user would, and checks what it links. With a
# daemon it is run too, and its numbers are compared.
#
#   outside_project.sh BUILD_FOLDER SOURCE_FOLDER [KILND]
set -euo pipefail
build=$1 source=$2 daemon=${3:-}
work=$(mktemp -d)
pid=
stop() {
  if [ -n "$pid" ]; then kill "$pid" && wait "$pid" || true; fi
  rm -rf "$work"
}
trap stop EXIT

for component in client cli; do
  cmake --install "$build" --component "$component" --prefix "$work/stage" >> "$work/log"
done
cmake -S "$source/examples/cpp" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/stage" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror -std=c++20" >> "$work/log"
cmake --build "$work/build" >> "$work/log" || { cat "$work/log"; exit 1; }

# Public headers take nothing but the standard library and each other.
if grep -rhoE '#include *<[^>]+>' "$work/stage/include" | grep -vE '<kiln/[a-z_]+\.h>|<[a-z_0-9]+>|<stdint\.h>'; then
  echo "a public header includes what the client does not install"
  exit 1
fi

for binary in "$work/build/kiln_example" "$work/build/run_artifact" "$work/stage/bin/kiln"; do
  linked=$(ldd "$binary")
  if grep -qi llvm <<< "$linked"; then
    echo "$binary links LLVM: $linked"
    exit 1
  fi
  if grep -q "not found" <<< "$linked"; then
    echo "$binary lacks a library: $linked"
    exit 1
  fi
done
"$work/stage/bin/kiln" --help > "$work/help"
grep -q "compile a kernel, or a program of kernels, and run it" "$work/help"

if [ -z "$daemon" ]; then
  echo "built and linked; no daemon to run it with"
  exit 0
fi
"$daemon" --listen "unix:$work/kilnd.sock" --cache-dir "$work/cache" > "$work/daemon" 2>&1 &
pid=$!
for _ in $(seq 200); do
  if grep -q "^listening on" "$work/daemon"; then break; fi
  sleep 0.05
done
KILN_ADDRESS="unix:$work/kilnd.sock" timeout 120 "$work/build/kiln_example" > "$work/output"
diff "$source/tests/client/cpp/outside_project.txt" "$work/output"

# A compiled kernel runs where there is no daemon, and without the libraries of the client.
KILN_ADDRESS="unix:$work/kilnd.sock" "$work/stage/bin/kiln" compile "$source/examples/matmul.kiln" \
  -o "$work/matmul.kart" > "$work/log"
kill "$pid" && wait "$pid" || true
pid=
if ldd "$work/build/run_artifact" | grep -E 'grpc|protobuf|fmt|xxhash'; then
  echo "run_artifact needs a library of others"
  exit 1
fi
"$work/build/run_artifact" "$work/matmul.kart" > "$work/output"
diff - "$work/output" <<'EOT'
20 23 26 29
56 68 80 92
a wrong call: argument B of matmul: dimension 0 is 4, but must be 3 (l, from dimension 1 of A)
EOT
