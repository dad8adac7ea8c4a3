"""Mistakes in steps on stages: compute_at, inline, caches, rfactor, scopes."""

import kiln
from kiln import te

from .entry import Section
from .programs import chain, matmul, running_sum

wrong = Section(
    "steps_stages", "Steps on stages",
    "Where a stage is computed, and what stands between it and its readers.",
)  # fmt: skip


@wrong(
    "ATTACH_READER",
    "cannot compute B at i of C: it is also read by D, which is outside of that loop; compute D inside "
    "it too, or leave B at the root",
    fix="compute B inside D's loops, or leave it at the root",
    at="build",
)
def compute_at_of_a_stage_with_another_reader():
    A, B, C = chain()
    D = te.compute(C.shape, lambda i: C[i] + B[i], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[C], C.op.axis[0])  # <-
    kiln.build(s, [A, D])


@wrong(
    "ATTACH_READER",
    "cannot compute B at i of D: it is also read by C, which is outside of that loop; compute C inside "
    "it too, or leave B at the root",
    fix="compute_at a stage that reads B",
    at="build",
)
def compute_at_of_a_stage_that_does_not_read_it():
    A, B, C = chain()
    D = te.compute(A.shape, lambda i: A[i] * 3, name="D")
    s = te.create_schedule([C.op, D.op])
    s[B].compute_at(s[D], D.op.axis[0])  # <-
    kiln.build(s, [A, C, D])


@wrong(
    "CONSUMED_AXIS",
    "axis i of C was split at line {before}; compute B at i.outer or i.inner",
    fix="compute_at(s[C], i.outer)",
)
def compute_at_of_an_axis_already_split():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4)
    s[B].compute_at(s[C], C.op.axis[0])  # <-


@wrong(
    "FOREIGN_AXIS",
    "axis i belongs to stage B, not to C",
    fix="an axis of C",
)
def compute_at_of_its_own_axis():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], B.op.axis[0])  # <-


@wrong(
    "COMPUTE_AT",
    "B cannot be computed at itself",
    fix="the loop of a stage that reads it",
    at="build",
)
def compute_at_of_itself():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[B], B.op.axis[0])  # <-
    kiln.build(s, [A, C])


@wrong(
    "FOREIGN_STAGE",
    "compute_at: C is a stage of another schedule",
    fix="both stages of one schedule",
)
def compute_at_of_another_schedule():
    A, B, C = chain()
    s, other = te.create_schedule(C.op), te.create_schedule(C.op)
    s[B].compute_at(other[C], C.op.axis[0])  # <-


@wrong(
    "ATTACH_VECTOR",
    "cannot compute B at i.inner of C: i.inner is vectorized; choose a loop outside of it",
    fix="compute_at the loop outside of it",
    kind="Unsupported", at="build",
)
def compute_at_of_a_vectorized_loop():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].vectorize(inner)
    s[B].compute_at(s[C], inner)  # <-
    kiln.build(s, [A, C])


@wrong(
    "COMPUTE_INLINE",
    "C is an output and cannot be inlined",
    fix="inline what the output reads",
    at="build",
)
def inline_of_an_output():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].compute_inline()  # <-
    kiln.build(s, [A, C])


