"""Mistakes in kernel files."""

from .entry import Section

wrong = Section(
    "text_form", "Kernel files",
    "A mistake in a kernel file names its line and shows the place. `kiln fmt` finds the mistakes of form, "
    "`kiln compile` also those of meaning.",
)  # fmt: skip


def in_kernel(name, reason, body, says, fix, **columns):
    """A mistake in the body of a kernel with two inputs and an output."""
    text = "kernel k(A: float32[n, l], B: int32[n]) -> (C: float32[n]) {\n" + body + "\n}\n"
    wrong.text(name, reason, text, says, fix, **columns)


wrong.text(
    "expression_that_is_not_finished",
    "SYNTAX",
    """
    kernel k(A: float32[n]) -> (C: float32[n]) {
      C[i] = A[i] +
    }  # <-
    """,
    "expected an expression, but found }}",
    "A[i] + 1",
)  # fmt: skip
in_kernel(
    "missing_comma",
    "SYNTAX",
    "  C[i] = A[i 0]  # <-",
    "expected , or ], but found 0",
    "A[i, 0]",
)
in_kernel(
    "left_side_without_indices",
    "SYNTAX",
    "  C = A[0, 0]  # <-",
    "C needs its indices on the left: C[i] = ..., or C[] = ... without any",
    "C[i] = A[i, 0]",
)
in_kernel(
    "left_side_with_a_number",
    "SYNTAX",
    "  C[0] = A[0, 0]  # <-",
    "the left side names an axis for each dimension, as in C[i, j]",
    "C[i] = A[i, 0]: the axis runs over all",
)
in_kernel(
    "unknown_name",
    "SYNTAX",
    "  C[i] = A[i, q]  # <-",
    "unknown name q",
    "an axis of the left side, a size, or a tensor",
)
in_kernel(
    "misspelt_function",
    "SYNTAX",
    "  C[i] = expp(A[i, 0])  # <-",
    "unknown function expp; did you mean exp",
    "exp(A[i, 0])",
)
in_kernel(
    "misspelt_reducer",
    "SYNTAX",
    "  C[i] = sun[k < l](A[i, k])  # <-",
    "unknown reducer sun; did you mean sum",
    "sum[k < l](A[i, k])",
)
in_kernel(
    "reduction_without_a_range",
    "SYNTAX",
    "  C[i] = sum[k](A[i, k])  # <-",
    "expected a range such as k < n or 1 <= k < n",
    "sum[k < l](A[i, k])",
)
in_kernel(
    "misspelt_type",
    "SYNTAX",
    "  D: flot32[n]  # <-\n  C[i] = D[i]",
    "unknown type flot32; did you mean float32",
    "D: float32[n]",
)
in_kernel(
    "tensor_without_a_type",
    "SYNTAX",
    "  D[i] = A[i, 0]  # <-\n  C[i] = D[i]",
    "D has no type; declare it before, as in D: float32[n]",
    "D: float32[n] before it",
)
in_kernel(
    "value_of_another_type",
    "SYNTAX",
    "  C[i] = B[i]  # <-",
    "C is float32, but its value is int32; cast it, as in float32(...)",
    "float32(B[i])",
)
in_kernel(
    "types_that_do_not_meet",
    "OPERAND_TYPE",
    "  C[i] = A[i, 0] + B[i]  # <-",
    "add takes numbers of one type, but got float32 and int32",
    "A[i, 0] + float32(B[i])",
)
in_kernel(
    "division_of_integers",
    "SYNTAX",
    "  C[i] = float32(B[i] / 2)  # <-",
    "/ divides floating numbers; write // to round down or truncdiv to round to zero, or cast",
    "B[i] // 2",
)
in_kernel(
    "fraction_among_integers",
    "SYNTAX",
    "  C[i] = float32(B[i] + 0.5)  # <-",
    "0.5 is not an int32",
    "float32(B[i]) + 0.5",
)
in_kernel(
    "number_past_its_type",
    "SYNTAX",
    "  C[i] = float32(int8(300))  # <-",
    "300 does not fit int8",
    "int16(300)",
)
in_kernel(
    "too_few_indices_in_a_file",
    "SYNTAX",
    "  C[i] = A[i]  # <-",
    "A has 2 dimensions, but is read with 1 index",
    "A[i, 0]",
)
in_kernel(
    "too_many_indices_on_the_left",
    "SYNTAX",
    "  C[i, j] = A[i, j]  # <-",
    "C has 1 dimension, but has 2 indices on the left",
    "C[i] = ...",
)
in_kernel(
    "size_as_an_axis",
    "SYNTAX",
    "  C[n] = A[n, 0]  # <-",
    "n is a size already; give the axis another name",
    "C[i] = A[i, 0]",
)
in_kernel(
    "computed_input",
    "SYNTAX",
    "  A[i, j] = 0  # <-\n  C[i] = 1",
    "A is an input and cannot be computed",
    "a tensor of its own",
)
in_kernel(
    "tensor_computed_twice",
    "SYNTAX",
    "  C[i] = 1\n  C[i] = 2  # <-",
    "C is computed twice",
    "one statement for each tensor",
)
in_kernel(
    "strange_character",
    "SYNTAX",
    "  C[i] = $A[i, 0]  # <-",
    "unexpected character $",
    "A[i, 0]",
)
in_kernel(
    "scan_without_its_first_step",
    "SYNTAX",
    "  scan t { C[t] = 0 }  # <-",
    "the scan has no initial step, as in S[0, i] = ...",
    "C[0] = 0 before it",
)
in_kernel(
    "scan_without_its_later_steps",
    "SYNTAX",
    "  scan t { C[0] = 0 }  # <-",
    "C has an initial step but no C[t, ...] = ...",
    "C[t] = C[t - 1] + 1 after it",
)
in_kernel(
    "initial_steps_out_of_order",
    "SYNTAX",
    "  scan t { C[1] = 0 C[t] = C[t - 1] }  # <-",
    "the initial steps of C must be 0, 1, ... in order; expected C[0, ...]",
    "C[0] = 0",
)
in_kernel(
    "index_past_the_end_of_a_size",
    "READ_BOUNDS",
    "  C[i] = A[i + 1, 0]  # <-",
    "C reads A[i + 1, 0], whose index 0 reaches n, but A has 0 to n - 1 there; guard the read with "
    "if_then_else or change the shape",
    "if_then_else(i < n - 1, A[i + 1, 0], 0)",
)
in_kernel(
    "steps_read_that_are_not_computed_yet",
    "SCAN_TIME",
    "  scan t {\n    C[0] = 0\n    C[t] = C[t] + 1  # <-\n  }",
    "scan C: update reads state at t (current step); it may read only t-1",
    "C[t - 1] + 1",
)
in_kernel(
    "deep_nesting",
    "LIMIT",
    "  C[i] = " + "(" * 600 + "1" + ")" * 600 + "  # <-",
    "an expression has 513 levels; the limit is 512",
    "a tensor for a part of it",
    kind="ResourceExhausted",
)

