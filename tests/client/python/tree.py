"""Where this tree is, and the programs that were built from it."""

import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[3]


def find_program(name):
    """A program of this tree: where the test command says, on PATH, or in a build folder."""
    named = os.environ.get("KILN_DAEMON")
    candidates = [pathlib.Path(named).parent / name] if named else []
    on_path = shutil.which(name)
    if on_path:
        candidates.append(pathlib.Path(on_path))
    candidates += sorted(ROOT.glob(f"build/*/bin/{name}"))
    return next((path for path in candidates if path.exists()), None)
