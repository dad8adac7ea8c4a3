#!/usr/bin/env bash
# Makes (or brings up to date) a virtual environment with the Python client.
#
#   deploy/python-env.sh FOLDER [test]   with `test` also what the tests need
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
extras=${2:-}
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
stamp=$(find "$root/client/python" "$root/proto/kiln/v1" "$root/VERSION" -type f -not -path '*/__pycache__/*' \
  -not -path '*.egg-info/*' -not -path '*/build/*' -print0 | sort -z | xargs -0 cat | cksum)-$extras
if [ "$(cat "$folder/.kiln-stamp" 2>/dev/null)" = "$stamp" ]; then
  echo "The Python client in ${folder#"$root"/} is up to date."
  exit 0
fi
# What an earlier build left there would be installed along, modules that are gone since included.
rm -rf "$root/client/python/build"
echo "Installing the Python client into ${folder#"$root"/}"
"$folder/bin/pip" install --quiet --disable-pip-version-check "$root/client/python${extras:+[$extras]}"
echo "$stamp" > "$folder/.kiln-stamp"