wrong.text(
    "output_that_nothing_computes",
    "SYNTAX",
    """
    kernel k(A: float32[n]) -> (B: float32[n]) {  # <-
    }
    """,
    "B is an output, but nothing computes it",
    "B[i] = ...",
)  # fmt: skip
wrong.text(
    "empty_file",
    "SYNTAX",
    "# nothing",
    "expected a kernel, but the file has none",
    "a kernel",
)
wrong.text(
    "two_kernels_of_one_name",
    "SYNTAX",
    """
    kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] }
    kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] * 2 }  # <-
    """,
    "the file has two kernels k",
    "a name for each",
)  # fmt: skip


def in_schedule(name, reason, step, says, fix, **columns):
    """A mistake in the step of a schedule block."""
    text = (
        "kernel k(A: float32[n], B: float32[n]) -> (C: float32[n]) {\n  D: float32[n]\n  D[i] = A[i] + 1\n"
        f"  C[i] = D[i] * B[i]\n  schedule cpu {{\n{step}\n  }}\n}}\n"
    )
    wrong.text(name, reason, text, says, fix, **columns)


in_schedule(
    "misspelt_step_of_a_file",
    "UNKNOWN_STEP",
    "    splt(C.i, factor=4)  # <-",
    "unknown step splt; did you mean split",
    "split(C.i, factor=4)",
)
in_schedule(
    "unknown_axis_of_a_file",
    "SYNTAX",
    "    split(C.j, factor=4)  # <-",
    "unknown axis C.j; did you mean C.i",
    "split(C.i, factor=4)",
)
in_schedule(
    "unknown_stage_of_a_file",
    "SYNTAX",
    "    compute_inline(E)  # <-",
    "unknown stage E",
    "compute_inline(D)",
)
in_schedule(
    "misspelt_field_of_a_step",
    "SYNTAX",
    "    split(C.i, fctor=4)  # <-",
    "split has no fctor; known: factor, parts",
    "split(C.i, factor=4)",
)
in_schedule(
    "split_by_zero_in_a_file",
    "SPLIT_FACTOR",
    "    split(C.i, factor=0)  # <-",
    "split(i, factor=0): the factor must be at least 1",
    "split(C.i, factor=4)",
)
in_schedule(
    "axis_split_twice_in_a_file",
    "CONSUMED_AXIS",
    "    split(C.i, factor=4)\n    vectorize(C.i)  # <-",
    "axis i was split into i.outer, i.inner at line 6",
    "vectorize(C.i.inner)",
)
in_schedule(
    "inline_of_an_output_in_a_file",
    "COMPUTE_INLINE",
    "    compute_inline(C)  # <-",
    "C is an output and cannot be inlined",
    "compute_inline(D)",
)
in_schedule(
    "vectorize_of_a_size",
    "VECTORIZE_EXTENT",
    "    vectorize(C.i)  # <-",
    "cannot vectorize i: its extent n is not a constant; split it first",
    "split(C.i, factor=8) vectorize(C.i.inner)",
    kind="Unsupported",
)
