"""Mistakes in steps on loops: split, tile, fuse, reorder, and how loops run."""

import kiln
from kiln import te

from .entry import Section
from .programs import add_one, chain, matmul, running_sum

wrong = Section(
    "steps_loops", "Steps on loops",
    "What needs no proof is refused at the step; the rest when the kernel is lowered or built, with the step's line.",
)  # fmt: skip


@wrong(
    "SPLIT_FACTOR",
    "split(i, factor=0): the factor must be at least 1",
    fix="factor=4",
)
def split_by_zero():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=0)  # <-


@wrong(
    "SPLIT_FACTOR",
    "split(i, nparts=-4): the parts must be at least 1",
    fix="nparts=4",
)
def split_into_a_negative_number_of_parts():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], nparts=-4)  # <-


@wrong(
    "SPLIT_FACTOR",
    "split(i, factor=2.5): the factor must be an integer constant",
    fix="factor=2",
)
def split_by_a_fraction():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=2.5)  # <-


@wrong(
    "SPLIT_FACTOR",
    "split(i, factor=f): the factor must be an integer constant",
    fix="a number; nparts= where the number of outer iterations is known",
)
def split_by_a_size():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=te.var("f"))  # <-


@wrong(
    "SPLIT_ARGUMENTS",
    "split(i): give factor= or nparts=, not neither",
    fix="factor=4, or nparts=4",
)
def split_without_a_factor():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0])  # <-


@wrong(
    "SPLIT_ARGUMENTS",
    "split(i): give factor= or nparts=, not both",
    fix="factor=4, or nparts=4",
)
def split_by_factor_and_parts():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4, nparts=2)  # <-


@wrong(
    "CONSUMED_AXIS",
    "axis i was split into i.outer, i.inner at line {before}",
    fix="the step on i.outer or i.inner",
)
def axis_split_twice():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4)
    s[C].split(C.op.axis[0], factor=8)  # <-


@wrong(
    "CONSUMED_AXIS",
    "axis i was fused into i.j.fused at line {before}",
    fix="s[C].parallel(i.j.fused)",
)
def step_on_a_fused_axis():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].fuse(*C.op.axis)
    s[C].parallel(C.op.axis[0])  # <-


@wrong(
    "CONSUMED_AXIS",
    "axis j was tiled into i.outer, j.outer, i.inner, j.inner at line {before}",
    fix="the step on one of the axes that tile returns",
)
def step_on_a_tiled_axis():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].tile(*C.op.axis, 8, 8)
    s[C].vectorize(C.op.axis[1])  # <-


@wrong(
    "FOREIGN_AXIS",
    "axis i belongs to stage B, not to C",
    fix="an axis of C: C.op.axis[0]",
)
def axis_of_another_stage():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].vectorize(B.op.axis[0])  # <-


@wrong(
    "FOREIGN_AXIS",
    "axis i belongs to another C, which is not part of this schedule; C has i",
    fix="the axes of this program's C",
)
def axis_of_another_program():
    A, B, C = chain()
    other = chain()[2]
    s = te.create_schedule(C.op)
    s[C].parallel(other.op.axis[0])  # <-


@wrong(
    "FOREIGN_STAGE",
    "this C is not part of this schedule, which has another tensor C",
    fix="te.create_schedule of an operation that needs the tensor",
)
def tensor_of_another_program():
    A, B, C = chain()
    other = chain()[2]
    s = te.create_schedule(C.op)
    s[other].parallel(other.op.axis[0])  # <-


@wrong(
    "STEP_AXIS",
    "vectorize takes axes of C, which has i, but got 'i' of type str",
    fix="C.op.axis[0], the axis itself",
)
def name_in_place_of_an_axis():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].vectorize("i")  # <-


@wrong(
    "STEP_AXIS",
    "split takes axes of C, which has i, but got 0 of type int",
    fix="C.op.axis[0]",
)
def number_in_place_of_an_axis():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(0, factor=4)  # <-


@wrong(
    "STEP_AXIS",
    "parallel takes axes of C, which has i, but got [i] of type list",
    fix="s[C].parallel(C.op.axis[0])",
)
def list_in_place_of_an_axis():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis)  # <-


@wrong(
    "AXIS_TWICE",
    "reorder names axis i twice",
    fix="each axis once",
)
def reorder_that_names_an_axis_twice():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].reorder(C.op.axis[0], C.op.axis[0])  # <-


@wrong(
    "NOT_NEIGHBOURS",
    "fuse(i, j.inner): i and j.inner are not neighbours in the loop order i, j.outer, j.inner, k",
    fix="s[C].reorder(i, k, j) before, or fuse neighbours",
    at="build",
)
def fuse_of_axes_that_are_apart():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    i, j, k = s[C].leaf_iter_vars
    outer, inner = s[C].split(j, factor=8)
    s[C].fuse(i, inner)  # <-
    kiln.build(s, [A, B, C])


