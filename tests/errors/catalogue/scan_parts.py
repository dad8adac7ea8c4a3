"""Mistakes in scans whose steps should run in parts at once."""

import kiln
from kiln import te

from .entry import Section
from .programs import chain, running_sum

wrong = Section(
    "scan_parts", "Scans in parts",
    "Pragma `scan_in_parts` is of the time of a running sum, product, minimum or maximum.",
)  # fmt: skip


def scan_of(name, reason, steps, says, fix, step="S[t - 1] + X[t]", kind="Unsupported", **columns):
    """A mistake in the steps of a scan over 1,000 numbers."""
    text = (
        "kernel k(X: float32[1000]) -> (S: float32[1000]) {\n"
        f"  scan t {{ S[0] = X[0]  S[t] = {step} }}\n  schedule cpu {{\n{steps}\n  }}\n}}\n"
    )
    wrong.text(name, reason, text, says, fix, kind=kind, **columns)


@wrong(
    "PRAGMA",
    "i is no time of a scan, whose steps alone run in parts; leave out pragma scan_in_parts of it",
    fix="a scan and its scan_axis",
    at="build",
)
def parts_of_what_is_no_scan():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].pragma(C.op.axis[0], "scan_in_parts", 64)  # <-
    kiln.build(s, [A, C])


@wrong(
    "PRAGMA",
    "pragma scan_in_parts takes the steps of a part, 2 or more, but got 1",
    fix="512",
    at="build",
)
def parts_of_one_step():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s[S].pragma(S.op.scan_axis, "scan_in_parts", 1)  # <-
    kiln.build(s, [X, S], fast=True)


@wrong(
    "PRAGMA",
    "S.idx.outer is a part of the time of S already; leave out its split or pragma scan_in_parts",
    fix="the pragma alone, which says how long a part is",
    at="build",
)
def parts_of_a_part_of_time():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    outer, _ = s[S].split(S.op.scan_axis, 64)
    s[S].pragma(outer, "scan_in_parts", 64)  # <-
    kiln.build(s, [X, S], fast=True)


scan_of(
    "parts_of_sums_of_floats",
    "SCAN_PARTS",
    "    pragma(S.idx, scan_in_parts, 64)  # <-",
    "the steps of S cannot run in parts: their sums of float32 would be rounded in another order; ask for fast "
    "(fast=True, --fast) or leave out the pragma",
    "--fast",
)
scan_of(
    "parts_of_what_is_no_sum",
    "SCAN_PARTS",
    "    pragma(S.idx, scan_in_parts, 64)  # <-",
    "the steps of S cannot run in parts: each step has to be the state before it combined with something else by +, "
    "*, min, max, &, | or ^; leave out the pragma",
    "the scan as it is",
    step="S[t - 1] * 0.5 + X[t]",
)
scan_of(
    "parts_of_an_unrolled_scan",
    "SCAN_PARTS",
    "    unroll(S.idx)\n    pragma(S.idx, scan_in_parts, 64)  # <-",
    "the steps of S cannot run in parts: other steps say how S.idx runs; leave them out",
    "the pragma alone",
    step="max(S[t - 1], X[t])",
)


@wrong(
    "SCAN_PARTS",
    "the steps of S cannot run in parts: strict keeps the order of float32; leave out strict or the pragma",
    fix="fast=True",
    kind="Unsupported",
    at="build",
)
def parts_in_strict_order():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s[S].pragma(S.op.scan_axis, "scan_in_parts", 64)  # <-
    kiln.build(s, [X, S], strict=True)


@wrong(
    "SCAN_PARTS",
    "the steps of S cannot run in parts: twice is computed in each of them; compute_inline it, or leave out the pragma",
    fix="s[twice].compute_inline()",
    kind="Unsupported",
    at="build",
)
def parts_of_a_scan_with_a_stage_in_each_step():
    X, state = te.placeholder((1000, 8), name="X"), te.placeholder((1000, 8), name="state")
    twice = te.compute((1000, 8), lambda t, i: X[t, i] * 2, name="twice")
    init = te.compute((1, 8), lambda t, i: X[0, i], name="init")
    update = te.compute((1000, 8), lambda t, i: state[t - 1, i] + twice[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    s = te.create_schedule(S.op)
    s[twice].compute_at(s[update], update.op.axis[1])
    s[S].pragma(S.op.scan_axis, "scan_in_parts", 64)  # <-
    kiln.build(s, [X, S], fast=True)


def columns_of(threads, others):
    """A running sum of which only the update's columns are bound, or all axes of threads."""
    X = te.placeholder((1000, 2, 2, 2), dtype="int32", name="X")
    state = te.placeholder((1000, 2, 2, 2), dtype="int32", name="state")
    init = te.compute((1, 2, 2, 2), lambda t, i, j, k: X[0, i, j, k], name="init")
    update = te.compute((1000, 2, 2, 2), lambda t, i, j, k: state[t - 1, i, j, k] + X[t, i, j, k], name="update")
    S = te.scan(init, update, state, name="S")
    s = te.create_schedule(S.op)
    for tensor, names in ((update, threads), (init, others)):
        for axis, name in zip(tensor.op.axis[1:], names, strict=False):
            s[tensor].bind(axis, te.thread_axis(name))
    return X, S, s


@wrong(
    "SCAN_PARTS",
    "the steps of S cannot run in parts: threadIdx.x starts anew in each of them; bind the axes of its initial step and "
    "of its update alike",
    fix="the same bind of the axis of init",
    kind="Unsupported",
    at="build",
)
def parts_of_columns_that_are_bound_once():
    X, S, s = columns_of(["threadIdx.x"], [])
    s[S].pragma(S.op.scan_axis, "scan_in_parts", 64)  # <-
    kiln.compile(s, [X, S], target="cuda", arch="sm_90")


@wrong(
    "SCAN_PARTS",
    "the steps of S cannot run in parts: all of threadIdx.x, .y and .z are bound; leave one for the parts",
    fix="fuse axes before bind",
    kind="Unsupported",
    at="build",
)
def parts_that_no_thread_is_left_for():
    threads = ["threadIdx.x", "threadIdx.y", "threadIdx.z"]
    X, S, s = columns_of(threads, threads)
    s[S].pragma(S.op.scan_axis, "scan_in_parts", 64)  # <-
    kiln.compile(s, [X, S], target="cuda", arch="sm_90")