@wrong(
    "COMPUTE_INLINE",
    "C has a reduction and cannot be inlined; use compute_at",
    fix="s[C].compute_at(s[D], D.op.axis[0])",
    at="build",
)
def inline_of_a_reduction():
    A, B, C = matmul()
    D = te.compute(C.shape, lambda i, j: C[i, j] + 1, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_inline()  # <-
    kiln.build(s, [A, B, D])


@wrong(
    "COMPUTE_INLINE",
    "a scan update cannot be inlined",
    fix="leave the update where it is",
    at="build",
)
def inline_of_an_update():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s[S.op.update[0]].compute_inline()  # <-
    kiln.build(s, [X, S])


@wrong(
    "COMPUTE_AT",
    "update is the update of scan S, which computes it",
    fix="compute_at for what the update reads",
    at="build",
)
def compute_at_of_an_update():
    X, S = running_sum()
    T = te.compute(S.shape, lambda t, i: S[t, i] * 2, name="T")
    s = te.create_schedule(T.op)
    s[S.op.update[0]].compute_at(s[T], T.op.axis[0])  # <-
    kiln.build(s, [X, T])


@wrong(
    "FIXED_STAGE",
    "cannot attach S: it is a scan, which is computed whole",
    fix="compute_at an axis of which each iteration needs one column",
    at="build",
)
def scan_at_the_time_of_its_reader():
    X, S = running_sum()
    T = te.compute(S.shape, lambda t, i: S[t, i] * 2, name="T")
    s = te.create_schedule(T.op)
    s[S].compute_at(s[T], T.op.axis[0])  # <-
    kiln.build(s, [X, T])


@wrong(
    "ATTACH_CELL",
    "cannot compute half at t of T: it depends on the state of S and must stay inside its time loop",
    fix="compute_at(s[S], S.op.scan_axis), or inside the update",
    at="build",
)
def stage_of_a_scan_computed_outside():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    half = te.compute((6, 3), lambda t, i: state[t - 1, i] * 0.5, name="half")
    update = te.compute((6, 3), lambda t, i: half[t, i] + X[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    T = te.compute((6, 3), lambda t, i: S[t, i] * 2, name="T")
    s = te.create_schedule(T.op)
    s[half].compute_at(s[T], T.op.axis[0])  # <-
    kiln.build(s, [X, T])


@wrong(
    "CACHE_READ",
    "C does not read A",
    fix="the stages that read A: B",
)
def cache_for_a_stage_that_does_not_read():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.cache_read(A, "local", [C])  # <-


@wrong(
    "CACHE_READ",
    "cache_read of A names no stage that reads the copy",
    fix='s.cache_read(A, "local", [B])',
)
def cache_for_nobody():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.cache_read(A, "local", [])  # <-


@wrong(
    "MEMORY_SCOPE",
    "unknown memory scope sharedd; known: global, shared, shared.dyn, local, warp, wmma.matrix_a, "
    "wmma.matrix_b, wmma.accumulator",
    fix='"shared"',
)
def unknown_memory_scope():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.cache_read(A, "sharedd", [B])  # <-


@wrong(
    "MEMORY_SCOPE",
    "unknown memory scope L2; known: global, shared, shared.dyn, local, warp, wmma.matrix_a, "
    "wmma.matrix_b, wmma.accumulator",
    fix='"global", "shared" or "local"',
)
def unknown_scope_of_a_stage():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].set_scope("L2")  # <-


@wrong(
    "NOT_A_TENSOR",
    "cache_read takes a tensor, but got str",
    fix='s.cache_read(A, "local", [B])',
)
def cache_of_a_name():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.cache_read("A", "local", [B])  # <-


@wrong(
    "STEP_STAGE",
    "A is a placeholder; steps apply to what is computed",
    fix='s.cache_read(A, "local", [B])',
)
def cache_write_of_an_input():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.cache_write(A, "local")  # <-


@wrong(
    "STEP_STAGE",
    "S is a scan; cache_write its update instead",
    fix="cache_write of the update",
    kind="Unsupported",
)
def cache_write_of_a_scan():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s.cache_write(S, "local")  # <-


@wrong(
    "CACHE_WRITE",
    "reduction axis k.outer of C was made by a step; cache_write C before that, and take the step on "
    "the new stage",
    fix="cache_write first, then split the reduction of the new stage",
)
def cache_write_after_a_split_reduction():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].split(C.op.reduce_axis[0], factor=8)
    s.cache_write(C, "local")  # <-


@wrong(
    "CACHE_WRITE",
    "cache_write takes the tensors of one stage, but B is not one of C",
    fix="one cache_write for each stage",
)
def cache_write_of_two_stages():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.cache_write([C, B], "local")  # <-


@wrong(
    "CONSUMED_AXIS",
    "C is now a copy; the reduction is in C.local",
    fix="CL.op.reduce_axis[0], with CL what cache_write returned",
)
def reduction_axis_after_cache_write():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s.cache_write(C, "local")
    s[C].split(C.op.reduce_axis[0], factor=8)  # <-


@wrong(
    "RFACTOR",
    "axis i of C is not a reduction axis; rfactor takes a reduction axis or a part of one",
    fix="an axis of C.op.reduce_axis",
)
def rfactor_of_a_data_axis():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s.rfactor(C, C.op.axis[0])  # <-


@wrong(
    "RFACTOR",
    "factor_axis is 3, but the partial results of C have the dimensions 0 to 2",
    fix="factor_axis=0, 1 or 2",
)
def rfactor_at_a_dimension_that_is_not_there():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s.rfactor(C, C.op.reduce_axis[0], factor_axis=3)  # <-


@wrong(
    "RFACTOR",
    "B has a reduction inside a larger expression; take reduction_stage of it to factor k",
    fix="the sum as a tensor of its own, and the division in another",
    kind="Unsupported", at="build",
)
def rfactor_of_a_reduction_inside_an_expression():
    A = te.placeholder((4, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k) / 64, name="B")
    s = te.create_schedule(B.op)
    s.rfactor(B, k)  # <-
    kiln.build(s, [A, B])


@wrong(
    "NOT_IN_THIS_VERSION",
    "the step create_group is not part of this version of Kiln; attach each stage of the group by its own compute_at",
    fix="s[B].compute_at(s[C], C.op.axis[0])",
    kind="Unsupported",
)
def step_that_this_version_lacks():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s.create_group([C], [A])  # <-


@wrong(
    "COMPUTE_INLINE",
    "init gives scan S its initial steps and cannot be inlined",
    fix="leave the init where it is",
    at="build",
)
def inline_of_an_init():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s[S.op.init[0]].compute_inline()  # <-
    kiln.build(s, [X, S])


@wrong(
    "FOREIGN_AXIS",
    "axis i belongs to stage B, not to A",
    fix="compute_at in a stage that has loops",
)
def compute_at_in_a_placeholder():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[A], B.op.axis[0])  # <-
    kiln.build(s, [A, C])


