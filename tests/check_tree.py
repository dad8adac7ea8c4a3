"""Checks of the tree itself: who includes or imports whom, sizes of files, sources listed, formatting.

Run from anywhere; exits 1 after printing one line for each breach.
"""

import ast
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Which folders the files of a folder may include, beside standard and library headers.
MAY_INCLUDE = {
    "runtime": ["runtime/"],
    "compiler": ["compiler/", "runtime/core/"],
    "command_line": ["command_line/", "compiler/language/"],
    "server": ["server/", "command_line/", "compiler/", "runtime/", "kiln/"],
    "client": ["client/", "command_line/", "compiler/language/", "runtime/core/", "kiln/"],
}
# Extra permission of single folders: the wire is read in the language alone.
ALSO = {"compiler/language": ["kiln/v1/"]}

# Inside the compiler: what a folder may include beside itself, in the direction in which data flows. Files
# of compiler/ itself may include all of them.
COMPILER = {
    "language": [],
    "autodiff": ["language/"],
    "ir": ["language/"],
    "analysis": ["ir/", "language/"],
    "schedule": ["analysis/", "ir/", "language/", "target.h"],
    "autoschedule": ["schedule/", "tile/", "analysis/", "ir/", "language/", "target.h"],
    "passes": ["analysis/", "ir/", "language/", "target.h"],
    "codegen": ["analysis/", "ir/", "language/"],
    "predict": ["analysis/", "autoschedule/", "ir/", "language/", "tile/"],
    "tile": ["ir/", "language/"],
    "program": ["autodiff/", "language/"],
}

# The Python client, in the direction in which data flows: a module may import those of earlier rows, at its top and
# inside functions alike, and those of its own row as far as no circle comes of it.
PYTHON = "client/python/kiln"
PYTHON_LAYERS = [
    ["_tables", "_operator_tables", "_version", "v1"],  # generated
    ["_base"],
    ["_expressions"],
    ["_definitions"],
    ["_schedule"],
    ["_encoding"],
    ["target"],
    ["_service"],
    ["_programs"],
    ["contrib", "driver", "error", "ir", "nd", "optimizers", "runtime", "te", "testing", "tir", "topi", "transform"],
    ["__init__"],
    ["__main__"],
]

# The rooms of a part of the compiler, each with those of the same part that it may include. What lies beside the
# rooms is the part's own: its headers are for all, its sources may ask all.
ROOMS = {
    "compiler/language": {"tables": [], "check": ["tables"], "evaluate": ["tables"], "state": ["check", "tables"],
                          "wire": ["state", "evaluate", "check", "tables"],
                          "text": ["wire", "state", "check", "tables"]},
    "compiler/schedule": {"graph": [], "bounds": ["graph"], "steps": ["bounds", "graph"], "emit": ["bounds", "graph"]},
    "compiler/autoschedule": {"recognise": [], "templates": ["recognise"], "choose": ["templates", "recognise"]},
}

# Heavy headers and the only files that may include them.
HEAVY = [
    (r"<llvm/|<llvm-c/", r"^(compiler/codegen/llvm_.*|runtime/core/cpu_name\.cc|tests/compiled/(vector_unit|cpu_features)_test\.cc)$"),
    (r"<grpc(pp|\+\+)?/|\.grpc\.pb\.h", r"^(server/|client/cpp/|tests/)"),
    (r"<spdlog/", r"^(server/|tests/server/)"),
    (r"<cuda\.h>|<nvrtc\.h>", r"^(runtime/cuda/driver_api\.|tests/|compiler/codegen/nvrtc|tests/)"),
]

LINE_LIMIT = 600
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<][^">]+[">])', re.M)


def tracked(*patterns):
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    return [name for name in listing if name and (ROOT / name).exists()]


def include_breaches():
    for name in tracked("*.h", "*.cc"):
        top = name.split("/")[0]
        text = (ROOT / name).read_text()
        for included in INCLUDE.findall(text):
            for pattern, allowed in HEAVY:
                if re.search(pattern, included) and not re.match(allowed, name):
                    yield f"{name}: may not include {included}"
            if not included.startswith('"') or top not in MAY_INCLUDE:
                continue
            path = included.strip('"')
            allowed = MAY_INCLUDE[top] + [p for folder, more in ALSO.items()
                                          if name.startswith(folder + "/") for p in more]
            if not any(path.startswith(prefix) for prefix in allowed):
                yield f"{name}: {top} may not include {included}"


def direction_breaches():
    for name in tracked("compiler/*.h", "compiler/*.cc"):
        folder = name.split("/")[1]
        if folder not in COMPILER:
            continue
        for included in INCLUDE.findall((ROOT / name).read_text()):
            path = included.strip('"')
            allowed = [folder + "/", *COMPILER[folder]]
            if path.startswith("compiler/") and not path[len("compiler/"):].startswith(tuple(allowed)):
                yield f"{name}: {folder} may not include {included}"


def python_imports(name, modules):
    """The modules of the client that a module of it imports, wherever in it that stands."""
    package = [] if name == "__init__" else name.split(".")
    if f"{PYTHON}/{name.replace('.', '/')}.py" in modules.values():
        package = package[:-1]
    for node in ast.walk(ast.parse((ROOT / modules[name]).read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.removeprefix("kiln").strip(".") for alias in node.names
                     if alias.name.split(".")[0] == "kiln"]
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "kiln"):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = base + (node.module or "").removeprefix("kiln").strip(".").split(".")
            base = ".".join(part for part in base if part)
            names = [f"{base}.{alias.name}".strip(".") for alias in node.names]
            names = [each if each in modules or each.split(".")[0] == "v1" else base for each in names]
        else:
            continue
        for each in names:
            yield each or "__init__", node.lineno


