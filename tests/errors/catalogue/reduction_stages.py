"""Mistakes in reduction_stage, which makes a stage of a reduction inside an expression."""

import kiln
from kiln import te

from .entry import Section
from .programs import matmul

wrong = Section(
    "reduction_stages", "Reductions as stages",
    "A reduction inside a larger expression, and the stage that reduction_stage makes of it.",
)  # fmt: skip


def dense():
    """tanh of a product: a sum over k inside of a larger expression."""
    A, W = te.placeholder((8, 16), name="A"), te.placeholder((16, 32), name="W")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((8, 32), lambda i, j: te.tanh(te.sum(A[i, k] * W[k, j], axis=k)), name="C")
    return A, W, C, k


@wrong(
    "REDUCTION_STAGE",
    "the reduction over k is all that C computes, so it is a stage of its own already",
    fix="the steps of C itself; reduction_stage is for a reduction inside of a larger expression",
)
def reduction_stage_of_a_whole_reduction():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s.reduction_stage(C, C.op.reduce_axis[0])  # <-


@wrong(
    "REDUCTION_STAGE",
    "axis j of C is not a reduction axis; reduction_stage takes those that a reduction inside the "
    "expression runs over",
    fix="an axis of C.op.reduce_axis",
)
def reduction_stage_of_a_data_axis():
    A, W, C, k = dense()
    s = te.create_schedule(C.op)
    s.reduction_stage(C, C.op.axis[1])  # <-


@wrong(
    "REDUCTION_STAGE",
    "reduction_stage names no axis that a reduction inside the expression of C runs over; such axes come last",
    fix="s.reduction_stage(C, k)",
)
def reduction_stage_over_no_axis():
    A, W, C, k = dense()
    s = te.create_schedule(C.op)
    s.reduction_stage(C, [])  # <-


@wrong(
    "CONSUMED_AXIS",
    "the reduction over k inside C is the stage C.sum now; name the axes of C.sum",
    fix="s[CS].op.reduce_axis[0], with CS what reduction_stage returned",
)
def reduction_axis_after_reduction_stage():
    A, W, C, k = dense()
    s = te.create_schedule(C.op)
    s.reduction_stage(C, k)
    s[C].split(k, factor=4)  # <-


@wrong(
    "REDUCTION_STAGE",
    "cannot make a stage of the reduction over k inside C.local: it is no expression of the definition; "
    "take reduction_stage before cache_write and rfactor",
    fix="reduction_stage first, then cache_write",
)
def reduction_stage_after_cache_write():
    A, W, C, k = dense()
    s = te.create_schedule(C.op)
    CL = s.cache_write(C, "local")
    s.reduction_stage(CL, CL.op.reduce_axis[0])  # <-


@wrong(
    "REDUCTION_STAGE",
    "cannot make a stage of the reduction over l inside C: it uses k, over which C reduces too; write it as "
    "a stage of its own in the definition",
    fix="te.compute of the inner sum, which C reads",
    at="build",
)
def reduction_stage_of_a_sum_inside_of_a_sum():
    A, W = te.placeholder((8, 16), name="A"), te.placeholder((16, 32), name="W")
    k, l = te.reduce_axis((0, 16), name="k"), te.reduce_axis((0, 32), name="l")
    C = te.compute((8,), lambda i: te.sum(A[i, k] * te.sum(W[k, l], axis=l), axis=k), name="C")
    s = te.create_schedule(C.op)
    s.reduction_stage(C, l)  # <-
    kiln.build(s, [A, W, C])


