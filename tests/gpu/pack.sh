#!/usr/bin/env bash
# Packs what tests/gpu/run.sh needs on a host that has only a GPU, its driver and Python: programs, the Python client with
# what it needs, the tests, and the cubins of all their kernels, made here by NVRTC for the GPU there.
#
#   tests/gpu/pack.sh kit.tar.gz        then there: tar xzf kit.tar.gz && kit/tests/gpu/run.sh --out report.json
#
# --build FOLDER (build/release), --python PROGRAM (build/venv/bin/python), --arch ARCH (sm_90), --cases WORD,
# --choices (the schedules that run.sh --choices measures, too)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/release
python=$root/build/venv/bin/python
arguments=()
arch=sm_90
out=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd "$2" && pwd); shift 2 ;;
    --python) python=$2; shift 2 ;;
    --arch) arch=$2; shift 2 ;;
    --cases) arguments+=("$1" "$2"); shift 2 ;;
    --choices) arguments+=("$1"); shift ;;
    -*) echo "usage: $0 [--build FOLDER] [--python PROGRAM] [--arch ARCH] [--cases WORD] [--choices] KIT.tar.gz" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
[ -n "$out" ] || { echo "name the file to write: $0 kit.tar.gz" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kit=$work/kit
mkdir -p "$kit/bin" "$kit/libexec" "$kit/tests/gpu" "$kit/tests/e2e" "$kit/cache"
strip -o "$kit/bin/kilnd" "$build/bin/kilnd"
strip -o "$kit/libexec/kiln-worker" "$build/libexec/kiln-worker"
ln -s kiln-worker "$kit/libexec/kiln-compiler"
cp "$root"/tests/gpu/*.py "$root/tests/gpu/run.sh" "$kit/tests/gpu/"
cp "$root"/tests/e2e/{kernels,topi_cases,topi_nn_cases}.py "$kit/tests/e2e/"
git -C "$root" rev-parse --short HEAD > "$kit/commit"
"$python" - "$kit/python" <<'END'
"""Copies the client and what it imports from the environment to a folder of their own."""
import importlib.metadata
import pathlib
import re
import shutil
import sys

target = pathlib.Path(sys.argv[1])
waiting, seen = ["kiln"], set()
while waiting:
    name = waiting.pop()
    if name in seen:
        continue
    seen.add(name)
    package = importlib.metadata.distribution(name)
    for file in package.files or ():
        if ".." in file.parts or "tests" in file.parts or file.suffix == ".pyc":
            continue
        there = target / file
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(package.locate_file(file), there)
    for need in package.requires or ():
        if "extra ==" not in need:
            waiting.append(re.match(r"[\w.-]+", need)[0])
(target / "version").write_text(f"{sys.version_info.major}.{sys.version_info.minor}\n")
END
PYTHONPATH="$root/tests/gpu:$root/tests/e2e" "$python" "$root/tests/gpu/report.py" --build "$kit" --compile-for "$arch" \
  --cache "$kit/cache" "${arguments[@]}"
tar -C "$work" -czf "$out" kit
echo "$out: $(du -h "$out" | cut -f1)"
