"""Runs the Python of one page of the documentation, as a reader would who types it in from top to bottom.

    python tests/docs/run_page.py docs/tutorial/scans.md
    KILN_UPDATE_GOLDEN=1 python tests/docs/run_page.py docs/tutorial/scans.md      writes what is printed into the page

Blocks of ```python run in one namespace, with the lines of the page in tracebacks. Comments of HTML, which readers do
not see, say what else there is:

    <!-- setup          what the page takes for granted: Python, run where it stands
    a = 1
    -->
    <!-- printed -->    the block that follows must be what the block before has printed; a line `...` stands for any
    <!-- raises Unsupported -->   the block that follows raises this error of kiln, whose message counts as printed
    <!-- not run: it needs a second machine -->   the block that follows is not run
"""

import contextlib
import io
import os
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
COMMENT = re.compile(r"<!-- (setup|printed|raises (\w+)|not run: [^\n]*?)(?: -->|\n(.*?)-->)", re.S)


class Piece(NamedTuple):
    kind: str  # "setup", "printed", "raises", "not run", or the language of a block
    text: str
    line: int
    begin: int  # of the text, in the page



def pieces_of(text):
    """Comments and blocks, in the order of the page."""
    found = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        found.append((match.start(), Piece(match[1], match[2], line, match.start(2))))
    blocks = [match.span() for match in FENCE.finditer(text)]
    for match in COMMENT.finditer(text):
        if any(begin <= match.start() < end for begin, end in blocks):
            continue
        kind = match[1].split()[0] if match[1].startswith("raises") else match[1].split(":")[0]
        line = text.count("\n", 0, match.start()) + 2
        found.append((match.start(), Piece(kind, match[2] or match[3] or "", line, 0)))
    return [piece for _, piece in sorted(found)]


def is_printed(expected, printed):
    """Whether the lines agree; `...` in the page stands for any lines, and in a line for any of its text."""
    pattern = re.escape(expected.strip()).replace(r"\.\.\.", ".*?")
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


class Page:
    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.name = str(self.path.relative_to(ROOT))  # as errors print it, wherever the tree lies
        self.text = self.path.read_text()
        self.changes = []  # pieces of what the page says was printed, and what was
        self.names = {"__name__": "__main__"}
        self.printed = ""
        self.blocks = 0

    def run(self):
        before = None
        for piece in pieces_of(self.text):
            if piece.kind == "setup":
                self.execute(piece)
            elif piece.kind in ("printed", "raises", "not run"):
                before = piece
                continue
            elif before is not None and before.kind == "printed":
                self.compare(piece)
            elif piece.kind == "python" and (before is None or before.kind == "raises"):
                self.blocks += 1
                self.execute(piece, raises=before.text if before else None)
            before = None

    def compare(self, piece):
        if is_printed(piece.text, self.printed):
            return
        if "KILN_UPDATE_GOLDEN" not in os.environ:
            sys.exit(f"{self.name}:{piece.line}: the page says\n{piece.text}but this was printed:\n{self.printed}")
        self.changes.append((piece, self.printed.rstrip("\n") + "\n"))

    def update(self):
        for piece, printed in reversed(self.changes):
            self.text = self.text[: piece.begin] + printed + self.text[piece.begin + len(piece.text) :]
        if self.changes:
            self.path.write_text(self.text)

    def execute(self, piece, raises=None):
        code = compile("\n" * (piece.line - 1) + piece.text, self.name, "exec")
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                exec(code, self.names)
        except Exception as error:
            if type(error).__name__ != raises:
                raise
            output.write(str(error))
        else:
            if raises:
                sys.exit(f"{self.name}:{piece.line}: the page says that this raises {raises}, but it does not")
        self.printed = output.getvalue()


if __name__ == "__main__":
    page = Page(sys.argv[1])
    page.run()
    page.update()
    print(f"{page.blocks} blocks")
