#!/usr/bin/env bash
# The same machine later, in a network in which it reaches nothing but the service: the line of the service's log, and
# the first program of the README.
set -euo pipefail
source /transcript/typed.sh
. venv/bin/activate
begin
typed "python -m $1"
typed 'python first.py'
total 'the line of the log and the first result'
typed 'python -m kiln doctor'
