"""An entry of the catalogue: a wrong program, what is said of it, and the way out."""

import dataclasses
import inspect
import pathlib
import re
import textwrap

# Where a mistake is raised: by the call that makes it, when the kernel is lowered or built, or when it
# runs.
PLACES = ("call", "lower", "build", "run")

# Ends the line of a program that the error names.
MARK = "  # <-"
CPP_MARK = "  // <-"

CPP = pathlib.Path(__file__).resolve().parents[1] / "cpp"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One row. `program` is a function for a Python program, else the text of one in C++, of a kernel file, or a command.

    `says` is the whole sentence. In it {before} is the number of the line before the mistake, {arch} the
    host's CPU, {number} a number that depends on the host, and {list} names that are more with time."""

    name: str
    reason: str
    says: str
    fix: str
    kind: str
    at: str
    notes: tuple  # the first ones, where they are part of what the entry shows
    program: object
    file: str
    line: int | None  # of the mistake in `file`; None where the error names no line
    first: int = 1  # line of `file` at which the program begins
    files: dict = dataclasses.field(default_factory=dict)  # that a command works on, by name
    exit_code: int = 0  # of a command
    target: str | None = None  # that a kernel file is built for, where it is not the host's CPU
    call: tuple = ()  # expressions of the arrays that a kernel file is called with

    @property
    def title(self):
        words = self.name.replace("_", " ")
        return words[0].upper() + words[1:]

    @property
    def language(self):
        if callable(self.program):
            return "python"
        return "console" if self.exit_code else "cpp" if self.file.endswith(".cc") else "kiln"

    @property
    def text(self):
        """The program as a page shows it."""
        if isinstance(self.program, str):
            called = f"\n# called with {', '.join(self.call)}" if self.call else ""
            return self.program.rstrip("\n") + called
        lines = inspect.getsource(self.program).splitlines()
        return textwrap.dedent("\n".join(lines[_body(lines) :])).strip("\n")

    def sentence(self, **values):
        """What is said, with the values that only a run knows."""
        before = "" if self.line is None else self.line - 1
        return self.says.format_map({"before": before, "number": "{number}", "list": "{list}", **values})

    def is_said(self, message, **values):
        """Whether `message` is the sentence."""
        pattern = re.escape(self.sentence(**values))
        pattern = pattern.replace(re.escape("{number}"), r"\d+").replace(re.escape("{list}"), r"[\w:., /-]+")
        return re.fullmatch(pattern, message) is not None


class Section:
    """A class of mistakes. Called with the columns of a row, it decorates the row's program."""

    def __init__(self, key, title, about):
        self.key = key
        self.title = title
        self.about = about
        self.entries = []

    def __call__(self, reason, says, fix, kind="InvalidArgument", at="call", notes=()):
        def add(function):
            lines, first = inspect.getsourcelines(function)
            place = function.__code__.co_filename, _marked_line(lines, first), first + _body(lines)
            self._add(Entry(function.__name__, reason, says, fix, kind, at, notes, function, *place))
            return function

        return add

    def text(
        self, name, reason, program, says, fix, kind="InvalidArgument", at="build", notes=(), build_for=None, call=()
    ):  # fmt: skip
        """A row whose program is a kernel file."""
        program = textwrap.dedent(program).strip("\n") + "\n"
        line = _marked_line(program.splitlines(), 1)
        file = f"{name}.kiln"
        self._add(Entry(name, reason, says, fix, kind, at, notes, program, file, line, target=build_for, call=call))

    def command(
        self, name, reason, command, says, fix, exit_code, kind="InvalidArgument", at="call", files=None
    ):  # fmt: skip
        """A row whose program is a command, run in a folder with `files`."""
        self._add(Entry(name, reason, says, fix, kind, at, (), command, "", None, 1, files or {}, exit_code))

    def cpp(self, name, reason, says, fix, kind="InvalidArgument", at="call", notes=()):
        """A row whose program is WRONG(name) of a file in tests/errors/cpp."""
        path, first, lines = _cpp_program(name)
        text = textwrap.dedent("\n".join(lines))
        line = _marked_line(lines, first, CPP_MARK)
        if line is None:  # a part that the program shares with others
            all_lines = path.read_text().splitlines()
            line = next((i for i, each in enumerate(all_lines, 1) if each.endswith(f"{CPP_MARK} {name}")), None)
        self._add(Entry(name, reason, says, fix, kind, at, notes, text, str(path), line, first))

    def _add(self, entry):
        assert entry.at in PLACES, entry
        assert entry.name not in [other.name for other in self.entries], entry
        self.entries.append(entry)


def _body(lines):
    """The index of the line after `def ...:`."""
    return next(i for i, line in enumerate(lines) if line.startswith("def ")) + 1


def _cpp_program(name):
    """(path, number of the first line, lines) of the body of WRONG(name)."""
    for path in sorted(CPP.glob("*.cc")):
        text = path.read_text()
        found = re.search(rf"^WRONG\({name}\) {{(?: ([^\n]*) }}$|\n(.*?)^}})", text, re.MULTILINE | re.DOTALL)
        if found:
            body = 1 if found[1] else 2
            return path, text.count("\n", 0, found.start(body)) + 1, found[body].splitlines()
    raise LookupError(f"no program WRONG({name}) in {CPP}")


def _marked_line(lines, first, mark=MARK):
    marked = [first + i for i, line in enumerate(lines) if line.rstrip("\n").endswith(mark)]
    assert len(marked) <= 1, lines
    return marked[0] if marked else None
