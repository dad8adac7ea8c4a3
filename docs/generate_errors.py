"""Writes docs/errors.md from the catalogue of wrong programs in tests/errors/catalogue.

    build/venv/bin/python docs/generate_errors.py
    build/venv/bin/python docs/generate_errors.py --check

With --check it changes nothing and exits 1 when the page is out of date.
"""

import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/errors"))

from catalogue import SECTIONS, programs  # noqa: E402

PAGE = ROOT / "docs/errors.md"
HOST_VALUES = {"arch": "x86-64-v4", "number": "4294967296", "list": "..."}

HEAD = """# Wrong programs

What Kiln says of a wrong program, and what to do: {count} programs in {classes} classes. This page is made by
`docs/generate_errors.py` from `tests/errors/catalogue`, where each program is a test of its sentence.

An error has a **kind**, which says who must act, and a **reason**, a stable word that programs may test. The kinds are
the classes of exceptions of every client: `InvalidArgument`, `Unsupported`, `NotFound`, `HandleLost`,
`ResourceExhausted`, `Unavailable`, `DeadlineExceeded`, `Cancelled`, `Unauthenticated`, `Internal`. In Python the sentence
is `error.message`, with `error.kind`, `error.reason`, `error.notes`, `error.file` and `error.line`; in C++ they are methods
of `kiln::Error`; `kiln --json` prints them; over gRPC they are the `ErrorInfo` and `ErrorDetail` of the status.

The line that an error names ends with `# <-`. What is raised *by the call* is refused by the client at once; *when it is
lowered* or *built* by the daemon, with the line of the stage or step; *when it runs* it depends on the arguments.

Programs begin with

```python
import numpy as np

import kiln
from kiln import te
```

and some with one of

```python
{programs}
```

## Reasons

{index}
"""


WHEN = {"call": "by the call", "lower": "when it is lowered", "build": "when it is built", "run": "when it runs"}


def shown(sentence):
    """A sentence in Markdown."""
    return re.sub(r"([*<\[])", r"\\\1", sentence)


def anchor(section, entry):
    return f"{section.key}-{entry.name}".replace("_", "-")


def index():
    """Each reason word, with the entries that have it."""
    found = {}
    for section in SECTIONS:
        for entry in section.entries:
            found.setdefault(entry.reason, []).append(f"[{entry.title.lower()}](#{anchor(section, entry)})")
    rows = [f"| `{reason}` | {', '.join(links)} |" for reason, links in sorted(found.items())]
    return "\n".join(["| reason | programs |", "|---|---|", *rows])


def shared_programs():
    functions = [f for _, f in inspect.getmembers(programs, inspect.isfunction) if f.__module__ == programs.__name__]
    functions.sort(key=lambda function: function.__code__.co_firstlineno)
    return "\n\n\n".join(inspect.getsource(function).rstrip("\n") for function in functions)


def row(section, entry):
    before = "" if entry.line is None else entry.line - entry.first
    says = entry.says.format_map({**HOST_VALUES, "before": before})
    program = entry.text
    if entry.exit_code:
        files = [f"$ cat {name}\n{text}" for name, text in entry.files.items() if not name.endswith(".npy")]
        files += [f"# {name} is {text}\n" for name, text in entry.files.items() if name.endswith(".npy")]
        program = "".join(files) + f"$ {entry.program}"
    notes = "".join(f"> <br>{shown(note)}\n" for note in entry.notes)
    return (
        f'### <a id="{anchor(section, entry)}"></a>{entry.title}\n\n'
        f"> {shown(says)}\n{notes}\n"
        f"{entry.kind}, `{entry.reason}`, {WHEN[entry.at]}. Instead: {shown(entry.fix)}\n\n"
        f"```{entry.language}\n{program}\n```\n"
    )


def page():
    count = sum(len(section.entries) for section in SECTIONS)
    head = HEAD.format(count=count, classes=len(SECTIONS), programs=shared_programs(), index=index())
    parts = [head]
    for section in SECTIONS:
        parts.append(f"## {section.title}\n\n{section.about}\n")
        parts += [row(section, entry) for entry in section.entries]
    return "\n".join(parts)


def main():
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit(f"{PAGE} is out of date: python3 docs/generate_errors.py")


if __name__ == "__main__":
    main()
