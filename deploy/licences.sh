#!/usr/bin/env bash
# Gathers the licences of what the programs are linked with, to lie beside them: LICENSE, NOTICE, and of each Debian
# package that NOTICE names its copyright file, under the package's name.
#
#   deploy/licences.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?"usage: deploy/licences.sh FOLDER"}

mkdir -p "$folder"
cp LICENSE NOTICE "$folder/"
sed -nE 's/^  ([a-z][a-z0-9+-]+-dev) .*/\1/p' NOTICE | while read -r package; do
  if [ -e "/usr/share/doc/$package/copyright" ]; then
    cp -L "/usr/share/doc/$package/copyright" "$folder/$package"
  fi
done
