"""Mistakes with outputs that are computed inside of what reads them."""

import kiln
from kiln import te

from .entry import Section
from .programs import chain

wrong = Section(
    "inner_outputs", "Outputs inside of what reads them",
    "An output may be computed at a loop of its reader where the loops come to all of it, each element once at a time.",
)  # fmt: skip


@wrong(
    "COMPUTE_AT",
    "C is an output and cannot be computed inside another stage",
    fix="compute what it reads inside of its loops",
    at="build",
)
def compute_at_of_an_output_that_nothing_reads():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].compute_at(s[B], B.op.axis[0])  # <-
    kiln.build(s, [A, B, C])


@wrong(
    "COMPUTE_AT",
    "cannot compute B at i of C: B is an output, and along dimension 0 C reads elements 0 to 15 of its 32; leave B at the "
    "root",
    fix="leave B out of the arguments, or at the root",
    at="build",
)
def output_of_which_a_part_is_left_out():
    A = te.placeholder((32,), name="A")
    B = te.compute((32,), lambda i: A[i] + 1, name="B")
    C = te.compute((16,), lambda i: B[i] * 2, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])  # <-
    kiln.build(s, [A, B, C])


@wrong(
    "COMPUTE_AT",
    "cannot compute B at i of C: B is an output, and C is computed in part or inside another stage itself; leave B at the "
    "root",
    fix="B at D, too",
    at="build",
)
def output_inside_of_what_is_inside():
    A, B, C = chain()
    D = te.compute(C.shape, lambda i: C[i] + 1, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[B].compute_at(s[C], C.op.axis[0])  # <-
    kiln.build(s, [A, B, D])


@wrong(
    "COMPUTE_AT",
    "cannot compute B at i of D: B is an output, and D itself does not read it; leave B at the root",
    fix="B at the root",
    at="build",
)
def output_inside_of_what_does_not_read_it():
    A, B, C = chain()
    D = te.compute(C.shape, lambda i: C[i] + 1, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[B].compute_at(s[D], D.op.axis[0])  # <-
    kiln.build(s, [A, B, D])


@wrong(
    "COMPUTE_AT",
    "cannot compute B at i of C: B is an output, and how far k runs is read from a tensor; leave B at the root",
    fix="B at the root",
    at="build",
)
def output_as_far_as_a_tensor_says():
    A, P = te.placeholder((32,), name="A"), te.placeholder((8,), "int32", name="P")
    B = te.compute((32,), lambda i: A[i] + 1, name="B")

    def row(i):
        k = te.reduce_axis((0, P[i]), name="k")
        return te.sum(B[k], axis=k)

    C = te.compute((8,), row, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])  # <-
    kiln.build(s, [A, P, B, C])


@wrong(
    "COMPUTE_AT",
    "cannot compute B at i.outer of C: B is an output, and its elements would be written by all threads of i.inner; leave B "
    "at the root",
    fix="s[B].compute_at(s[C], inner)",
    at="build",
)
def output_that_all_threads_would_write():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=32)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], outer)  # <-
    kiln.compile(s, [A, B, C], "cuda", arch="sm_80")
