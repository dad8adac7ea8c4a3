#!/usr/bin/env bash
# Builds deploy/Dockerfile and tries its images, without a Docker engine: buildah with chroot isolation
# on a Debian base made by mmdebstrap. Needs root, or user namespaces.
#
#   deploy/build-image.sh [--keep] [--programs FOLDER] [--target cpu|cuda]
#
# --keep leaves the storage folder (build/image) for a second run. With --programs the image takes bin and libexec of
# FOLDER, a build of the release preset, and is not compiled once more inside. An image for hosts without a GPU that is
# larger than 200 MB is refused.
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
storage=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
buildah_() { buildah "${storage[@]}" "$@"; }
cleanup() { [ "${1:-}" = --keep ] || { chmod -R u+w "$work" 2>/dev/null || true; rm -rf "$work/storage" "$work/run"; }; }
trap 'cleanup "${keep:-}"' EXIT
keep=
programs=
targets=(cpu cuda)
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=--keep ;;
    --programs) programs=${2:?"--programs names a folder"}; shift ;;
    --target) targets=("${2:?"--target names cpu or cuda"}"); shift ;;
    *) echo "usage: $0 [--keep] [--programs FOLDER] [--target cpu|cuda]" >&2; exit 2 ;;
  esac
  shift
done

if [ ! -f "$work/base.tar" ]; then
  echo "== base: Debian 12, minimal"
  sources=/etc/apt/sources.list.d/debian.sources
  [ -f "$sources" ] || sources=/etc/apt/sources.list
  # As Docker's debian:bookworm-slim, which this stands for: without manuals and translations, and apt keeps no tables.
  slim=()
  for folder in doc groff info linda lintian locale man; do
    slim+=(--dpkgopt="path-exclude=/usr/share/$folder/*")
  done
  slim+=(--dpkgopt='path-include=/usr/share/doc/*/copyright' --aptopt='Dir::Cache::pkgcache ""'
    --aptopt='Dir::Cache::srcpkgcache ""')
  mmdebstrap --format=tar --mode=root --variant=minbase "${slim[@]}" bookworm "$work/base.tar.part" "$sources"
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
contexts=()
if [ -n "$programs" ]; then
  # In place of the stage that compiles.
  rm -rf "$work/build"
  for name in bin/kiln bin/kilnd libexec/kiln-worker; do
    mkdir -p "$work/build/opt/kiln/$(dirname "$name")"
    strip -o "$work/build/opt/kiln/$name" "$programs/$name"
  done
  ./deploy/licences.sh "$work/build/opt/kiln/share/doc/kiln-daemon"
  contexts=(--build-context "build=$work/build")
fi

# As its entry point starts it, on a port of this machine that is free. Without a GPU, CUDA is what is compiled for. The
# image has no other tools than its shell.
# shellcheck disable=SC2016
try_daemon='
  set -e
  expect() { case "$1" in *"$2"*) ;; *) echo "$1"; echo "has no $2"; exit 1 ;; esac; }
  { tini -s -- sh -c "echo \$\$ > /tmp/pid; exec kilnd --config /etc/kiln/kilnd.toml --listen 127.0.0.1:17411"
    echo "ended $?"; } | {
    read -r listening
    read -r daemon < /tmp/pid
    trap "kill -TERM $daemon" EXIT
    expect "$listening" "listening on 127.0.0.1:17411"
    unset KILN_ADDRESS KILN_CA
    until [ -s /var/lib/kiln/login ]; do kiln version > /dev/null; done
    read -r login < /var/lib/kiln/login
    $login
    kiln doctor
    kiln compile /tmp/cumsum.kiln
    if [ -n "${KILN_NVRTC:-}" ]; then
      doctor=$(kiln doctor)
      expect "$doctor" "NVRTC 13.0 in /opt/kiln/lib/"
      expect "$doctor" "this container sees no NVIDIA driver"
      kiln compile /tmp/cumsum.kiln --target cuda --arch sm_90 --report
    fi
    trap - EXIT
    kill -TERM "$daemon"
    while read -r line && [ "${line#ended}" = "$line" ]; do :; done
    expect "$line" "ended 0"
  }
'

largest=200000000

# What the files of an image take, without what layers hide.
bytes_of() {
  local box root
  box=$(buildah_ from --pull-never "$1")
  root=$(buildah_ mount "$box")
  du -sb "$root" | cut -f1
  buildah_ rm "$box" >/dev/null
}

try_image() {
  local image=$1 box size
  size=$(buildah_ images --json "$image" | sed -nE 's/.*"size": "([^"]*)".*/\1/p')
  echo "== $image runs: $size"
  if [ "$image" = kiln:cpu ] && [ "$(bytes_of "$image")" -gt "$largest" ]; then
    echo "$image is larger than $largest bytes" >&2
    exit 1
  fi
  box=$(buildah_ from --pull-never "$image")
  inside() { timeout 300 buildah "${storage[@]}" run --isolation chroot --user 65532:65532 "$box" -- "$@"; }
  inside kilnd --version
  # The licences of what the programs are linked with, and of what is beside them.
  for name in kiln/NOTICE kiln/llvm-19-dev kiln/libgrpc++-dev kiln/libseccomp-dev libc6/copyright tini/copyright; do
    inside sh -c "test -s /usr/share/doc/$name"
  done
  buildah_ copy -q "$box" examples/cumsum.kiln /tmp/cumsum.kiln
  inside sh -c "$try_daemon"
  if inside kilnd --listen 0.0.0.0:7411 --cache-dir /tmp/c; then
    echo "the daemon started on all interfaces without a token" >&2
    exit 1
  fi
  buildah_ rm "$box" >/dev/null
}

for target in "${targets[@]}"; do
  buildah_ bud --format docker "${contexts[@]}" "${layers[@]}" --isolation chroot --pull-never "${environment[@]}" \
    --target "$target" -f deploy/Dockerfile -t "kiln:$target" .
  try_image "kiln:$target"
done
echo "The images (${targets[*]}) were built and run as user 65532."
