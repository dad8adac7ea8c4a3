"""The main loop of a kernel for a GPU, read from its cubin by NVIDIA's disassembler. Needs no GPU."""

import collections
import os
import pathlib
import re
import subprocess
import sysconfig
import time

import pytest

_MATRIX = {"HMMA", "IMMA", "QMMA", "HGMMA", "QGMMA", "IGMMA", "UTCHMMA", "UTCQMMA", "UTCIMMA"}
_SCALAR = {"FFMA", "DFMA"}  # HFMA2 moves constants, too
_ROW = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.x]*)(.*?);")
_LABEL = re.compile(r"^(\.L_x?\w+):")
_TARGET = re.compile(r"`\((\.L_x?\w+)\)")
_BYTES = {".U8": 1, ".S8": 1, ".U16": 2, ".S16": 2, ".64": 8, ".128": 16}


class Loop:
    """Instructions between two visits of the loop with the densest arithmetic."""

    def __init__(self, opcodes):
        self.opcodes = opcodes
        self.kinds = collections.Counter(opcode.split(".")[0] for opcode in opcodes)
        matrices = sum(self.kinds[kind] for kind in _MATRIX)
        self.has_matrices = matrices > 0
        self.arithmetic = matrices or sum(self.kinds[kind] for kind in _SCALAR)

    @property
    def share(self):
        return self.arithmetic / max(1, len(self.opcodes))

    def widths(self, kind):
        """Bytes that each instruction of the kind moves for a thread, once each."""
        moves = [opcode for opcode in self.opcodes if opcode.split(".")[0] == kind]
        return {next((size for word, size in _BYTES.items() if word in move), 4) for move in moves}


def _disassembler():
    given = os.environ.get("KILN_NVDISASM")
    folder = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia"
    found = [pathlib.Path(given)] if given else sorted(folder.glob("*/bin/nvdisasm"))
    if not found:
        pytest.skip("no nvdisasm here: pip install nvidia-cuda-nvdisasm, or KILN_NVDISASM=FILE")
    return found[-1]


def _rows(text):
    """Opcode, operands and the labels in front, of each instruction."""
    rows, labels = [], []
    for line in text.splitlines():
        label = _LABEL.match(line.strip())
        if label:
            labels.append(label[1])
        row = _ROW.match(line)
        if row:
            rows.append((row[1], row[2], labels))
            labels = []
    return rows


def _loops(rows):
    at = {label: i for i, row in enumerate(rows) for label in row[2]}
    for i, (opcode, operands, _) in enumerate(rows):
        target = _TARGET.search(operands)
        if opcode.startswith("BRA") and target and at.get(target[1], i + 1) <= i:
            yield at[target[1]], Loop([row[0] for row in rows[at[target[1]] : i + 1]])


def _kept(daemon):
    """The artifact of that kernel, which is written after the client has its answer."""
    limit = time.monotonic() + 30
    while not (found := list(daemon.cache.glob("artifacts/**/*.kart"))):
        assert time.monotonic() < limit, "the daemon keeps no artifact"
        time.sleep(0.01)
    [artifact] = found
    return artifact


def _section(artifact, file, entry):
    """The instructions of a kernel. An artifact has further cubins, of code made of tiles, in which there is more that begins as one."""
    for begin in re.finditer(b"\x7fELF", artifact):
        file.write_bytes(artifact[begin.start() :])
        done = subprocess.run([_disassembler(), "-c", file], capture_output=True, text=True)
        # A kernel for arguments of any stride stands beside it.
        found = re.split(rf"\.section\s+\.text\.{entry}", done.stdout)
        if done.returncode == 0 and len(found) > 1:
            return found[1]
    raise AssertionError(f"the artifact has no kernel {entry}")


def _rows_of(daemon, entry):
    """Those of the one kernel that a daemon has compiled for cuda."""
    artifact = _kept(daemon)
    own = _section(artifact.read_bytes(), daemon.folder / "kernel.cubin", entry)
    return _rows(re.split(r"\.section\s+\.text\.", own)[0])


def code_of(cubin, file, entry):
    """All instructions of an entry of a cubin, and its longest loop, if it has one."""
    return _code_of(_rows(re.split(r"\.section\s+\.text\.", _section(cubin, file, entry))[0]))


def code_of_daemon(daemon, entry="kiln_compact_0"):
    """The same of the one kernel that a daemon has compiled for cuda."""
    return _code_of(_rows_of(daemon, entry))


def _code_of(rows):
    loops = [Loop([opcode for opcode in loop.opcodes if opcode != "NOP"]) for _, loop in _loops(rows)]
    longest = max(loops, key=lambda loop: len(loop.opcodes), default=None)
    return Loop([row[0] for row in rows if row[0] != "NOP"]), longest


def whole_code(daemon, entry="kiln_compact_0"):
    """All instructions, of a kernel whose loops are written out."""
    return Loop([row[0] for row in _rows_of(daemon, entry) if row[0] != "NOP"])


def main_loop(daemon, entry="kiln_compact_0"):
    """Of the loops with arithmetic that have no other in them, the one with the most."""
    inner = []
    for start, loop in _loops(_rows_of(daemon, entry)):  # in the order of their ends
        # What comes back from behind the end of the code waits there.
        if loop.arithmetic > 0 and not loop.kinds["EXIT"] and all(other < start for other, _ in inner):
            inner.append((start, loop))
    return max((loop for _, loop in inner), key=lambda loop: (loop.has_matrices, loop.arithmetic, loop.share))


def compare(told, loop):
    """What the report reads in the same machine code."""
    assert told["is_loop"] and told["instructions"] == len(loop.opcodes)
    assert told["arithmetic"] == loop.arithmetic and told["share"] == pytest.approx(loop.share)
    assert told["barriers"] == loop.kinds["BAR"]
    assert told["spills"] == loop.kinds["LDL"] + loop.kinds["STL"]
    for kind in ("LDG", "STG", "LDS", "STS", "LDGSTS"):
        accesses = told["accesses"].get(kind, {})
        assert sum(accesses.values()) == loop.kinds[kind], kind
        assert {int(width) for width in accesses} == loop.widths(kind), kind
