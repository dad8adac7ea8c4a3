"""Draws docs/house.svg: the rooms of Kiln, who includes whom, and the way of a kernel through them.

    python3 docs/generate_house.py            # writes docs/house.svg
    python3 docs/generate_house.py --check    # exits 1 when it is behind

Rooms are folders. Arrows come from the `#include` lines: a room points at those it includes, without the
arrows that follow from others. What a room is for and the stations of the way are written down here.
"""

import pathlib
import re
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/house.svg"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# Floors from the street to the cellar, and the rooms of each: folder, name, what it holds.
FLOORS = [
    ("clients", [
        ("client/cli", "client/cli", "the command kiln"),
        ("client/cpp", "client/cpp", "the C++ library"),
        ("command_line", "command_line", "wrong flags, in words"),
    ]),
    ("kilnd", [
        ("server", "kilnd", "flags, start, stop"),
        ("server/rpc", "rpc", "the wire's calls"),
        ("server/local", "local", "clients on this host"),
        ("server/http", "http", "pages for operators"),
        ("server/engine", "engine", "compile, queue, run"),
        ("server/cache", "cache", "artifacts kept"),
        ("server/tensors", "tensors", "uploads, sessions"),
        ("server/jobs", "jobs", "submitted runs"),
        ("server/programs", "programs", "graphs, their runs"),
        ("server/metrics", "metrics", "counted, measured"),
        ("server/tuning", "tuning", "search, records"),
    ]),
    ("processes", [
        ("server/workers", "workers", "starting, watching"),
        ("server/ipc", "ipc", "sockets, arenas"),
        ("server/worker", "worker", "what runs in one"),
        ("server/*.h", "server/*.h", "calls, errors, counters"),
    ]),
    ("compiler", [
        ("compiler", "compiler/*.cc", "compile, lower, report"),
        ("compiler/autodiff", "autodiff", "gradients"),
        ("compiler/program", "program", "graphs to kernels"),
        ("compiler/predict", "predict", "what loops take"),
        ("compiler/autoschedule/choose", "choose", "the cheapest sketch"),
        ("compiler/autoschedule/templates", "templates", "sketches as steps"),
        ("compiler/autoschedule/recognise", "recognise", "structure of stages"),
    ]),
    ("loops", [
        ("compiler/codegen", "codegen", "LLVM and CUDA C"),
        ("compiler/passes", "passes", "loops to loops"),
        ("compiler/tile", "tile", "programs on tiles"),
        ("compiler/schedule", "schedule", "steps to loops"),
        ("compiler/schedule/emit", "schedule/emit", "nests as loops"),
        ("compiler/schedule/steps", "schedule/steps", "steps edit stages"),
        ("compiler/schedule/bounds", "schedule/bounds", "what each computes"),
        ("compiler/schedule/graph", "schedule/graph", "stages and axes"),
    ]),
    ("proofs", [
        ("compiler/analysis", "analysis", "what is provable"),
        ("compiler/ir", "ir", "loops as nodes"),
        ("compiler/target.h", "target.h", "what to compile for"),
    ]),
    ("language", [
        ("compiler/language/wire", "language/wire", "decode, ids"),
        ("compiler/language/text", "language/text", ".kiln files"),
        ("compiler/language/check", "language/check", "what may be said"),
        ("compiler/language/state", "language/state", "loops after steps"),
        ("compiler/language/evaluate", "language/evaluate", "the oracle"),
        ("compiler/language", "language", "definitions"),
        ("compiler/language/tables", "language/tables", "operators, steps"),
    ]),
    ("runtime", [
        ("runtime/library", "runtime/library", "kernels of files"),
        ("runtime/cpu", "runtime/cpu", "threads, code loaded"),
        ("runtime/cuda", "runtime/cuda", "the driver"),
        ("runtime/program", "runtime/program", "steps of a graph"),
        ("runtime", "runtime", "device.h"),
        ("runtime/core", "runtime/core", "artifacts, errors"),
    ]),
]

