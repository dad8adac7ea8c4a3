#!/usr/bin/env bash
# On a clean Debian: both wheels, which lie in ./wheels, and the first program of the README, ./first.py.
set -euo pipefail
source /transcript/typed.sh
typed 'apt-get update -qq && apt-get install -qq -y --no-install-recommends python3-venv > /dev/null'
begin
typed 'python3 -m venv venv && . venv/bin/activate'
typed 'pip install -q wheels/*.whl'
typed 'python first.py'
total 'a new environment, both wheels and the first result'
typed 'kiln doctor'
