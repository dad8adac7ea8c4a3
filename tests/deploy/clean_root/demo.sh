#!/usr/bin/env bash
# On a clean Debian: a clone (of /source, in place of the repository's address) and the README's first command. The
# second takes the same build folder; what of it would be compiled again for the programs is the last line, unless it is
# run too: `demo.sh tests` runs all of it, `demo.sh quick` with --quick.
set -euo pipefail
source /transcript/typed.sh
typed 'apt-get update -qq && apt-get install -qq -y --no-install-recommends git > /dev/null'
git config --global --add safe.directory '*'
begin
typed 'git clone -q /source kiln && cd kiln'
typed './deploy/demo.sh'
total 'the clone and the first command'
case ${1:-} in
  tests) typed './tests/run.sh' ;;
  quick) typed './tests/run.sh --quick' ;;
esac
if [ $# -gt 0 ]; then
  total 'the clone and both commands'
  exit
fi
typed 'cmake --preset release -DKILN_TESTS=ON > /dev/null && ninja -C build/release -n bin/kilnd bin/kiln libexec/kiln-worker'
