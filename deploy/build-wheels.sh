#!/usr/bin/env bash
# Builds the two Python packages: kiln (the client, pure Python) and kiln-daemon (the programs, without what debuggers
# need, with the libraries of others in them).
#
#   deploy/build-wheels.sh [--programs FOLDER] [OUT]
#
# FOLDER is a finished build or an installation with bin, lib and libexec in it; without one the release preset is built.
# OUT is where the wheels go, build/wheels if not said. Nothing else is needed than what the build itself needs.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=
if [ "${1:-}" = --programs ]; then
  programs=${2:?"--programs names a folder"}
  shift 2
fi
out=${1:-build/wheels}

if [ -z "$programs" ]; then
  ./deploy/install-deps.sh --build
  [ -f build/release/build.ninja ] || cmake --preset release -DKILN_TESTS=OFF
  cmake --build --preset release --target kilnd kiln kiln-worker
  programs=build/release
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in bin/kiln bin/kilnd lib/libkiln_runtime.so libexec/kiln-worker; do
  mkdir -p "$work/programs/$(dirname "$name")"
  strip -o "$work/programs/$name" "$programs/$name"
done

./deploy/licences.sh "$work/programs/licenses"

# Packed from a copy: what an earlier or another build left in the tree would be packed along.
mkdir "$work/source"
tar -cf - --exclude=build --exclude='*.egg-info' --exclude=__pycache__ VERSION proto client/python deploy/daemon_wheel |
  tar -xf - -C "$work/source"

mkdir -p "$out"
rm -f "$out"/kiln-*.whl "$out"/kiln_daemon-*.whl
export KILN_PROGRAMS=$work/programs
for package in client/python deploy/daemon_wheel; do
  python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out" "$work/source/$package"
done
stat -c '%s %n' "$out"/kiln-*.whl "$out"/kiln_daemon-*.whl | awk '{ printf "%s  %.1f MB\n", $2, $1 / 1e6 }'
