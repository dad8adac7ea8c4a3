"""The blocks of a schedule file, before anything is known of the kernel."""

import re

from .._base.error import InvalidArgument
from .write_text import TARGETS

_TOKEN = re.compile(
    r"[\s;]+|#[^\n]*|(?P<name>[A-Za-z_\u0080-\uffff][\w]*(?:\.\w+)*)|(?P<number>-?\d+)"
    r"|(?P<sign>[{}(),=])|(?P<wrong>.)"
)


class Reader:
    """The blocks of a file: for each target its steps as (name, arguments, line)."""

    def __init__(self, source, file):
        self.file = file
        self.tokens = []
        line = 1
        for match in _TOKEN.finditer(source):
            if match.lastgroup == "wrong":
                self.refuse(f"unexpected character {match.group()}", line)
            if match.lastgroup:
                self.tokens.append((match.lastgroup, match.group(), line))
            line += match.group().count("\n")
        self.tokens.append(("end", "the end of the file", line))
        self.at = 0

    def refuse(self, message, line):
        raise InvalidArgument(message, "SYNTAX", (), self.file, line)

    def take(self, kind, what, *texts):
        found, text, line = self.tokens[self.at]
        if found != kind or (texts and text not in texts):
            self.refuse(f"expected {what}, but found {text}", line)
        self.at += 1
        return text

    def blocks(self):
        blocks = {}
        while self.tokens[self.at][0] != "end":
            line = self.tokens[self.at][2]
            self.take("name", "a schedule", "schedule")
            target = self.take("name", "a target after schedule: cpu or cuda")
            if target not in TARGETS:
                self.refuse(f"unknown target {target}; known: {', '.join(TARGETS)}", line)
            if target in blocks:
                self.refuse(f"the kernel has two schedules for {target}", line)
            self.take("sign", "{ before the steps", "{")
            blocks[target] = self.steps()
        return blocks

    def steps(self):
        steps = []
        while self.tokens[self.at][1] != "}":
            line = self.tokens[self.at][2]
            name = self.take("name", "a step such as split(C.i, factor=32)")
            self.take("sign", f"( after {name}", "(")
            steps.append((name, self.arguments(), line))
        self.at += 1
        return steps

    def arguments(self):
        """(word, name or number) each; the word is that of word=number, or ""."""
        arguments = []
        while self.tokens[self.at][1] != ")":
            word = ""
            if self.tokens[self.at + 1][1] == "=":
                word = self.take("name", "a word before =")
                self.at += 1
            kind, value, line = self.tokens[self.at]
            if kind not in ("name", "number") or (word and kind == "name"):
                self.refuse(f"expected an axis or a number, but found {value}", line)
            self.at += 1
            arguments.append((word, int(value) if kind == "number" else value))
            if self.tokens[self.at][1] != ")":
                self.take("sign", ", or ) after an argument", ",")
        self.at += 1
        return arguments