# Files that are a room apart from the others of their folder.
APART = {
    "compiler/target.h": "compiler/target.h",
    **{f"server/{name}": "server/*.h"
       for name in ("address.cc", "address.h", "call.h", "clock.h", "config.cc", "config.h", "counters.h", "errors.cc",
                    "errors.h", "version.h")},
}

# From a .kiln file to a result: `kiln run cumsum.kiln --in X=x.npy`.
WAY = [
    ("client/cli/run.cc", "reads the command line, the file and the .npy"),
    ("compiler/language/text/parse_text.cc", "makes a definition and a schedule of the text"),
    ("client/cpp/kernel.cc", "sends both, then the tensors"),
    ("server/rpc/kernel_rpc.cc", "takes the call"),
    ("server/engine/compile_service.cc", "asks the caches, then a compiler process"),
    ("server/worker/compiler_loop.cc", "is that process; what the wire says is checked"),
    ("compiler/language/wire/decode.cc", "checks the definition in the user's names"),
    ("compiler/autoschedule/choose/choose_schedule.cc", "writes steps for stages without any"),
    ("compiler/schedule/build_loops.cc", "turns definition and steps into loops"),
    ("compiler/lower.cc", "sends the loops through the table of passes"),
    ("compiler/compile.cc", "has code generated and puts the artifact together"),
    ("server/engine/run_service.cc", "binds the arguments and queues the run"),
    ("server/worker/device_loop.cc", "is the device's process: loads and runs it"),
    ("runtime/cpu/cpu_device.cc", "calls the code, on its threads"),
]

ROOM_WIDTH, ROOM_HEIGHT, GAP, FLOOR_HEIGHT, LEFT, TOP = 150, 50, 18, 104, 96, 56


def rooms():
    return [folder for _, floor in FLOORS for folder, _, _ in floor]


def room_of(path):
    """The room that a file stands in: the longest of its folders that is one."""
    if path in APART:
        return APART[path]
    known = set(rooms())
    for folder in pathlib.PurePosixPath(path).parents:
        if str(folder) in known:
            return str(folder)
    return None


def includes():
    """room -> rooms that it includes."""
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.h", "*.cc"],
                             cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    graph = {room: set() for room in rooms()}
    for name in sorted(listing):
        room = room_of(name)
        if room is None or not (ROOT / name).exists():
            continue
        for included in INCLUDE.findall((ROOT / name).read_text()):
            target = room_of(included)
            if target is not None and target != room:
                graph[room].add(target)
    return graph


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for following in graph[todo.pop()]:
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def reduced(graph):
    """The arrows that do not follow from others; those of rooms that include each other stay."""
    result = {}
    for room, targets in graph.items():
        others = {t: reachable(graph, t) for t in targets}
        result[room] = {t for t in targets
                        if not any(t in others[o] and room not in others[o] for o in targets if o != t)}
    return result


def places():
    result = {}
    for row, (_, floor) in enumerate(FLOORS):
        for column, (folder, _, _) in enumerate(floor):
            result[folder] = (LEFT + column * (ROOM_WIDTH + GAP), TOP + row * FLOOR_HEIGHT)
    return result


def arrow(start, end):
    """From the nearer edge of one room to that of another; neighbours on a floor by an arc below them."""
    (x1, y1), (x2, y2) = start, end
    middle = ROOM_WIDTH / 2
    if y1 == y2:
        side = 1 if x2 > x1 else -1
        a, b = x1 + middle + side * 20, x2 + middle - side * 20
        y = y1 + ROOM_HEIGHT
        return f"M{a:g} {y} C{a:g} {y + 24} {b:g} {y + 24} {b:g} {y + 2}"
    down = y2 > y1
    from_y, to_y = (y1 + ROOM_HEIGHT, y2 - 2) if down else (y1, y2 + ROOM_HEIGHT + 2)
    bend = (to_y - from_y) / 2
    lean = max(-40, min(40, (x2 - x1) / 8))
    a, b = x1 + middle + lean, x2 + middle - lean
    return f"M{a:g} {from_y} C{a:g} {from_y + bend:g} {b:g} {to_y - bend:g} {b:g} {to_y}"