@wrong(
    "FUSE_KINDS",
    "fuse(j, k): one of j and k is a reduction axis and the other is not",
    fix="fuse data axes with data axes",
    at="build",
)
def fuse_of_a_data_axis_and_a_reduction_axis():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    i, j, k = s[C].leaf_iter_vars
    s[C].fuse(j, k)  # <-
    kiln.build(s, [A, B, C])


@wrong(
    "VECTORIZE_EXTENT",
    "cannot vectorize i: its extent n is not a constant; split it first",
    fix="split(i, factor=8), then vectorize(i.inner)",
    kind="Unsupported", at="build",
)
def vectorize_of_a_loop_of_unknown_extent():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].vectorize(C.op.axis[0])  # <-
    kiln.build(s, [A, C])


@wrong(
    "UNROLL_EXTENT",
    "cannot unroll i: its extent n is not a constant; split it first",
    fix="split(i, factor=8), then unroll(i.inner)",
    kind="Unsupported", at="build",
)
def unroll_of_a_loop_of_unknown_extent():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].unroll(C.op.axis[0])  # <-
    kiln.build(s, [A, C])


@wrong(
    "UNROLL_LIMIT",
    "unrolling i makes 1048576 copies of its body; the limit is 4096; split it and unroll the inner "
    "loop",
    fix="split first, and unroll the inner loop",
    kind="ResourceExhausted", at="build",
)
def unroll_of_a_million_iterations():
    A = te.placeholder((1 << 20,), name="A")
    B = te.compute((1 << 20,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].unroll(B.op.axis[0])  # <-
    kiln.build(s, [A, B])


@wrong(
    "REDUCTION_AXIS",
    "cannot run k in parallel: it is a reduction axis, and all its iterations change one element of C; "
    "parallel i or j, or vectorize k, or rfactor C over it and parallel that axis of the partial results",
    fix="rfactor(C, k) makes partial sums that can run in parallel",
    kind="Unsupported", at="build",
)
def parallel_reduction():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.reduce_axis[0])  # <-
    kiln.build(s, [A, B, C])


@wrong(
    "AXIS_ANNOTATED",
    "axis i.inner was made parallel at line {before} already",
    fix="one of the two",
    at="build",
)
def loop_that_is_parallel_and_vectorized():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(inner)
    s[C].vectorize(inner)  # <-
    kiln.build(s, [A, C])


@wrong(
    "AXIS_ANNOTATED",
    "axis i was vectorized at line {before}; split it before that",
    fix="split first, then vectorize the inner loop",
    at="build",
)
def split_of_a_vectorized_loop():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    s[B].split(B.op.axis[0], factor=8)  # <-
    kiln.build(s, [A, B])


@wrong(
    "SCAN_TIME",
    "the time axis of a scan is sequential",
    fix="parallel on an axis of the update: each column is computed on its own",
    at="build",
)
def parallel_over_time():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s[S].parallel(S.op.scan_axis)  # <-
    kiln.build(s, [X, S])


@wrong(
    "SCAN_TIME",
    "the time axis of a scan is sequential",
    fix="bind an axis of the update",
    at="build",
)
def threads_over_time():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s[S].bind(S.op.scan_axis, te.thread_axis("threadIdx.x"))  # <-
    kiln.build(s, [X, S])


@wrong(
    "SCAN_TIME",
    "the time axis of a scan is sequential",
    fix="vectorize an axis of the update",
    at="build",
)
def vectors_over_time():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    outer, inner = s[S].split(S.op.scan_axis, factor=4)
    s[S].vectorize(inner)  # <-
    kiln.build(s, [X, S])


@wrong(
    "SCAN_TIME",
    "the time axis of a scan is sequential",
    fix="time.outer before time.inner",
    at="build",
)
def time_out_of_order():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    outer, inner = s[S].split(S.op.scan_axis, factor=4)
    s[S].reorder(inner, outer)  # <-
    kiln.build(s, [X, S])


@wrong(
    "SCAN_TIME",
    "axis t of update is the time of scan S; schedule S.idx, the axis of the scan",
    fix="steps on the scan: s[S].split(S.op.scan_axis, factor=4)",
    at="build",
)
def time_of_the_update():
    X, S = running_sum()
    update = S.op.update[0]
    s = te.create_schedule(S.op)
    s[update].split(update.op.axis[0], factor=4)  # <-
    kiln.build(s, [X, S])


@wrong(
    "THREAD_AXIS",
    "unknown thread axis threadIdx.q; known: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
    "threadIdx.y, threadIdx.z, vthread",
    fix='te.thread_axis("threadIdx.x")',
)
def unknown_thread_axis():
    te.thread_axis("threadIdx.q")  # <-


@wrong(
    "BIND_ARGUMENTS",
    "bind(i): the second argument must be a te.thread_axis, but is int",
    fix='s[C].bind(i, te.thread_axis("threadIdx.x"))',
)
def bind_to_a_number():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], 32)  # <-


