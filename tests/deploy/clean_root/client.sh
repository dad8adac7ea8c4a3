#!/usr/bin/env bash
# On the machine of a client, a clean Debian: the client's wheel alone, which lies in ./wheels.
set -euo pipefail
source /transcript/typed.sh
typed 'apt-get update -qq && apt-get install -qq -y --no-install-recommends python3-venv > /dev/null'
typed 'python3 -m venv venv && . venv/bin/activate && pip install -q wheels/kiln-*.whl'