@wrong(
    "CONSUMED_AXIS",
    "C now reduces what C.rf has; the reduction over k.inner is in C.rf",
    fix="the reduction of the new stage, or C.op.reduce_axis of the schedule",
)
def reduction_axis_after_rfactor():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.reduce_axis[0], factor=8)
    s.rfactor(C, inner)
    s[C].unroll(inner)  # <-


@wrong(
    "RFACTOR",
    "cannot factor l: its extent k + 1 depends on other axes, but it becomes a dimension of the "
    "partial results of B; split it and factor the inner part",
    fix="split it, and factor the inner part",
    kind="Unsupported", at="build",
)
def rfactor_of_a_triangle():
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    l = te.reduce_axis((0, k + 1), name="l")
    B = te.compute((1,), lambda _: te.sum(A[k, l], axis=[k, l]), name="B")
    s = te.create_schedule(B.op)
    s.rfactor(B, l)  # <-
    kiln.build(s, [A, B])


@wrong(
    "FIXED_STAGE",
    "cannot attach H: it is a scatter, which is computed whole",
    fix="compute_at for what the scatter reads",
    at="build",
)
def compute_at_of_a_scatter():
    B, at = te.placeholder((9,), name="B"), te.placeholder((4,), "int64", name="at")
    H = te.scatter_add(B, (4,), lambda r: ((at[r],), 1.0), name="H")
    T = te.compute((9,), lambda i: H[i] * 2, name="T")
    s = te.create_schedule(T.op)
    s[H].compute_at(s[T], T.op.axis[0])  # <-
    kiln.build(s, [B, at, T])


@wrong(
    "FIXED_STAGE",
    "cannot attach base: it is the base of H, which updates it in place",
    fix="leave the base where it is",
    at="build",
)
def compute_at_of_the_base_of_a_scatter():
    A, at = te.placeholder((9,), name="A"), te.placeholder((4,), "int64", name="at")
    base = te.compute((9,), lambda i: A[i] + 1, name="base")
    H = te.scatter_add(base, (4,), lambda r: ((at[r],), 1.0), name="H")
    s = te.create_schedule(H.op)
    s[base].compute_at(s[H], H.op.axis[0])  # <-
    kiln.build(s, [A, at, H])


@wrong(
    "ATTACH_READER",
    "cannot compute init at t of T: it is also read by S.init, which is outside of that loop; compute "
    "S.init inside it too, or leave init at the root",
    fix="leave the init where it is",
    at="build",
)
def compute_at_of_an_init():
    X, S = running_sum()
    init = S.op.init[0]
    T = te.compute(S.shape, lambda t, i: S[t, i] + init[0, i], name="T")
    s = te.create_schedule(T.op)
    s[init].compute_at(s[T], T.op.axis[0])  # <-
    kiln.build(s, [X, T])