@wrong(
    "BIND_ARGUMENTS",
    "bind(i.inner): threadIdx.x was made for 32 iterations, but i.inner has 16; leave the range out, "
    "or split by 32",
    fix='te.thread_axis("threadIdx.x"), whose range is found from the axis',
)
def thread_axis_of_another_extent():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=16)
    s[C].bind(inner, te.thread_axis((0, 32), "threadIdx.x"))  # <-


@wrong(
    "THREAD_AXIS",
    "axis i of C is bound to threadIdx.x already; bind j to another thread axis",
    fix="threadIdx.x and threadIdx.y",
    at="build",
)
def two_axes_on_one_thread_axis():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))  # <-
    kiln.build(s, [A, B, C])


@wrong(
    "STEP_STAGE",
    "A is a placeholder; steps apply to what is computed",
    fix="steps on what is computed from A",
    at="build",
)
def step_on_a_placeholder():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[A].compute_inline()  # <-
    kiln.build(s, [A, C])


@wrong(
    "UNKNOWN_NAME",
    "stage C has no step vectorise; did you mean vectorize",
    fix="vectorize",
)
def misspelt_step():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].vectorise(C.op.axis[0])  # <-


@wrong(
    "UNKNOWN_NAME",
    "split is a step of a stage, as in s[C].split(...)",
    fix="s[C].split(...)",
)
def step_on_the_schedule():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.split(C.op.axis[0], factor=4)  # <-


@wrong(
    "UNKNOWN_NAME",
    "split is a step of a schedule, as in s[C].split(...) with s = te.create_schedule(C.op)",
    fix="s[C].split(...) with s = te.create_schedule(C.op)",
)
def step_on_the_tensor():
    A, B, C = chain()
    C.split(C.op.axis[0], factor=4)  # <-


@wrong(
    "UNKNOWN_NAME",
    "a schedule has no stagess; did you mean stages",
    fix="s.stages",
)
def misspelt_method_of_a_schedule():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.stagess  # <-


@wrong(
    "UNKNOWN_NAME",
    "cache_read is a step of a schedule, as in s.cache_read(...)",
    fix='s.cache_read(A, "local", [B])',
)
def step_of_the_schedule_on_a_stage():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].cache_read(A, "local", [B])  # <-


@wrong(
    "AXIS_ATTACHED",
    "B is computed at axis i; split it before compute_at",
    fix="split before compute_at",
    at="build",
)
def split_of_a_loop_in_which_another_stage_is_computed():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].split(C.op.axis[0], factor=4)  # <-
    kiln.build(s, [A, C])


@wrong(
    "DEPENDENT_EXTENT",
    "cannot fuse k, l: the extent of l depends on k",
    fix="fuse axes of constant extents",
    kind="Unsupported", at="build",
)
def fuse_of_a_triangle():
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    l = te.reduce_axis((0, k + 1), name="l")
    B = te.compute((1,), lambda _: te.sum(A[k, l], axis=[k, l]), name="B")
    s = te.create_schedule(B.op)
    s[B].fuse(k, l)  # <-
    kiln.build(s, [A, B])


@wrong(
    "DATA_EXTENT",
    "cannot vectorize k: its extent is read from a tensor; split it by a factor first",
    fix="split the loop by a factor first",
    kind="Unsupported", at="build",
)
def vectorize_of_a_row_of_a_sparse_matrix():
    ptr, X = te.placeholder((5,), "int64", name="ptr"), te.placeholder((99,), name="X")

    def row(i):
        k = te.reduce_axis((ptr[i], ptr[i + 1]), name="k")
        return te.sum(te.if_then_else(k < 99, X[k], 0.0), axis=k)

    B = te.compute((4,), row, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.reduce_axis[0])  # <-
    kiln.build(s, [ptr, X, B])


@wrong(
    "LIMIT",
    "an axis name has {number} bytes; the limit is 1024",
    fix="fewer steps: an axis is named by all that it was made of",
    kind="ResourceExhausted",
)
def axes_fused_and_split_without_end():
    A, B = add_one((64, 64, 64))
    s = te.create_schedule(B.op)
    axes = list(B.op.axis)
    for _ in range(30):
        outer, inner = s[B].split(s[B].fuse(*axes), 4)  # <-
        axes = [outer, inner]


@wrong(
    "STATEMENT_LIMIT",
    "the kernel has {number} statements when lowered; the limit is 200000; unroll less, or make several kernels of it",
    fix="split(i, factor=16), and unroll the inner axis",
    kind="ResourceExhausted", at="lower", notes=("in pass unroll_loops",),
)
def sixty_loops_unrolled():
    A = last = te.placeholder((4096,), name="A")
    stages = []
    for _ in range(60):
        last = te.compute((4096,), lambda i, before=last: before[i] + 1)
        stages.append(last)
    s = te.create_schedule(last.op)
    for stage in stages:
        s[stage].unroll(stage.op.axis[0])
    kiln.lower(s, [A, last], after="unroll_loops")  # <-
