#!/usr/bin/env bash
# Makes /usr/local/lib/libprometheus-cpp-core.a, which Debian's package prometheus-cpp-dev lacks: the release build takes
# the libraries of others in. Compiled from Debian's source package of the installed version; nothing of it is kept.
set -euo pipefail
archive=/usr/local/lib/libprometheus-cpp-core.a
[ -e "$archive" ] && exit 0
version=$(dpkg-query -W -f='${source:Version}' prometheus-cpp-dev)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The same servers as those of the binary packages, without changing what apt knows of them.
mkdir -p "$work/sources" "$work/lists/partial"
cat >"$work/sources/debian.sources" <<END
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
options=(-qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/sources"
  -o "Dir::State::Lists=$work/lists")
apt-get "${options[@]}" update
(cd "$work" && apt-get "${options[@]}" source "prometheus-cpp=$version" >/dev/null)

cmake -S "$work"/prometheus-cpp-*/ -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
  -DENABLE_PULL=OFF -DENABLE_PUSH=OFF -DENABLE_TESTING=OFF -DENABLE_COMPRESSION=OFF >/dev/null
cmake --build "$work/build" --parallel "$(nproc)" >/dev/null
install -m 0644 "$work/build/lib/libprometheus-cpp-core.a" "$archive"
echo "Made $archive of prometheus-cpp $version."
