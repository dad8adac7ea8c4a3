#!/usr/bin/env bash
# Installs Kiln on a clean Debian in one of the ways of docs/installing.md and prints what was typed, what came back and
# after how many seconds. Needs root, mmdebstrap and bubblewrap, for `debian` systemd-container, for `image` buildah,
# podman and iproute2.
#
#   tests/deploy/clean_root/transcript.sh [--suite SUITE [--sources FILE]] [--build FOLDER] [--ccache FOLDER]
#       pip|demo|tests|quick|debian|image
#
# SUITE is bookworm, if not said, another one of Debian, or with a file of sources one of Ubuntu. The folder of --build is a finished build of the release preset, from which wheels, packages and images are made. `demo`
# compiles; --ccache gives it a cache of compilers that an earlier build has filled. `tests` runs the README's second command behind the
# first, `quick` with --quick: more than an hour of two cores that do nothing else.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
tree=$(realpath "$here/../../..")
# shellcheck source=tests/deploy/clean_root/root.sh
. "$here/root.sh"

suite=bookworm
build=$tree/build/release
ccache=
sources=
while [ $# -gt 1 ]; do
  case $1 in
    --suite) suite=$2 ;;
    --sources) sources=$(realpath "$2") ;;
    --build) build=$(realpath "$2") ;;
    --ccache) ccache=$(realpath "$2") ;;
    *) break ;;
  esac
  shift 2
done
way=
[ $# -ne 1 ] || way=$1
cache=$tree/build/clean-roots
work=$(mktemp -d)
undo=()
finish() {
  local command
  for command in "${undo[@]}"; do $command || true; done
  rm -rf "$work"
}
trap finish EXIT
root=$work/root
binds=()

about() {
  printf '# %s, %s, %s cores, %s\n' "$(date +%F)" "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
    "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$root/etc/os-release")"
}

# The README's first block of Python.
first_program() { awk '/^```python$/ { inside = 1; next } inside && /^```$/ { exit } inside' "$tree/README.md"; }

wheels() { "$tree/deploy/build-wheels.sh" --programs "$build" "$root/home/you/wheels" > /dev/null; }

by_pip() {
  new_root "$suite" "$root"
  wheels
  first_program > "$root/home/you/first.py"
  about
  in_root "$root" bash /transcript/pip.sh
}

by_demo() {
  new_root "$suite" "$root" ${ccache:+ccache}
  git clone -q --bare "$tree" "$work/kiln.git"
  about
  binds=(--ro-bind "$work/kiln.git" /source)
  [ -z "$ccache" ] || binds+=(--bind "$ccache" /ccache --setenv CCACHE_DIR /ccache --setenv CCACHE_READONLY 1
    --setenv CCACHE_BASEDIR /home/you/kiln --setenv CCACHE_NOHASHDIR 1)
  in_root "$root" bash /transcript/demo.sh "$@"
}

by_debian_packages() {
  new_root "$suite" "$root" systemd systemd-sysv
  (cd "$build" && cpack -G DEB -B "$work/packages" > /dev/null 2>&1)
  cp "$work"/packages/*.deb "$tree/examples/cumsum.kiln" "$tree/examples/data/x_10x1024.npy" "$root/home/you/"
  about
  boot "$root" /transcript/debian.sh
}

# Two machines: networks of their own, $service and $client, that reach each other and nothing else.
two_machines() {
  service=kiln-service-$$ client=kiln-client-$$
  ip netns add "$service"
  undo+=("ip netns del $service")
  ip netns add "$client"
  undo+=("ip netns del $client")
  ip link add eth0 netns "$service" type veth peer name eth0 netns "$client"
  local name number=1
  for name in "$service" "$client"; do
    ip -n "$name" link set lo up
    ip -n "$name" addr add "10.119.0.$number/24" dev eth0
    ip -n "$name" link set eth0 up
    number=2
  done
}

by_image() {
  "$tree/deploy/build-image.sh" --keep --programs "$build" --target cpu > "$work/image.log" 2>&1 || { cat "$work/image.log"; exit 1; }
  two_machines
  new_root "$suite" "$root"
  wheels
  rm "$root"/home/you/wheels/kiln_daemon-*
  first_program > "$root/home/you/first.py"
  about
  KILN_STORAGE="--root $tree/build/image/storage --runroot $tree/build/image/run --storage-driver vfs"
  export KILN_STORAGE
  undo+=("podman $KILN_STORAGE rm -f kiln" "podman $KILN_STORAGE volume rm -f state cache")
  echo "# on the host of the service"
  # The engine wants cgroups of version 2, whatever this host has.
  ip netns exec "$service" sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"' sh \
    bash "$here/service.sh" 10.119.0.1 "$work/login"
  echo "# on another machine"
  in_root "$root" bash /transcript/client.sh
  in_network="ip netns exec $client" in_root "$root" bash /transcript/login.sh "$(cat "$work/login")"
}

case $way in
  pip) by_pip ;;
  demo) by_demo ;;
  tests | quick) by_demo "$way" ;;
  debian) by_debian_packages ;;
  image) by_image ;;
  *) echo "usage: $0 [--suite SUITE [--sources FILE]] [--build FOLDER] [--ccache FOLDER] pip|demo|tests|quick|debian|image" >&2; exit 2 ;;
esac
