"""Writes docs/wire.md, the reference of the protocol, from the .proto files and their comments.

    python3 docs/generate_wire.py > docs/wire.md
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROTOS = ROOT / "proto/kiln/v1"

HEADER = """\
# The wire

What travels between clients and the daemon: gRPC over a unix socket or TCP, and between processes of one host also the
frames of [local.proto](service.md#clients-on-the-same-host). Clients in other languages are generated from `proto/kiln/v1`.
Messages are kept readable: fields are added, never given another meaning, and clients and daemons refuse each other when
their minor versions are more than one apart.

An error is a status of gRPC with a `google.rpc.ErrorInfo` (a stable reason), a `kiln.v1.ErrorDetail`, and a
`google.rpc.RetryInfo` where waiting helps; the [errors](errors.md) by reason. A call may carry the metadata `authorization`
(`Bearer TOKEN`), `kiln-priority` (`low`, `normal`, `high`) and a W3C `traceparent`.

This page is printed by `docs/generate_wire.py` from the comments of the files.
"""

_ITEM = re.compile(r"^(message|enum|service) (\w+) \{")
_ONE_LINE = re.compile(r"^((?:message|enum) \w+) \{ (.+) \}$", re.M)
_RPC = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\)")
_FIELD = re.compile(r"^(optional |repeated )?([\w.]+|map<[^>]+>) (\w+) = (\d+)(?: \[[^\]]*\])?;")
_VALUE = re.compile(r"^(\w+) = (\d+);")


class Item:
    """A message, an enum or a service, with the rows of its table."""

    def __init__(self, kind, name, comment):
        self.kind, self.name, self.comment, self.rows = kind, name, comment, []


def items_of(text):
    """The items of a file in order; those inside of messages follow as Outer.Inner."""
    found, stack, comment = [], [], []
    for line in _ONE_LINE.sub(r"\1 {\n  \2\n}", text).splitlines():
        code, _, trailing = line.strip().partition("//")
        code, trailing = code.strip(), trailing.strip()
        if not code:
            if trailing:
                _continue(stack, comment, trailing, line)
            else:
                comment.clear()
            continue
        opened = _ITEM.match(code)
        if opened or code.startswith("oneof"):
            name = opened[2] if opened else ""
            outer = [each.name for each in stack if each.name]
            item = Item(opened[1] if opened else "oneof", ".".join([*outer[-1:], name]) if opened else "", " ".join(comment))
            comment.clear()
            if opened:
                found.append(item)
            if "}" not in code:
                stack.append(item)
            continue
        if code.startswith("}"):
            stack.pop()
        elif stack:
            _add_row(next(each for each in reversed(stack) if each.kind != "oneof"), code, " ".join([*comment, trailing]).strip())
        comment.clear()
    return found


def _continue(stack, comment, text, line):
    """A line of comment alone: of what follows, or, indented past the fields, of the row before."""
    rows = stack[-1].rows if stack and stack[-1].kind != "oneof" else []
    if rows and len(line) - len(line.lstrip()) > 2 * len(stack) + 4:
        rows[-1][-1] += f" {text}"
    else:
        comment.append(text)


def _add_row(item, code, comment):
    rpc, field, value = _RPC.search(code), _FIELD.match(code), _VALUE.match(code)
    if rpc:
        name, streams_in, given, streams_out, made = rpc.groups()
        item.rows.append([f"`{name}`", f"{streams_in or ''}`{given}`", f"{streams_out or ''}`{made}`", comment])
    elif item.kind == "enum" and value:
        item.rows.append([f"`{value[1]}`", value[2], comment])
    elif field:
        label, type_name, name, number = field.groups()
        item.rows.append([number, f"`{name}`", f"{label or ''}`{type_name}`", comment])


_COLUMNS = {
    "service": "| call | takes | gives | |\n|---|---|---|---|\n",
    "message": "| | field | type | |\n|---|---|---|---|\n",
    "enum": "| value | number | |\n|---|---|---|\n",
}


def page():
    lines = [HEADER]
    for path in sorted(PROTOS.glob("*.proto")):
        text = path.read_text()
        about = " ".join(line.lstrip("/ ") for line in text[: text.index("syntax")].splitlines() if line.startswith("//"))
        lines.append(f"\n## {path.name}\n" + (f"\n{about}\n" if about else ""))
        for item in items_of(text):
            lines.append(f"\n### {item.name}\n\n" + (f"{_shown(item.comment)}\n\n" if item.comment else ""))
            if item.rows:
                lines.append(_COLUMNS[item.kind])
                lines += [f"| {' | '.join([*row[:-1], _shown(row[-1])])} |\n" for row in item.rows]
            else:
                lines.append("No fields.\n")
    return "".join(lines)


def _shown(comment):
    return re.sub(r"([<>*_\[\]|])", r"\\\1", comment)


if __name__ == "__main__":
    sys.stdout.write(page())
