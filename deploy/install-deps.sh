#!/usr/bin/env bash
# Installs the Debian packages that Kiln is built with. Idempotent; asks nothing.
#
#   deploy/install-deps.sh           what the build, the tests and the demo need
#   deploy/install-deps.sh --build   the build alone, without tests (what images use)
#   deploy/install-deps.sh --images  also what the image build script needs
set -euo pipefail

build=(
  build-essential ca-certificates cmake git ninja-build pkg-config
  python3 python3-pip python3-venv
  libcli11-dev libevent-dev libgrpc++-dev libhiredis-dev libprotobuf-dev libseccomp-dev libspdlog-dev libsqlite3-dev
  libfmt-dev libssl-dev libtomlplusplus-dev libxxhash-dev libzstd-dev zlib1g-dev nlohmann-json3-dev prometheus-cpp-dev
  lld-19 llvm-19-dev protobuf-compiler protobuf-compiler-grpc
)
tests=(
  ccache clang-14 clang-format-14 clang-tidy-14 libbenchmark-dev libclang-rt-14-dev libgtest-dev libgmock-dev openssl
  haproxy munge prometheus redis-server slurm-client slurmctld slurmd
)
images=(bubblewrap buildah iproute2 mmdebstrap podman systemd-container)

wanted=("${build[@]}")
case "${1:-}" in
  "") wanted+=("${tests[@]}") ;;
  --build) ;;
  --images) wanted+=("${tests[@]}" "${images[@]}") ;;
  *) echo "usage: $0 [--build|--images]" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
  echo "This script installs Debian packages, but apt-get is not here; on other systems install: ${wanted[*]}" >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "Run this as root, or install sudo." >&2; exit 1; }
  as_root=(sudo)
fi

missing=()
for package in "${wanted[@]}"; do
  if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
    missing+=("$package")
  fi
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "All ${#wanted[@]} Debian packages that Kiln needs are installed."
else
  echo "Kiln needs ${#wanted[@]} Debian packages; installing the ${#missing[@]} that are missing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  echo "Installed."
fi
if [ ! -e /usr/local/lib/libprometheus-cpp-core.a ]; then
  "${as_root[@]}" "$(dirname "$0")/prometheus-archive.sh" ||
    echo "Without an archive of prometheus-cpp the daemon needs its shared library where it runs." >&2
fi
