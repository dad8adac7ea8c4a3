"""Mistakes in what classic programs bring along: functions of C, intrinsics of their own, saved definitions."""

import kiln
from kiln import te, tir

from .entry import Section
from .programs import chain, matmul

wrong = Section(
    "classic", "Functions of C, intrinsics of one's own, saved definitions",
    "What programs for compilers that link code bring along. Kiln computes functions of C by its own operators, and an "
    "intrinsic by its definition; it runs no code of a client.",
)  # fmt: skip


@wrong(
    "NOT_PART_OF_KILN",
    "tir.call_pure_extern: Kiln links no code, and tangent is none of the functions of C that it computes itself, such as "
    "expf, powf or fmaxf; did you mean tan",
    fix='tir.call_pure_extern("float32", "tanf", A[i])',
    kind="Unsupported",
)
def function_of_c_that_is_not_known():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: tir.call_pure_extern("float32", "tangent", A[i]))  # <-


@wrong(
    "OPERAND_COUNT",
    "tir.call_pure_extern: fdividef does not take 1 argument",
    fix='tir.call_pure_extern("float32", "fdividef", A[i], 2.0)',
)
def function_of_c_with_an_argument_too_few():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: tir.call_pure_extern("float32", "fdividef", A[i]))  # <-


@wrong(
    "INTRINSIC",
    "the rule for tir.mylog gave no expression for float16",
    fix="a rule that returns an expression for every type it is asked for",
)
def rule_that_gives_nothing():
    kiln.ir.register_intrin_lowering("tir.mylog", "cuda", lambda op: op if op.dtype == "float16" else te.log(op.args[0]))
    A = te.placeholder((4,), "float16", name="A")
    te.compute((4,), lambda i: tir.call_intrin("float16", "tir.mylog", A[i]))  # <-


@wrong(
    "INTRINSIC",
    "decl_tensor_intrin takes the operation of a te.compute, but got Tensor",
    fix="te.decl_tensor_intrin(C.op, None)",
)
def intrinsic_of_a_tensor():
    A, B, C = matmul()
    te.decl_tensor_intrin(C, None)  # <-


@wrong(
    "INTRINSIC",
    "cannot tensorize j.inner of C with madd: its definition runs 8 times, but the loops j.inner run 16 times",
    fix="s[C].split(C.op.axis[1], factor=8)",
)
def intrinsic_of_another_size():
    a = te.placeholder((8,), name="a")
    madd = te.decl_tensor_intrin(te.compute((8,), lambda i: a[i] * 2, name="b").op, None, name="madd")
    A = te.placeholder((4, 32), name="A")
    C = te.compute((4, 32), lambda i, j: A[i, j] * 2, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], factor=16)
    s[C].tensorize(inner, madd)  # <-


@wrong(
    "NOT_PART_OF_KILN",
    "buffer Ab describes memory for an intrinsic, and has no vload: loops are not written by hand; write the tensors with "
    "te.compute and te.scan",
    fix="A[i] in te.compute",
    kind="Unsupported",
)
def buffer_that_is_read():
    Ab = tir.decl_buffer((4,), name="Ab")
    Ab.vload([0])  # <-


@wrong(
    "ATTACH_AXIS",
    "cannot compute B at singleton of C, which is a loop of one iteration; leave it at the root",
    fix="no compute_at",
)
def compute_at_of_a_loop_of_one_iteration():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], s[C].fuse())  # <-


@wrong(
    "NOT_A_TENSOR",
    "save_json takes a tensor, a list of them or an operation, but got Schedule; a schedule is saved by s.save(path), a built function "
    "by f.export_library(path)",
    fix='s.save("c.schedule")',
)
def schedule_as_json():
    A, B, C = chain()
    kiln.ir.save_json(te.create_schedule(C.op))  # <-


@wrong(
    "SAVED_TENSORS",
    "load_json takes what kiln.ir.save_json gave, which this is not",
    fix="kiln.ir.load_json(kiln.ir.save_json(C))",
)
def json_of_something_else():
    kiln.ir.load_json('{"root": 1}')  # <-


@wrong(
    "DTYPE",
    "placeholder A: float32x4 is a vector type, which Kiln has not; write float32 and a last dimension of 4, whose loop is "
    "vectorized",
    fix='te.placeholder((n, 4), "float32", name="A")',
)
def vector_type():
    te.placeholder((4,), "float32x4", name="A")  # <-


@wrong(
    "AXIS_BY_HAND",
    'IterVar is the type of an axis, of which none is made by it: call te.reduce_axis((0, n), name="k") or '
    'te.thread_axis("threadIdx.x"); those of a tensor C are C.op.axis',
    fix='te.reduce_axis((0, 4), name="k")',
)
def axis_by_its_type():
    te.IterVar((0, 4), "k", te.IterVar.CommReduce)  # <-
