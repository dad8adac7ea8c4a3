"""Keeps what tests of a first use typed and what came back, for docs/installing.md: KILN_TRANSCRIPT names the file."""

import os

from deployed import ROOT

CUMSUM = ROOT / "examples" / "cumsum.kiln"
X = ROOT / "examples" / "data" / "x_10x1024.npy"


def note(title, command, printed):
    path = os.environ.get("KILN_TRANSCRIPT")
    if path:
        with open(path, "a") as file:
            file.write(f"# {title}\n$ {command}\n{printed}")