@wrong(
    "REDUCTION_STAGE",
    "cannot make a stage of the reduction over k inside C: another reduction inside C runs over the same "
    "axis k; give each an axis of its own",
    fix="another te.reduce_axis for the second reduction",
    at="build",
)
def reduction_stage_of_two_reductions_over_one_axis():
    A = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((8,), lambda i: te.sum(A[i, k], axis=k) / te.max(A[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    s.reduction_stage(C, k)  # <-
    kiln.build(s, [A, C])


@wrong(
    "REDUCTION_STAGE",
    "cannot make a stage of the reduction over k inside C: it has 2 values at once; write it as a stage of its "
    "own in the definition",
    fix="te.compute of both values, one of which C reads",
    at="build",
)
def reduction_stage_of_two_values_at_once():
    A = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    largest = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
        name="largest",
    )
    C = te.compute(
        (8,), lambda i: largest((k.var.astype("int32"), A[i, k]), axis=k)[0] + 1, name="C"
    )
    s = te.create_schedule(C.op)
    s.reduction_stage(C, k)  # <-
    kiln.build(s, [A, C])


def in_kernel(name, steps, says, fix):
    """A row whose program is a schedule of a product in exp()."""
    program = f"""
    kernel k(A: float32[8, 16], B: float32[16, 32]) -> (C: float32[8, 32]) {{
      C[i, j] = exp(sum[k < 16](A[i, k] * B[k, j]))
      schedule cpu {{ {steps} }}  # <-
    }}
    """
    wrong.text(name, "REDUCTION_STAGE", program, says, fix)


in_kernel(
    "reduction_stage_without_an_axis_that_it_uses",
    "reduction_stage(C.i, C.k, sum)",
    "the reduction over k inside C uses i, j; write reduction_stage(C.i, C.j, C.k, sum)",
    "the axes that the reduction uses, in the order of C's axes",
)
in_kernel(
    "reduction_stage_without_a_reduction_axis",
    "reduction_stage(C.i, C.j, sum)",
    "reduction_stage names no axis that a reduction inside the expression of C runs over; such axes come "
    "last",
    "reduction_stage(C.i, C.j, C.k, sum)",
)
in_kernel(
    "reduction_stage_without_a_word",
    "reduction_stage(C.i, C.j, C.k)",
    "reduction_stage ends with a word for the new stage, of letters, digits and _, as in "
    "reduction_stage(C.i, C.j, C.k, sum)",
    "reduction_stage(C.i, C.j, C.k, sum)",
)
in_kernel(
    "reduction_stage_with_its_axes_in_another_order",
    "reduction_stage(C.k, C.i, C.j, sum)",
    "reduction_stage takes the axes that a reduction uses before those that it reduces over: i before k",
    "reduction_stage(C.i, C.j, C.k, sum)",
)
in_kernel(
    "reduction_stage_of_a_loop_that_a_step_made",
    "split(C.i, factor=4) reduction_stage(C.i.outer, C.j, C.k, sum)",
    "reduction_stage takes axes that the expression of C uses, but i.outer was made by a step",
    "C.i, which stays an axis of the expression whatever became of its loop",
)
in_kernel(
    "reduction_stage_of_a_copy",
    "cache_write(C, local) reduction_stage(C.local.i.c, C.local.j.c, C.local.k, sum)",
    "cannot make a stage of the reduction over k inside C.local, whose layout is that of the loops of C; take "
    "reduction_stage of C before its cache_write",
    "reduction_stage first, then cache_write",
)
wrong.text(
    "reduction_stage_of_an_expression_without_reductions",
    "REDUCTION_STAGE",
    """
    kernel k(A: float32[8]) -> (B: float32[8]) {
      B[i] = A[i] + 1
      schedule cpu { reduction_stage(B.i, sum) }  # <-
    }
    """,
    "B has no reduction inside its expression that could become a stage",
    "steps of B itself",
)
wrong.text(
    "reduction_stage_of_a_scatter",
    "REDUCTION_STAGE",
    """
    kernel k(B: float32[8], at: int64[4]) -> (H: float32[8]) {
      H = scatter_add[r < 4](B, at[r], 1.0)
      schedule cpu { reduction_stage(H.r, sum) }  # <-
    }
    """,
    "reduction_stage takes a reduction inside the expression of a compute, but H is a scatter",
    "reduction_stage of a stage that it reads",
)
wrong.text(
    "reduction_stage_of_two_reductions_at_once",
    "REDUCTION_STAGE",
    """
    kernel k(A: float32[8, 16]) -> (B: float32[8]) {
      B[i] = exp(sum[k < 4, l < 4](A[i, k] * A[i, l])) + sum[q < 16](A[i, q])
      schedule cpu { reduction_stage(B.i, B.k, B.q, sum) }  # <-
    }
    """,
    "the reduction over q inside B uses i; write reduction_stage(B.i, B.q, sum)",
    "one reduction_stage for each reduction",
)


@wrong(
    "FOREIGN_AXIS",
    "axis q belongs to stage D, not to C",
    fix="s.reduction_stage(C, [k])",
)
def reduction_of_another_stage():
    A, k = te.placeholder((4, 4), name="A"), te.reduce_axis((0, 4), name="k")
    q = te.reduce_axis((0, 4), name="q")
    C = te.compute((4,), lambda i: A[i, 0] + te.sum(A[i, k], axis=k), name="C")
    D = te.compute((4,), lambda i: C[i] + te.sum(A[i, q], axis=q), name="D")
    te.create_schedule(D.op).reduction_stage(C, [q])  # <-


@wrong(
    "STEP_FIELDS",
    "reduction_stage takes axes, then a word, as in reduction_stage(C.i, C.k, sum)",
    fix="reduction_stage(C.k, sum)",
)
def reduction_stage_of_a_saved_schedule_without_its_word():
    A, k = te.placeholder((4, 4), name="A"), te.reduce_axis((0, 4), name="k")
    C = te.compute((4,), lambda i: A[i, 0] + te.sum(A[i, k], axis=k), name="C")
    kiln.parse_schedule("schedule cpu {\n  reduction_stage(C.k)\n}\n", [C])