def python_breaches():
    """Imports of the Python client against its layers, and circles inside of one."""
    modules = {}
    for path in tracked(f"{PYTHON}/*.py"):
        name = path[len(PYTHON) + 1 : -len(".py")].replace("/", ".")
        modules[name.removesuffix(".__init__")] = path
    layer = {name: number for number, row in enumerate(PYTHON_LAYERS) for name in row}
    imported = {}
    for name, path in modules.items():
        top = name.split(".")[0]
        if top not in layer:
            yield f"{path}: no layer of tests/check_tree.py names {top}"
            continue
        imported[name] = []
        for other, line in python_imports(name, modules):
            if layer.get(other.split(".")[0], len(layer)) > layer[top]:
                yield f"{path}:{line}: {top} may not import {other}"
            elif other in modules:
                imported[name].append(other)
    for circle in circles(imported):
        yield f"{modules[circle[0]]}: imports in a circle: {' -> '.join(circle)}"


def circles(graph):
    """A way around for each circle that is met first: [a, b, a]."""
    done, way = set(), []

    def visit(node):
        if node in way:
            yield [*way[way.index(node):], node]
        elif node not in done:
            way.append(node)
            for other in graph.get(node, ()):
                yield from visit(other)
            way.pop()
            done.add(node)

    for node in graph:
        yield from visit(node)


def room_breaches():
    for part, rooms in ROOMS.items():
        for name in tracked(f"{part}/*.h", f"{part}/*.cc"):
            room = name[len(part) + 1:].split("/")[0]
            if room not in rooms:
                continue
            for included in INCLUDE.findall((ROOT / name).read_text()):
                path = included.strip('"')
                if not path.startswith(part + "/"):
                    continue
                other = path[len(part) + 1:].split("/")[0]
                if other in rooms and other != room and other not in rooms[room]:
                    yield f"{name}: {room} may not include {included}"


def size_breaches():
    for name in tracked("*.h", "*.cc", "*.py", "*.proto", "*.sh", "*.cmake"):
        if name.startswith("tests/golden/") or name.endswith("_tables.py"):
            continue
        lines = (ROOT / name).read_text().count("\n")
        if lines > LINE_LIMIT:
            yield f"{name}: {lines} lines, past the limit of {LINE_LIMIT}"


def unlisted_sources():
    """A source that no CMakeLists.txt names is silently not built; one that takes its whole folder names all of it."""
    lists = {}
    for name in tracked("*CMakeLists.txt"):
        lists[str(pathlib.PurePath(name).parent)] = (ROOT / name).read_text()
    for name in tracked("*.cc"):
        folder = pathlib.PurePath(name).parent
        parents = [str(folder)] + [str(parent) for parent in folder.parents]
        stem = pathlib.PurePath(name).name
        by_path = any(f"/{name}" in text for text in lists.values())
        globs = re.findall(r"file\(GLOB \w+ CONFIGURE_DEPENDS ([^)]+)\)", lists.get(str(folder), ""))
        if any(fnmatch.fnmatch(stem, glob) for glob in globs):
            continue
        if not by_path and not any(parent in lists and stem in lists[parent] for parent in parents):
            yield f"{name}: no CMakeLists.txt names it"


def format_breaches():
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if tool is None:
        yield "clang-format 14 was not found (deploy/install-deps.sh installs it)"
        return
    files = tracked("*.h", "*.cc")
    for start in range(0, len(files), 50):
        done = subprocess.run([tool, "--dry-run", "-Werror", *files[start:start + 50]], cwd=ROOT,
                              capture_output=True, text=True)
        for line in sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.M))):
            yield f"{line}: not as clang-format leaves it"


def machine_paths():
    for name in tracked():
        path = ROOT / name
        if path.is_dir():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if re.search(r"(^|[^A-Za-z0-9_.])/(work|root|farm)/", text) and name != "tests/check_tree.py":
            yield f"{name}: holds a path of one machine"


# Of these clang 14, which builds with the sanitizers, makes nothing with the library of GCC 12: they return a
# subrange or are views (https://github.com/llvm/llvm-project/issues/44178).
SUBRANGES = r"std::views::|ranges::(subrange|(stable_)?partition|unique|remove(_if)?|rotate|search(_n)?|find_end|equal_range)\b"


def subrange_breaches():
    for name in tracked("*.h", "*.cc"):
        for found in re.finditer(SUBRANGES, (ROOT / name).read_text()):
            yield f"{name}: clang 14 does not compile {found.group()}; use the algorithm with begin() and end()"


def house_breaches():
    done = subprocess.run([sys.executable, "docs/generate_house.py", "--check"], cwd=ROOT, capture_output=True,
                          text=True)
    yield from done.stderr.splitlines()


def main():
    checks = [include_breaches, direction_breaches, room_breaches, python_breaches, size_breaches, unlisted_sources, format_breaches,
              machine_paths, subrange_breaches, house_breaches]
    breaches = 0
    for check in checks:
        found = list(check())
        breaches += len(found)
        for line in found:
            print(line)
        print(f"{check.__name__.replace('_', ' ')}: {len(found) or 'none'}")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
