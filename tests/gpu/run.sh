#!/usr/bin/env bash
# All that only a GPU can show, in at most nine minutes: every operator against numpy and the CPU, trouble, memory checks, and
# times. Needs a build and its Python environment, or a kit of them (pack.sh), and neither a compiler nor a network.
#
#   tests/gpu/run.sh                     on a host with a GPU; writes tests/bench/results/gpu-NAME.json
#   tests/gpu/run.sh --fake --out F      the same on the fake driver: a rehearsal, whose times mean nothing
#   tests/gpu/run.sh --choices               instead: the schedules that the timed kernels may have, measured beside their predictions
#   tests/gpu/run.sh --predict           without a GPU: what the times are predicted to be on an H100, A100, L4 and B200
#
# --build FOLDER (build/release), --python PROGRAM (build/venv/bin/python), --cache FOLDER (cubins that a run begins with),
# --seconds N (540), --cases WORD
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/release
python=$root/build/venv/bin/python
arguments=()
packages=
if [ -d "$root/python" ]; then  # a kit
  build=$root
  python=$(command -v "python$(cat "$root/python/version")" || command -v python3)
  packages=$root/python
  arguments+=(--cache "$root/cache")
fi
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd "$2" && pwd); shift 2 ;;
    --python) python=$2; shift 2 ;;
    --out|--seconds|--cases|--cache) arguments+=("$1" "$2"); shift 2 ;;
    --fake|--predict|--choices) arguments+=("$1"); shift ;;
    *) echo "usage: $0 [--fake|--predict] [--choices] [--out FILE] [--build FOLDER] [--python PROGRAM] [--cache FOLDER] [--seconds N] [--cases WORD]" >&2; exit 2 ;;
  esac
done
[ -x "$build/bin/kilnd" ] || { echo "there is no kilnd in $build/bin; build it, or name the build by --build" >&2; exit 2; }
PYTHONPATH="$root/tests/gpu:$root/tests/e2e${packages:+:$packages}" exec "$python" "$root/tests/gpu/report.py" --build "$build" "${arguments[@]}"
