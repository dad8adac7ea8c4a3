"""Writes the pictures of the tutorial: the loops before and after each step of schedules.md, drawn by `kiln schedule show --svg`, and
the plan of training.md.

    KILN_DAEMON=build/release/bin/kilnd build/venv/bin/python docs/generate_pictures.py          # writes docs/tutorial/*.svg
    ... docs/generate_pictures.py --check                                                        # exits 1 when one is behind
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np

import kiln
from kiln import te, topi

FOLDER = pathlib.Path(__file__).resolve().parent / "tutorial"
GAP, TITLE, MARGIN = 26, 20, 8


def product():
    n = 256
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [A, B, C], C, te.create_schedule(C.op)


def split_rows(s, C):
    s[C].split(C.op.axis[0], factor=32)


def tiled(s, C):
    """Where the two loops of each axis are: (io, ii), (jo, ji), (ko, ki)."""
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    io, ii = s[C].split(i, factor=32)
    jo, ji = s[C].split(j, factor=64)
    ko, ki = s[C].split(k, factor=4)
    return io, jo, ko, ii, ki, ji


def reordered(s, C):
    loops = tiled(s, C)
    s[C].reorder(*loops)
    return loops


def hurried(s, C):
    io, _, _, _, ki, ji = reordered(s, C)
    s[C].vectorize(ji)
    s[C].unroll(ki)
    s[C].parallel(io)


def fused(s, C):
    s[C].parallel(s[C].fuse(*C.op.axis))


def cached(s, C):
    CL = s.cache_write(C, "local")
    _, jo, _, _ = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 64)
    s[CL].compute_at(s[C], jo)


def scaled():
    n = 256
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    D = te.compute((n, n), lambda i, j: A[i, j] + 1, name="D")
    E = te.compute((n, n), lambda i, j: D[i, j] * B[i, j], name="E")
    return [A, B, E], (D, E), te.create_schedule(E.op)


def in_each_row(s, stages):
    D, E = stages
    s[D].compute_at(s[E], E.op.axis[0])


def inlined(s, stages):
    s[stages[0]].compute_inline()


def total():
    n = 65536
    v, r = te.placeholder((n,), name="v"), te.reduce_axis((0, n), name="r")
    sum_ = te.compute((), lambda: te.sum(v[r], axis=r), name="total")
    return [v, sum_], sum_, te.create_schedule(sum_.op)


def in_parts(s, sum_):
    ro, _ = s[sum_].split(sum_.op.reduce_axis[0], nparts=4)
    partial = s.rfactor(sum_, ro)
    s[partial].parallel(s[partial].op.axis[0])


def nothing(s, stage):
    pass


# The picture, what is scheduled, and the steps before and after.
PICTURES = [
    ("split", product, nothing, split_rows), ("reorder", product, tiled, reordered), ("kinds", product, reordered, hurried),
    ("fuse", product, nothing, fused), ("compute_at", scaled, nothing, in_each_row), ("compute_inline", scaled, nothing, inlined),
    ("cache_write", product, nothing, cached), ("rfactor", total, nothing, in_parts),
]  # fmt: skip


def drawn(definition, steps):
    """The loops of a definition after some steps, as the command line draws them: (width, height, SVG)."""
    arguments, stage, schedule = definition()
    steps(schedule, stage)
    program = pathlib.Path(os.environ["KILN_DAEMON"]).with_name("kiln")
    text = kiln.kernel_text(schedule, arguments, name="kernel")
    svg = subprocess.run([program, "schedule", "show", "-", "--svg"], input=text, check=True, capture_output=True, text=True).stdout
    width, height = map(int, re.match(r'<svg [^>]*width="(\d+)" height="(\d+)"', svg).groups())
    return width, height, svg


def picture(definition, before, after):
    """Both, one above the other, on white: the page may be dark."""
    upper, lower = drawn(definition, before), drawn(definition, after)
    width = max(upper[0], lower[0]) + 2 * MARGIN
    below = TITLE + upper[1] + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{below + lower[1] + MARGIN}">\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
    ]
    for title, y, (_, _, svg) in (("before", TITLE, upper), ("after", below, lower)):
        parts.append(f'<text x="{MARGIN}" y="{y - 5}" font-family="sans-serif" font-size="13" fill="#555">{title}</text>\n')
        parts.append(svg.replace("<svg ", f'<svg x="{MARGIN}" y="{y}" ', 1))
    return "".join(parts) + "</svg>\n"


def plan():
    """That of training.md, on white."""
    program = kiln.Program("two_layers")
    x, labels = program.data((100, 64), name="x"), program.data((100, 10), name="labels")
    shapes = {"w0": (64, 32), "b0": (32,), "w1": (32, 10), "b1": (10,)}
    w0, b0, w1, b1 = (program.parameter(np.zeros(shape, "float32"), name) for name, shape in shapes.items())
    hidden = topi.nn.relu(topi.matmul(x, w0) + b0)
    loss = topi.nn.softmax_cross_entropy(topi.matmul(hidden, w1) + b1, labels)
    program.report(loss=loss)
    program.minimize(loss, kiln.optimizers.SGD(0.5))
    data = {"x": np.zeros((5000, 64), "float32"), "labels": np.zeros((5000, 10), "float32")}
    return program.plan(data).svg().replace(">\n", '>\n<rect width="100%" height="100%" fill="white"/>\n', 1)


def main():
    made = {f"loops_{name}.svg": picture(*steps) for name, *steps in PICTURES}
    made["plan.svg"] = plan()
    behind = []
    for name, text in made.items():
        path = FOLDER / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            behind.append(name)
    sys.exit(f"behind: {', '.join(behind)}; run docs/generate_pictures.py" if behind else 0)


if __name__ == "__main__":
    main()