@wrong(
    "ATTACH_CELL",
    "cannot compute half at S.idx.outer of S: it depends on the state and must stand in the innermost "
    "time loop, S.idx.inner",
    fix="compute_at(s[S], time.inner), the innermost loop of time",
    at="build",
)
def stage_of_a_scan_outside_of_its_innermost_time():
    X, state = te.placeholder((9, 3), name="X"), te.placeholder((9, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    half = te.compute((9, 3), lambda t, i: state[t - 1, i] * 0.5, name="half")
    update = te.compute((9, 3), lambda t, i: half[t, i] + X[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    s = te.create_schedule(S.op)
    outer, inner = s[S].split(S.op.scan_axis, factor=4)
    s[half].compute_at(s[S], outer)  # <-
    kiln.build(s, [X, S])


@wrong(
    "ATTACH_BOUND",
    "cannot compute ptr at k of B: the bounds of a reduction of B read it; choose a loop outside of "
    "the reduction",
    fix="compute_at a loop outside of the reduction",
    at="build",
)
def compute_at_inside_of_a_reduction_it_bounds():
    A, X = te.placeholder((5,), "int64", name="A"), te.placeholder((99,), name="X")
    ptr = te.compute((5,), lambda i: A[i] * 2, name="ptr")

    def row(i):
        k = te.reduce_axis((ptr[i], ptr[i + 1]), name="k")
        return te.sum(te.if_then_else(k < 99, X[k], 0.0), axis=k)

    B = te.compute((4,), row, name="B")
    s = te.create_schedule(B.op)
    s[ptr].compute_at(s[B], B.op.reduce_axis[0])  # <-
    kiln.build(s, [A, X, B])


@wrong(
    "RFACTOR",
    "cannot factor k: its extent ptr[i + 1] - ptr[i] depends on other axes, but it becomes a dimension "
    "of the partial results of B; split it and factor the inner part",
    fix="split it, and factor the inner part",
    kind="Unsupported", at="build",
)
def rfactor_of_a_row_of_a_sparse_matrix():
    ptr, X = te.placeholder((5,), "int64", name="ptr"), te.placeholder((99,), name="X")

    def row(i):
        k = te.reduce_axis((ptr[i], ptr[i + 1]), name="k")
        return te.sum(te.if_then_else(k < 99, X[k], 0.0), axis=k)

    B = te.compute((4,), row, name="B")
    s = te.create_schedule(B.op)
    s.rfactor(B, B.op.reduce_axis[0])  # <-
    kiln.build(s, [ptr, X, B])


@wrong(
    "MEMORY_SCOPE",
    "B cannot lie in local memory: it is computed outside of any thread; compute it at a loop inside "
    "threadIdx",
    fix="compute_at inside of the thread that uses it",
    kind="Unsupported", at="lower",
)
def whole_tensor_in_the_memory_of_a_thread():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].set_scope("local")  # <-
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    kiln.lower(s, [A, C], target="cuda", auto=True)


@wrong(
    "MEMORY_SCOPE",
    "B cannot lie in warp memory: it is computed outside of any block; compute it at a loop inside "
    "blockIdx",
    fix="compute_at at a loop of the block that uses it",
    kind="Unsupported", at="lower",
)
def tensor_in_the_registers_of_a_warp():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].set_scope("warp")  # <-
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    kiln.lower(s, [A, C], target="cuda", auto=True)


@wrong(
    "THREAD_AXIS",
    "cannot bind j of B to threadIdx.x: it runs inside i, which is bound to it already; threads share their "
    "work only on a stage in shared memory",
    fix="threadIdx.y for one of the two",
    kind="Unsupported", at="lower",
)
def stage_bound_inside_of_a_loop_bound_alike():
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((64, 64), lambda i, j: B[i, j] * 2, name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))  # <-
    kiln.lower(s, [A, C], target="cuda", auto=True)


@wrong(
    "REDUCTION_AXIS",
    "cannot bind k on a GPU: B is computed inside of threads already; compute it at a loop around them",
    fix="s[B].compute_root()",
    kind="Unsupported", at="build",
)
def reduction_of_threads_inside_of_threads():
    A = te.placeholder((64, 32), name="A")
    k = te.reduce_axis((0, 32), name="k")
    B = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((64,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].bind(k, te.thread_axis("threadIdx.y"))  # <-
    kiln.compile(s, [A, C], target="cuda", arch="sm_90", name="rows")
