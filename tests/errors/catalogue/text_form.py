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
    "unknown_function",
    "SYNTAX",
    "  C[i] = relu(A[i, 0])  # <-",
    "unknown function relu; docs/language.md lists the functions",
    "max(A[i, 0], 0)",
)
in_kernel(
    "loop_over_the_elements",
    "SYNTAX",
    "  for i in 0 { C[i] = A[i, 0] }  # <-",
    "there is no for; an assignment to C[i] is made for every i, and sum[k < n] runs over k",
    "C[i] = A[i, 0]",
)
in_kernel(
    "word_between_conditions",
    "SYNTAX",
    "  C[i] = if_then_else(A[i, 0] > 0, 1, 0) and 1  # <-",
    "there is no and; write &&",
    "if_then_else(A[i, 0] > 0 && A[i, 0] < 1, 1, 0)",
)
in_kernel(
    "word_before_a_condition",
    "SYNTAX",
    "  C[i] = if_then_else(not A[i, 0] > 0, 1, 0)  # <-",
    "there is no not; write !",
    "if_then_else(!(A[i, 0] > 0), 1, 0)",
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
in_kernel("number_past_a_floating_type", "SYNTAX", "  C[i] = A[i, 0] * 1e39  # <-",
          "1e39 does not fit float32; infinity is written inf", "inf")  # fmt: skip
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
    "A is an input and cannot be computed; outputs stand behind ->, as in -> (A: ...)",
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
    "kernel_that_does_not_end",
    "SYNTAX",
    """
    kernel k(A: float32[n]) -> (B: float32[n]) {
      B[i] = A[i]
    # <-""",
    "expected }} at the end of the kernel, but found the end of the file",
    "} behind the last statement",
)  # fmt: skip
wrong.text(
    "function_of_python_in_a_file",
    "SYNTAX",
    "def k(A): return A  # <-",
    "expected a kernel, as in kernel f(A: float32[n]) -> (B: float32[n]) {{ ... }}, but found def",
    "kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] }",
)
wrong.text(
    "schedule_that_names_its_kernel",
    "SYNTAX",
    """
    kernel k(A: float32[n]) -> (B: float32[n]) {
      B[i] = A[i]
      schedule k cpu { parallel(B.i) }  # <-
    }
    """,
    "a schedule names its target alone, as in schedule cpu {{ ... }}, but found cpu",
    "schedule cpu { parallel(B.i) }",
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
    "split_by_more_than_any_loop_has",
    "SPLIT_FACTOR",
    "    split(C.i, factor=9223372036854775807)  # <-",
    "split(i, factor=9223372036854775807): the factor must be at most 2147483647",
    "split(C.i, factor=64)",
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


def two_vectors(name, reason, body, says, fix, **columns):
    """A mistake in the body of a kernel of vectors, with the output C."""
    text = "kernel k(A: float32[n], B: float32[n]) -> (C: float32[n]) {\n" + body + "\n}\n"
    wrong.text(name, reason, text, says, fix, **columns)


two_vectors(
    "floating_index_in_a_file",
    "SYNTAX",
    "  C[i] = B[A[i]]  # <-",
    "an index must be an integer, but this is float32",
    "int64(A[i])",
)
two_vectors(
    "number_among_truth_values",
    "SYNTAX",
    "  C[i] = select(1, A[i], B[i])  # <-",
    "1 is not a bool; write true or false",
    "select(true, A[i], B[i])",
)
two_vectors(
    "tensor_read_before_it_is_computed",
    "SYNTAX",
    "  D: float32[n]\n  C[i] = D[i] + 1  # <-\n  D[i] = A[i]",
    "D is read before it is computed",
    "D[i] = A[i] before C",
)
two_vectors(
    "tensor_without_its_indices_in_a_file",
    "SYNTAX",
    "  C[i] = A + 1  # <-",
    "A has 1 dimension, but is read with 0 indices",
    "A[i] + 1",
)
two_vectors(
    "reduction_over_nothing",
    "SYNTAX",
    "  C[i] = sum[](A[i])  # <-",
    "sum reduces over no axis; write sum[k < n](...)",
    "sum[k < n](A[k])",
)
two_vectors(
    "tensor_declared_twice",
    "SYNTAX",
    "  D: float32[n]\n  D: int32[n]  # <-\n  D[i] = A[i]  C[i] = D[i]",
    "D is declared twice; first at line 2",
    "a name for each",
)
two_vectors(
    "size_named_as_a_tensor",
    "SYNTAX",
    "  size A  # <-\n  C[i] = 1",
    "A is a tensor already",
    "another name",
)
two_vectors(
    "axis_twice_on_the_left",
    "SYNTAX",
    "  D: float32[n, n]\n  D[i, i] = 1  # <-\n  C[i] = D[i, i]",
    "axis i stands twice on the left",
    "D[i, j]",
)
two_vectors(
    "assignment_without_a_left_side",
    "SYNTAX",
    "  scan t { C[0] = 0  3 }  # <-",
    "expected a statement such as C[i] = ..., but found 3",
    "C[t] = C[t - 1] + A[t]",
)
two_vectors(
    "values_that_are_too_few",
    "SYNTAX",
    "  D: float32[n]\n  C[i], D[i] = A[i]  # <-",
    "2 tensors on the left, but 1 value on the right",
    "C[i], D[i] = A[i], B[i]",
)
two_vectors(
    "left_sides_of_different_indices",
    "SYNTAX",
    "  D: float32[n]\n  C[i], D[j] = A[i], B[i]  # <-",
    "the tensors on the left must have the same indices",
    "C[i], D[i] = A[i], B[i]",
)
two_vectors(
    "statement_that_is_none",
    "SYNTAX",
    "  C[i] = A[i]\n  3 + 4  # <-",
    "expected a statement such as C[i] = ..., but found 3",
    "a statement, or nothing",
)
two_vectors(
    "control_character",
    "SYNTAX",
    "  C[i] = A[i]\x07  # <-",
    "unexpected control character 7",
    "no such character",
)
two_vectors(
    "number_of_a_step_too_large",
    "SYNTAX",
    "  C[i] = A[i]\n  schedule cpu { split(C.i, factor=99999999999999999999) }  # <-",
    "99999999999999999999 is too large for a number of a step",
    "factor=64",
)
wrong.text(
    "parameter_without_a_comma",
    "SYNTAX",
    "kernel k(A: float32[n] B: float32[n]) -> (C: float32[n]) { C[i] = A[i] }  # <-",
    "expected , or ) after a parameter, but found B",
    "A: float32[n], B: float32[n]",
)  # fmt: skip


def scattered(name, reason, scatter, says, fix, steps="", **columns):
    """A mistake in a kernel that scatters rows of X to a copy of B."""
    text = (
        "kernel k(B: float32[n, d], at: int64[m], X: float32[m, d], Y: float64[m, d]) -> (H: float32[n, d]) {\n"
        f"  {scatter}\n{steps}}}\n"
    )
    wrong.text(name, reason, text, says, fix, **columns)


GOOD = "H = scatter_add[r < m, c < d](B, at[r], c, X[r, c])"
scattered(
    "scatter_with_too_few_indices",
    "SYNTAX",
    "H = scatter_add[r < m, c < d](B, at[r], X[r, c])  # <-",
    "B has 2 dimensions, but scatter_add got 1 index",
    "an index for each dimension of B",
)
scattered(
    "scatter_to_a_floating_index",
    "SYNTAX",
    "H = scatter_add[r < m, c < d](B, X[r, c], c, X[r, c])  # <-",
    "an index must be an integer, but this is float32",
    "int64(X[r, c])",
)
scattered(
    "scatter_of_another_type",
    "SYNTAX",
    "H = scatter_add[r < m, c < d](B, at[r], c, Y[r, c])  # <-",
    "B is float32, but the update is float64; cast it, as in float32(...)",
    "float32(Y[r, c])",
)
scattered(
    "scatter_of_a_reduction",
    "SCATTER_REDUCTION",
    "H = scatter_add[r < m, c < d](B, at[r], c, sum[k < m](X[k, c]))  # <-",
    "H holds a reduction; compute it in a stage of its own and scatter that",
    "a tensor for the sum",
    kind="Unsupported",
)
scattered(
    "scatter_inlined",
    "COMPUTE_INLINE",
    "T: float32[n, d]\n  T = scatter_add[r < m, c < d](B, at[r], c, X[r, c])\n  H[i, j] = T[i, j]",
    "T is a scatter and cannot be inlined",
    "leave it where it is",
    steps="  schedule cpu { compute_inline(T) }  # <-\n",
)
scattered(
    "scatter_with_its_updates_in_parallel",
    "SCATTER_ORDER",
    GOOD,
    "cannot run r in parallel: its iterations may update one element of H; an axis may run so when an "
    "index of H is that axis",
    "parallel(H.c), whose values are different elements",
    steps="  schedule cpu { parallel(H.r) }  # <-\n",
    kind="Unsupported",
)
scattered(
    "scatter_out_of_order",
    "SCATTER_ORDER",
    "H = scatter_add[r < m, c < d](B, at[r], at[c], X[r, c])  # <-",
    "the loops of H are c, r, but those that may update one element must keep the order r, c",
    "the loops in their order",
    steps="  schedule cpu { reorder(H.c, H.r) }\n",
    kind="Unsupported",
)
scattered(
    "copy_of_a_scatter",
    "CACHE_WRITE",
    GOOD,
    "H is a scatter, which updates its own memory; cache_write a stage that reads it",
    "cache_write of a stage that reads it",
    steps="  schedule cpu { cache_write(H, local) }  # <-\n",
)
two_vectors(
    "size_where_a_tensor_is_read",
    "SYNTAX",
    "  C[i] = n[i] + A[i]  # <-",
    "n is a number, not a tensor, and has no elements",
    "float32(n) for the size, A[i] for an element",
)
two_vectors(
    "tensor_as_an_axis_of_a_step",
    "SYNTAX",
    "  C[i] = A[i]\n  schedule cpu { parallel(C) }  # <-",
    "unknown axis C; write C.i",
    "parallel(C.i)",
)
two_vectors(
    "question_mark",
    "SYNTAX",
    "  C[i] = A[i] > 0 ? A[i] : B[i]  # <-",
    "there is no ?:; write if_then_else(condition, a, b)",
    "if_then_else(A[i] > 0, A[i], B[i])",
)
two_vectors(
    "size_that_nothing_declares",
    "SYNTAX",
    "  D: float32[q]  # <-\n  D[i] = A[i]\n  C[i] = D[i]",
    "unknown size q; one that no argument has is declared before, as size q",
    "size q, or D: float32[n]",
)
two_vectors(
    "tensor_called_as_a_function",
    "SYNTAX",
    "  C[i] = A(i) + 1  # <-",
    "unknown function A; A is a tensor: write A[...]",
    "A[i] + 1",
)
