#!/usr/bin/env bash
# Builds deploy/Dockerfile and tries the image, without a Docker engine: buildah with chroot isolation
# on a Debian base made by mmdebstrap. Needs root, or user namespaces.
#
#   deploy/build-image.sh [--keep]   --keep leaves the storage folder (build/image) for a second run
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

for tool in buildah mmdebstrap; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is not installed; run deploy/install-deps.sh --images" >&2
    exit 1
  fi
done

work=$root/build/image
mkdir -p "$work"
buildah_() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
cleanup() { [ "${1:-}" = --keep ] || { chmod -R u+w "$work" 2>/dev/null || true; rm -rf "$work/storage" "$work/run"; }; }
trap 'cleanup "${keep:-}"' EXIT
keep=${1:-}

if [ ! -f "$work/base.tar" ]; then
  echo "== base: Debian 12, minimal"
  sources=/etc/apt/sources.list.d/debian.sources
  [ -f "$sources" ] || sources=/etc/apt/sources.list
  mmdebstrap --mode=root --variant=minbase bookworm "$work/base.tar.part" "$sources"
  mv "$work/base.tar.part" "$work/base.tar"
fi
if ! buildah_ inspect --type image docker.io/library/debian:bookworm-slim >/dev/null 2>&1; then
  base=$(buildah_ from scratch)
  buildah_ add -q "$base" "$work/base.tar" /
  # The same package sources and trust as the host, so that apt answers in the build.
  for source in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf.d; do
    if [ -e "$source" ]; then buildah_ add -q "$base" "$source" "$source"; fi
  done
  if [ -d /usr/local/share/ca-certificates ]; then
    buildah_ add -q "$base" /usr/local/share/ca-certificates /usr/local/share/ca-certificates
  fi
  [ ! -f /etc/pip.conf ] || buildah_ add -q "$base" /etc/pip.conf /etc/pip.conf
  buildah_ commit -q --rm "$base" docker.io/library/debian:bookworm-slim
fi

echo "== image"
# A layer an instruction makes a second build quick, and costs a whole copy of the file system each.
layers=()
[ "$keep" != --keep ] || layers=(--layers)
environment=()
for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_CERT SSL_CERT_FILE; do
  [ -z "${!name:-}" ] || environment+=(--env "$name=${!name}")
done
buildah_ bud --format docker "${layers[@]}" --isolation chroot --pull-never "${environment[@]}" --target cpu -f deploy/Dockerfile -t kiln:cpu .

echo "== the image runs"
box=$(buildah_ from --pull-never kiln:cpu)
inside() { buildah_ run --isolation chroot --user 65532:65532 "$box" -- "$@"; }
inside kilnd --version
buildah_ copy -q "$box" examples/cumsum.kiln /tmp/cumsum.kiln
# shellcheck disable=SC2016
inside sh -c '
  set -e
  export KILN_ADDRESS=unix:/tmp/kiln.sock
  kilnd --listen "$KILN_ADDRESS" --cache-dir /var/cache/kiln > /tmp/kilnd.log 2>&1 &
  daemon=$!
  for _ in $(seq 100); do grep -q "listening on" /tmp/kilnd.log && break; sleep 0.1; done
  kiln doctor
  kiln compile /tmp/cumsum.kiln
  kill -TERM $daemon
  wait $daemon
'
if inside kilnd --listen 0.0.0.0:7411 --cache-dir /tmp/c --token-file /run/kiln/token; then
  echo "the daemon started on all interfaces without a token" >&2
  exit 1
fi
buildah_ rm "$box" >/dev/null
echo "The image was built and runs as user 65532."
