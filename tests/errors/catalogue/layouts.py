"""Mistakes in the layout of a copy: a cache_read in the order of its reader's loops."""

import kiln
from kiln import te

from .entry import Section

wrong = Section(
    "layouts", "Layouts of copies",
    "A cache_read whose copy has loops of its reader as dimensions.",
)  # fmt: skip


@wrong(
    "CACHE_READ",
    "the layout of a copy of A is the order of one reader's loops, but it has 2 readers",
    fix="a cache_read for each reader",
)
def layout_for_two_readers():
    A = te.placeholder((16, 8), name="A")
    B = te.compute((16, 8), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((16, 8), lambda i, j: A[i, j] * 2, name="C")
    s = te.create_schedule([B.op, C.op])
    s.cache_read(A, "global", [B, C], layout=[B.op.axis[1], B.op.axis[0]])  # <-


@wrong(
    "CACHE_READ",
    "the layout of A.global leaves out i, on which its elements depend; name i too",
    fix="layout=[C.op.axis[0], C.op.axis[1]]",
    at="lower",
)
def layout_without_an_axis():
    A = te.placeholder((16, 8), name="A")
    C = te.compute((16, 8), lambda i, j: A[i, j] * 2, name="C")
    s = te.create_schedule(C.op)
    s.cache_read(A, "global", C, layout=[C.op.axis[1]])  # <-
    kiln.lower(s, [A, C])


@wrong(
    "CACHE_READ",
    "B reads A at 2 places; a copy in the order of loops has one element for each iteration",
    kind="Unsupported",
    fix="a cache_read without a layout, or a stage for each of the places",
    at="lower",
)
def layout_of_two_places():
    A = te.placeholder((17,), name="A")
    B = te.compute((16,), lambda i: A[i] + A[i + 1], name="B")
    s = te.create_schedule(B.op)
    s.cache_read(A, "global", B, layout=B.op.axis)  # <-
    kiln.lower(s, [A, B])


@wrong(
    "CACHE_READ",
    "B reads A only where a condition holds; a copy in the order of loops reads it in all iterations",
    kind="Unsupported",
    fix="a cache_read without a layout",
    at="lower",
)
def layout_under_a_condition():
    A = te.placeholder((16,), name="A")
    B = te.compute((18,), lambda i: te.if_then_else(te.all(i >= 1, i < 17), A[i - 1], 0.0), name="B")
    s = te.create_schedule(B.op)
    s.cache_read(A, "global", B, layout=B.op.axis)  # <-
    kiln.lower(s, [A, B])


@wrong(
    "CACHE_READ",
    "k cannot be a dimension of A.global: its extent depends on other loops",
    kind="Unsupported",
    fix="a cache_read without a layout",
)
def layout_of_a_triangle():
    A = te.placeholder((16, 16), name="A")
    C = te.compute((16,), lambda r: te.sum(A[r, (k := te.reduce_axis((0, r + 1), name="k"))], axis=k), name="C")
    s = te.create_schedule(C.op)
    s.cache_read(A, "global", C, layout=[C.op.axis[0], C.op.reduce_axis[0]])  # <-


@wrong(
    "CACHE_READ",
    "C reads B where its reduction starts, before the loops that a layout is the order of",
    kind="Unsupported",
    fix="a cache_read without a layout",
    at="lower",
)
def layout_of_where_a_sum_starts():
    A = te.placeholder((16,), name="A")
    B = te.placeholder((8,), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((8,), lambda i: te.sum(A[k], axis=k, init=B[i]), name="C")
    s = te.create_schedule(C.op)
    s.cache_read(B, "global", C, layout=C.op.axis)  # <-
    kiln.lower(s, [A, B, C])
