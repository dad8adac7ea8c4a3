"""Lists the places that refuse something, and that no test has executed.

    cmake --preset coverage && cmake --build --preset coverage
    tests/errors/executed.sh

A place is a call of `fail` or one of its kin in C++, and a raise of an error in the Python client. The C++ places
are judged by the regions that clang counts, so that the call of a one-line `if` is told from its condition; the
Python places by the lines that coverage.py has seen. A place of `accepted.txt` may stay without a test, for the
reason that stands there.
"""

import argparse
import bisect
import json
import pathlib
import subprocess
import sys

import unreached

ROOT = unreached.ROOT


def regions_of(build):
    """By file, the segments of clang's coverage: [line, column, count, has a count, ...], in order."""
    merged = build / "coverage.profdata"
    profiles = sorted(map(str, (build / "coverage").glob("*.profraw")))
    if not profiles:
        sys.exit(f"no test has run: {build}/coverage has no profiles")
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-o", merged, *profiles], check=True)
    binaries = [p for p in sorted(build.rglob("*")) if _is_counted(p)]
    objects = [word for binary in binaries[1:] for word in ("-object", str(binary))]
    command = ["llvm-cov-14", "export", "-skip-expansions", "-skip-functions", f"-instr-profile={merged}"]
    exported = subprocess.run([*command, str(binaries[0]), *objects], check=True, stdout=subprocess.PIPE).stdout
    files = json.loads(exported)["data"][0]["files"]  # named as the compiler was: from the build folder
    return {str((build / each["filename"]).resolve()): each["segments"] for each in files}


def _is_counted(path):
    """Whether it is a program, built with counters."""
    if not path.is_file() or path.is_symlink() or not path.stat().st_mode & 0o111 or path.suffix:
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF" and b"__llvm_covmap" in file.read()


def count_at(segments, line, column):
    """How often the code at this place ran; None for what is no code of any program."""
    after = bisect.bisect_right([(s[0], s[1]) for s in segments], (line, column))
    if after == 0 or not segments[after - 1][3]:
        return None
    return segments[after - 1][2]


def cpp_places(build):
    """(place, sentence) of each call that refuses and was not executed."""
    regions = regions_of(build)
    for path, text, found, sentence in unreached.cpp_calls():
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        if not count_at(regions.get(str(path), []), line, column):
            yield path.relative_to(ROOT), line, sentence


def python_places(seen):
    """The same of the Python client, where `seen` is what `coverage json` has written."""
    files = {str(ROOT / name): set(data["executed_lines"]) for name, data in json.loads(seen.read_text())["files"].items()}
    for place, sentence in unreached.python_sites():
        name, line = place.rsplit(":", 1)
        if int(line) not in files.get(str(ROOT / name), set()):
            yield pathlib.Path(name), int(line), sentence


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/coverage")
    parser.add_argument("--python", type=pathlib.Path, help="what `coverage json` has written of the Python client")
    options = parser.parse_args()
    places = list(cpp_places(options.build))
    if options.python:
        places += python_places(options.python)
    allowed = list(unreached.accepted())
    open_places, used = [], set()
    for file, line, sentence in places:
        found = [entry for entry in allowed if entry[0] == str(file) and entry[1] in sentence]
        used.update(found)
        if not found:
            open_places.append(f"{file}:{line}: {sentence.replace(unreached.HOLE, '{}')}")
    print("\n".join(open_places))
    print(f"{len(open_places)} places are executed by no test; {len(used)} may stay so")
    # One that is executed may still have a sentence that no test can see.
    for place, sentence in unreached.untested():
        used.update(entry for entry in allowed if unreached.is_accepted(place, sentence, [entry]))
    for file, words, _ in sorted(set(allowed) - used):
        words = words.replace(unreached.HOLE, "{}")
        print(f"accepted.txt: {file} | {words}: tests execute and have it, or it is gone; take the line out")
    sys.exit(1 if open_places or set(allowed) != used else 0)


if __name__ == "__main__":
    main()
