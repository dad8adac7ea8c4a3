"""Mistakes of programs in C++. The programs stand in tests/errors/cpp."""

from .entry import Section

wrong = Section(
    "cpp_programs", "Programs in C++",
    "An error of the C++ client is a `kiln::Error`; `what()` ends with the line of the program, which `file()` and "
    "`line()` give. Here `Chain` holds `B = A + 1`, `C = B * 2` and their schedule `s`, `RunningSum` the parts of a "
    "scan, `matmul()` and `gather()` are kernels ready to be called.",
)  # fmt: skip

cpp = wrong.cpp
cpp(
    "too_few_arguments", "ARGUMENT_COUNT",
    "matmul takes 3 arguments (A, B, C), but got 1",
    "f(a, b), or f(a, b, c) with an array for the output",
)  # fmt: skip
cpp(
    "argument_of_another_rank", "ARGUMENT_RANK",
    "argument B of matmul has 1 dimension, but must have 2",
    "Array({3, 4})",
)  # fmt: skip
cpp(
    "argument_of_another_type", "ARGUMENT_TYPE",
    "argument B of matmul is float64, but must be float32",
    "Array({3, 4}, kiln::float32)",
)  # fmt: skip
cpp(
    "sizes_that_do_not_agree", "ARGUMENT_SHAPE",
    "argument B of matmul: dimension 0 is 4, but must be 3 (l, from dimension 1 of A)",
    "Array({3, 4})", at="run",
)  # fmt: skip
cpp(
    "output_of_another_shape", "ARGUMENT_SHAPE",
    "argument C of matmul: dimension 1 is 5, but must be 4 (m, from dimension 1 of B)",
    "Array({2, 4}), or leave it out: f(a, b) returns a new one", at="run",
)  # fmt: skip
cpp(
    "wrong_argument_of_a_call_without_waiting", "ARGUMENT_SHAPE",
    "argument B of matmul: dimension 0 is 4, but must be 3 (l, from dimension 1 of A)",
    "Array({3, 4}); get() throws what the call was refused for", at="run",
)  # fmt: skip
cpp(
    "index_from_data_outside", "INDEX_OUT_OF_RANGE",
    "B of gather reads index 9 of dimension 0 of A, but its extent there is 4",
    "indices from 0 to 3", at="run",
)  # fmt: skip
cpp(
    "values_that_do_not_fill_the_array", "VALUE_COUNT",
    "an array of shape (2, 2) has 4 values, but got 3",
    "a shape of as many elements as there are values",
)  # fmt: skip
cpp(
    "array_read_as_another_type", "VALUE_TYPE",
    "the array is float64, but is read as float32",
    "a.values<double>()",
)  # fmt: skip
cpp(
    "array_of_a_negative_dimension", "SHAPE",
    "dimension 1 of an array is -1, but must be at least 0",
    "dimensions of 0 or more",
)  # fmt: skip
cpp(
    "array_larger_than_memory", "SIZE_OVERFLOW",
    "an array of shape (1099511627776, 1099511627776) has more bytes than memory can hold",
    "a smaller array", kind="ResourceExhausted",
)  # fmt: skip
cpp(
    "unknown_source", "SOURCE",
    "there is no source opencl of a kernel for llvm; there are lowered, llvm and asm",
    "f.source(\"asm\")",
)  # fmt: skip
cpp(
    "upload_to_a_device_that_is_not_there", "NO_DEVICE",
    "there is no device cuda:7 here; kiln devices lists those there are",
    "\"cpu:0\"", kind="Unavailable",
)  # fmt: skip
cpp(
    "address_that_is_none", "ADDRESS",
    "the address localhost is not of the form HOST:PORT or unix:PATH",
    "\"localhost:7411\"",
)  # fmt: skip
cpp(
    "service_that_does_not_run", "UNREACHABLE",
    "nothing listens at unix:/nowhere/kilnd.sock, there is no such socket: start kilnd there, or correct "
    "the address",
    "start kilnd there, or leave the address out for a private daemon", kind="Unavailable",
)  # fmt: skip
cpp(
    "closed_connection", "CLOSED",
    "the connection to {list} is closed",
    "close it last",
)  # fmt: skip
cpp(
    "kernel_file_that_is_not_there", "FILE",
    "matmull.kiln cannot be read: there is no such file, or no right to read it",
    "the path of the file", kind="NotFound",
)  # fmt: skip
cpp(
    "mistake_in_the_text_of_a_kernel", "SYNTAX",
    "unknown name b",
    "a size, an axis or a tensor of the kernel",
)  # fmt: skip
cpp(
    "operator_that_is_not_there", "OPERATOR",
    "unknown operator softmaxx; did you mean softmax",
    "kiln::load_operator(\"softmax\")",
)  # fmt: skip
cpp(
    "definition_called_on_another_shape", "ARGUMENT_SHAPE",
    "argument B of matmul: dimension 0 is 4, but must be 3 (l, from dimension 1 of A)",
    "B of shape (3, n)",
)  # fmt: skip
cpp(
    "one_array_of_two_outputs", "OUTPUT_COUNT",
    "the call has 2 outputs: take them by their positions",
    "const auto both = f(a); both[0], both[1]",
)  # fmt: skip
cpp(
    "too_few_indices", "INDEX_COUNT",
    "tensor A has 2 dimensions, but got 1 index",
    "A(i, 0)",
)  # fmt: skip
cpp(
    "body_of_another_number_of_indices", "BODY_ARITY",
    "B has 2 dimensions, but its body takes 1 index",
    "[&](Expr i, Expr j) { ... }",
)  # fmt: skip
cpp(
    "index_that_is_floating", "INDEX_TYPE",
    "index 0 of tensor A must be an integer, but is float32",
    "kiln::cast(i * 0.5, kiln::int64), or kiln::floordiv(i, 2)",
)  # fmt: skip
cpp(
    "constant_index_outside_of_the_tensor", "INDEX_RANGE",
    "index 4 of tensor A is out of range: dimension 0 is 4",
    "A(3)",
)  # fmt: skip
cpp(
    "integers_divided_by_a_slash", "INTEGER_DIVISION",
    "a / b of integers is ambiguous: write floordiv(a, b) to round down or truncdiv(a, b) to round to "
    "zero",
    "kiln::floordiv(A(i), 2)",
)  # fmt: skip
cpp(
    "integer_and_floating_mixed", "OPERAND_TYPE",
    "bitwise_and takes integers of one type, or bools, but got float32 and float32",
    "kiln::cast(A(i), kiln::int32) & 1",
)  # fmt: skip
cpp(
    "select_of_two_types", "OPERAND_TYPE",
    "select takes a bool and two values of one type, but got float32 and float32 and float32",
    "kiln::select(A(i) > 0, A(i), 0.0F)",
)  # fmt: skip
cpp(
    "fraction_as_an_integer", "CONSTANT_TYPE",
    "the constant 0.5 is not of type int32: cast it, or give an integer",
    "kiln::constant(0.5, float32)",
)  # fmt: skip
cpp(
    "negative_dimension", "SHAPE",
    "A: dimension 1 is -3, but must be 0 or more",
    "placeholder({4, 3})",
)  # fmt: skip
cpp(
    "dimension_that_is_floating", "INDEX_TYPE",
    "dimension 0 of A must be an integer, but is float32",
    "an integer or a kiln::var",
)  # fmt: skip
cpp(
    "names_for_other_axes", "AXIS_NAMES",
    "B has 2 dimensions, but 1 name for its axes",
    "{\"B\", {\"i\", \"j\"}}",
)  # fmt: skip
cpp(
    "reduction_that_ends_before_it_begins", "AXIS_EXTENT",
    "reduce_axis k ends at 4, before its begin 8",
    "reduce_axis(4, 8, \"k\")",
)  # fmt: skip
cpp(
    "reduction_over_no_axis", "REDUCTION_AXES",
    "sum needs at least one axis to run over: make one with reduce_axis",
    "kiln::sum(A(k), k)",
)  # fmt: skip
cpp(
    "logical_reduction_of_numbers", "OPERAND_TYPE",
    "any takes a bool, but got float32",
    "kiln::any(A(k) != 0, k)",
)  # fmt: skip
cpp(
    "reducer_with_an_identity_of_another_type", "REDUCER",
    "identity 0 of product is int64, but must be float32; cast it",
    "1.0F",
)  # fmt: skip
cpp(
    "reducer_of_two_values_given_one", "REDUCTION_SOURCES",
    "arg_max combines 2 values, but got 1",
    "arg_max({k, A(k)}, k)",
)  # fmt: skip
cpp(
    "reduction_axis_outside_of_its_sum", "AXIS_SCOPE",
    "reduce axis k is used in B but no reducer reduces over it",
    "kiln::sum(A(i, k), k) * 2", at="build",
)  # fmt: skip
cpp(
    "read_past_the_end", "READ_BOUNDS",
    "B reads A[i0 + 1], whose index 0 reaches n, but A has 0 to n - 1 there; guard the read with "
    "if_then_else or change the shape",
    "compute({n - 1}, ...)", at="build",
)  # fmt: skip
cpp(
    "tensors_that_do_not_broadcast", "BROADCAST",
    "add of tensors: A of shape (4,) and B of shape (3,) do not broadcast to one shape",
    "equal dimensions, or dimensions of 1",
)  # fmt: skip
cpp(
    "split_by_zero", "SPLIT_FACTOR",
    "split(i, factor=0): the factor must be at least 1",
    "a factor of 1 or more",
)  # fmt: skip
cpp(
    "split_of_an_axis_that_was_split", "AXIS_CONSUMED",
    "vectorize(i): axis i was split into i.outer, i.inner at line {before}",
    "vectorize(inner), where [outer, inner] is what split returned",
)  # fmt: skip
cpp(
    "axis_of_another_stage", "FOREIGN_AXIS",
    "parallel(i): axis i belongs to stage B, not to C",
    "k.C.axis(0)",
)  # fmt: skip
cpp(
    "axis_that_a_tensor_has_not", "NO_AXIS",
    "C has 1 axis, so there is no axis 1",
    "k.C.axis(0)",
)  # fmt: skip
cpp(
    "stage_of_another_schedule", "FOREIGN_STAGE",
    "C is not a stage of this schedule: none of its outputs is computed from it",
    "other.s[other.C]",
)  # fmt: skip
cpp(
    "step_on_an_input", "STEP_ON_PLACEHOLDER",
    "compute_inline(): A is a placeholder, so there is nothing to schedule",
    "a step on a stage that reads it, or cache_read(A, ...)",
)  # fmt: skip
cpp(
    "axes_of_an_input", "NOT_COMPUTED",
    "A is not made by compute, so it has no axes",
    "k.C.axis(0)",
)  # fmt: skip
cpp(
    "misspelt_thread", "THREAD_TAG",
    "unknown thread axis threadIdx.q; known: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
    "threadIdx.y, threadIdx.z, vthread",
    "\"threadIdx.x\"",
)  # fmt: skip
cpp(
    "misspelt_memory", "MEMORY_SCOPE",
    "unknown memory scope sharedd; known: global, shared, shared.dyn, local, warp, wmma.matrix_a, "
    "wmma.matrix_b, wmma.accumulator",
    "\"shared\"",
)  # fmt: skip
cpp(
    "copy_for_a_stage_that_does_not_read_it", "CACHE_READ",
    "C does not read A",
    "{k.B}",
)  # fmt: skip
cpp(
    "vectors_of_any_length", "VECTORIZE_EXTENT",
    "cannot vectorize i: its extent n is not a constant; split it first",
    "split(k.C.axis(0), 8), and vectorize the inner axis", kind="Unsupported", at="build",
)  # fmt: skip
cpp(
    "output_computed_inline", "COMPUTE_INLINE",
    "C is an output and cannot be inlined",
    "k.s[k.B].compute_inline()", at="build",
)  # fmt: skip
cpp(
    "time_of_a_scan_in_parallel", "SCAN_TIME",
    "the time axis of a scan is sequential",
    "parallel(update.axis(1))", at="build",
)  # fmt: skip
cpp(
    "scan_axis_of_a_compute", "NOT_A_SCAN",
    "C is not made by scan, so it has no scan axis",
    "k.C.axis(0)",
)  # fmt: skip
cpp(
    "scan_from_an_init_of_another_type", "SCAN_TYPE",
    "scan S: init zero, update update and state state must have one dtype, but are int32, float32 and "
    "float32",
    "kiln::constant(0.0, float32)",
)  # fmt: skip
cpp(
    "scan_that_reads_its_own_step", "SCAN_TIME",
    "scan S: update reads state at t (current step); it may read only t-1",
    "k.state(t - 1, i)", at="build",
)  # fmt: skip
cpp(
    "argument_that_is_missing", "PLACEHOLDER_NOT_GIVEN",
    "B reads placeholder A, which is not an argument; list A among the arguments",
    "{k.A, k.C}", at="build",
)  # fmt: skip
cpp(
    "no_output_among_the_arguments", "NO_OUTPUT",
    "there is no output among the arguments (A); list a computed tensor, too",
    "{k.A, k.C}", at="build",
)  # fmt: skip
cpp(
    "same_argument_twice", "PARAMETER_TWICE",
    "A is listed twice among the arguments",
    "each once", at="build",
)  # fmt: skip
cpp(
    "unknown_target", "TARGET",
    "there is no target opencl; known are llvm (or cpu), cuda and interpreter",
    "\"llvm\" or \"cuda\"", at="build",
)  # fmt: skip
cpp(
    "architecture_given_to_build", "ARCH",
    "build takes the architecture from the device: use compile for znver4",
    "connect().compile(...), or leave it out",
)  # fmt: skip
cpp(
    "device_that_the_service_lacks", "NO_DEVICE",
    "this host has no NVIDIA driver (libcuda.so.1 was not found); install the driver, or run where there "
    "is a GPU; to compile without one, name an arch such as sm_90",
    "a service on a host with a GPU, or compile with an arch", kind="Unavailable", at="build",
)  # fmt: skip
cpp(
    "unknown_pass", "PASS",
    "there is no pass vectorise_loops for llvm; did you mean vectorize_loops",
    "\"vectorize_loops\"", at="lower",
)  # fmt: skip
cpp(
    "schedule_saved_to_no_folder", "FILE",
    "/nowhere/chain.kiln cannot be written: there is no such folder, or no right to write there",
    "a folder that is there", kind="NotFound",
)  # fmt: skip
cpp(
    "shape_of_what_a_step_makes", "STEP_SHAPE",
    "A.local is made by a step, so its shape is known to the service alone",
    "axis(d) of it; the service knows its shape", kind="Unsupported",
)  # fmt: skip
cpp(
    "more_stages_than_a_kernel_may_have", "LIMIT",
    "B ends a chain of 4097 stages; the limit is 4096: let another kernel begin at one of them",
    "several kernels; a loop over steps is a scan", kind="ResourceExhausted",
)  # fmt: skip
cpp(
    "array_for_two_outputs", "ARGUMENT_OVERLAP",
    "arguments B and C of two are both written, but share memory",
    "an array for each, or f(a)", at="run",
)  # fmt: skip
cpp(
    "read_before_the_first", "READ_BOUNDS",
    "B reads A[i - 1], whose index 0 reaches -1, but A has 0 to n - 1 there; guard the read with if_then_else or "
    "change the shape",
    "kiln::if_then_else(i > 0, A(i) - A(i - 1), A(i))", at="build",
)  # fmt: skip
cpp(
    "window_past_the_end", "READ_BOUNDS",
    "Y reads X[i + k], whose index 0 reaches 9, but X has 0 to 7 there; guard the read with if_then_else or change the "
    "shape",
    "compute({6}, ...)", at="build",
)  # fmt: skip
cpp(
    "shape_that_was_not_transposed", "INDEX_OUT_OF_RANGE",
    "B of transpose reads index 3 of dimension 1 of A, but its extent there is 3",
    "A(j, i)", at="run",
)  # fmt: skip
cpp(
    "sum_over_the_rows_of_each_row", "INDEX_OUT_OF_RANGE",
    "B of row_sums reads index 3 of dimension 1 of A, but its extent there is 3",
    'reduce_axis(m, "k")', at="run",
)  # fmt: skip