def picture():
    at = places()
    width = max(x for x, _ in at.values()) + ROOM_WIDTH + 24
    below = TOP + len(FLOORS) * FLOOR_HEIGHT
    height = below + 30 + 20 * len(WAY)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="13">',
           '<defs><marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" markerHeight="6" '
           'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#8296aa"/></marker></defs>',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="24" font-weight="bold" font-size="16" fill="#1d2b3a">The house of Kiln</text>',
           f'<text x="{LEFT}" y="42" fill="#47586a">An arrow: includes. Numbers: the way of '
           '<tspan font-family="monospace">kiln run cumsum.kiln --in X=x.npy</tspan>, told below.</text>']
    for row, (name, floor) in enumerate(FLOORS):
        y = TOP + row * FLOOR_HEIGHT
        out.append(f'<text x="14" y="{y + 30}" fill="#8296aa">{escape(name)}</text>')
    for room, targets in sorted(reduced(includes()).items()):
        for target in sorted(targets):
            out.append(f'<path d="{arrow(at[room], at[target])}" fill="none" stroke="#8296aa" '
                       'stroke-width="1" stroke-opacity="0.75" marker-end="url(#tip)"/>')
    for _, floor in FLOORS:
        for folder, name, holds in floor:
            x, y = at[folder]
            out += [f'<rect x="{x}" y="{y}" width="{ROOM_WIDTH}" height="{ROOM_HEIGHT}" rx="5" fill="#f3f6f9" '
                    'stroke="#33475b"/>',
                    f'<text x="{x + 8}" y="{y + 19}" font-weight="bold" fill="#1d2b3a">{escape(name)}</text>',
                    f'<text x="{x + 8}" y="{y + 38}" font-size="12" fill="#47586a">{escape(holds)}</text>']
    stations = {}
    for number, (file, does) in enumerate(WAY, 1):
        stations.setdefault(room_of(file), []).append(number)
        y = below + 20 * number
        out += [f'<circle cx="{LEFT + 9}" cy="{y - 4}" r="8.5" fill="#b5452c"/>',
                f'<text x="{LEFT + 9}" y="{y}" font-size="11" text-anchor="middle" fill="#ffffff">{number}</text>',
                f'<text x="{LEFT + 26}" y="{y}" font-family="monospace" fill="#1d2b3a">{escape(file)}</text>',
                f'<text x="{LEFT + 420}" y="{y}" fill="#47586a">{escape(does)}</text>']
    for room, numbers in stations.items():
        x, y = at[room]
        for i, number in enumerate(numbers):
            cx = x + ROOM_WIDTH - 4 - 18 * (len(numbers) - 1 - i)
            out += [f'<circle cx="{cx}" cy="{y + 3}" r="8.5" fill="#b5452c"/>',
                    f'<text x="{cx}" y="{y + 7}" font-size="11" text-anchor="middle" fill="#ffffff">{number}</text>']
    out.append("</svg>")
    return "\n".join(out) + "\n"


def missing():
    """Stations of the way that are no file, and folders with sources that are in no room."""
    for file, _ in WAY:
        if not (ROOT / file).exists():
            yield f"{file} is a station of the way, but there is no such file"
    known = set(rooms())
    listing = subprocess.run(["git", "ls-files", "--", "compiler", "runtime", "server", "client", "command_line"],
                             cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    for folder in sorted({str(pathlib.PurePosixPath(name).parent) for name in listing
                          if name.endswith((".cc", ".h"))}):
        if folder not in known and room_of(folder + "/x") in (None, "compiler", "runtime", "server"):
            yield f"{folder} is in no room"


def main():
    problems = list(missing())
    if sys.argv[1:] == ["--check"] and not problems and PICTURE.read_text() != picture():
        problems = ["docs/house.svg is behind: python3 docs/generate_house.py"]
    if problems:
        sys.exit("\n".join(problems))
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(picture())


if __name__ == "__main__":
    main()
