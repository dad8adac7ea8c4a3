"""Writes docs/api.md: the classes and functions of the Python package, from their signatures and docstrings.

    build/venv/bin/python docs/generate_api.py > docs/api.md
"""

import inspect
import re
import sys

import kiln
from kiln import nd, optimizers, te
from kiln._schedule.schedule import Schedule, Stage
from kiln._service.array import NDArray
from kiln._service.connection import Connection
from kiln._service.function import Function

HEADER = """\
# The Python package, name by name

What `help()` says, in one place. [Python](python.md) shows how the parts work together; operators of single numbers are in
[the language](language.md), those of whole tensors in [topi](topi.md) and [operators](operators.md).

This page is printed by `docs/generate_api.py`.
"""

# Title, and what stands under it: modules with their names, or classes.
SECTIONS = [
    ("Definitions", te, "placeholder compute scan reduce_axis thread_axis var size_var scatter_add comm_reducer gradient decl_tensor_intrin tag_scope"),
    ("Schedules", te, "create_schedule AutoInlineInjective"),
    (None, Schedule, ""),
    (None, Stage, ""),
    ("Building", kiln, "build compile lower predict tune load_module load_artifact load_kernels parse_kernels kernel_text load_schedule parse_schedule save_json load_json"),
    (None, Function, ""),
    ("Arrays and devices", nd, "array empty zeros ones full from_dlpack"),
    (None, NDArray, ""),
    (None, kiln.Device, ""),
    ("Programs", kiln, "function load_programs parse_programs"),
    (None, kiln.Program, ""),
    (None, kiln.ProgramPlan, ""),
    (None, optimizers.SGD, ""),
    (None, optimizers.Adam, ""),
    ("Services", kiln, "connect describe job jobs"),
    (None, Connection, ""),
    (None, kiln.Job, ""),
    (None, kiln.Fleet, ""),
    (None, kiln.Predictions, ""),
    (None, kiln.PredictedSchedule, ""),
    (None, kiln.TuneResult, ""),
]


def text_of(thing):
    """A docstring as Markdown, whose lines are joined to paragraphs."""
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    return "\n\n".join(part if part.startswith(("    ", "|", "- ")) else " ".join(part.split()) for part in paragraphs)


def escaped(text):
    """Outside of code, what Markdown would take for a mark of its own."""
    parts = text.split("`")
    for place in range(0, len(parts), 2):
        for mark in "*_<>[]":
            parts[place] = parts[place].replace(mark, "\\" + mark)
    return "`".join(parts)


def signature_of(thing):
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [each for name, each in signature.parameters.items() if name != "self"]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def entry(name, thing):
    return item(name + signature_of(thing), thing)


def item(code, thing):
    text = escaped(text_of(thing)).replace("\n", "\n    ")
    return f"- `{code}`" + (f": {text}\n" if text else "\n")


def members(kind):
    """What a class has for its users: documented, and its own or its parents' in the package."""
    for name in sorted(dir(kind)):
        value = inspect.getattr_static(kind, name)
        if name.startswith("_") or not inspect.getdoc(value):
            continue
        if isinstance(value, property):
            yield item(f".{name}", value)
        elif callable(getattr(kind, name)) and (getattr(kind, name).__module__ or "").startswith("kiln"):
            yield entry(f".{name}", getattr(kind, name))


def page():
    lines = [HEADER]
    for title, where, names in SECTIONS:
        if title is not None:
            lines.append(f"\n## {title}\n")
        if inspect.isclass(where):
            lines += [f"\n### {where.__name__}\n", escaped(text_of(where)) + "\n", *members(where)]
        prefix = "" if inspect.isclass(where) else where.__name__.removeprefix("kiln.") + "."
        lines += [entry(prefix + name, getattr(where, name)) for name in names.split()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
