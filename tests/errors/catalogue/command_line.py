"""Mistakes on the command line. A file that ends with .npy holds the array that its text says."""

from .entry import Section

wrong = Section(
    "command_line", "The command `kiln`",
    "Exit codes: 1 the request was wrong, 2 the command was, 3 the service failed or cannot be reached, 4 a deadline passed. "
    "With `--json` kind, reason, message, notes, file and line go to stdout.",
)  # fmt: skip

INC = "kernel inc(A: float32[n]) -> (B: float32[n]) {\n  B[i] = A[i] + 1\n}\n"
GATHER = "kernel gather(A: float32[n], I: int64[m]) -> (B: float32[m]) {\n  B[i] = A[I[i]]\n}\n"
WINDOW = "kernel window(X: float32[n]) -> (Y: float32[n - w + 1]) {\n  size w\n  Y[i] = sum[k < w](X[i + k])\n}\n"


def _named(files):
    """a_npy as a.npy, inc as inc.kiln"""
    return {name.replace("_", ".") if "_" in name else f"{name}.kiln": text for name, text in files.items()}


def usage(name, command, says, fix, **files):
    wrong.command(name, "USAGE", command, says, fix, 2, files=_named(files))


usage(
    "unknown_command",
    "kiln runn inc.kiln",
    "there is no command runn; did you mean run",
    "kiln run inc.kiln",
    inc=INC,
)
usage(
    "no_file",
    "kiln run",
    "FILE is required; kiln run --help shows how",
    "kiln run inc.kiln",
)
usage(
    "steps_of_a_kernel",
    "kiln run inc.kiln --in A=a.npy --steps 3",
    "only programs take steps, but a kernel of inc.kiln is run; leave --steps, --epochs, --batch, --first-step and "
    "--stop-on-nan out",
    "kiln run inc.kiln --in A=a.npy",
    inc=INC,
    a_npy="np.ones(3, 'float32')",
)
usage(
    "parameter_of_a_program_that_is_not_given",
    "kiln run count.kiln --steps 3",
    "count needs parameter w: give it with --in NAME=FILE.npy",
    "kiln run count.kiln --in w=w.npy --steps 3",
    count=INC + "program count {\n  parameter w\n  v = inc(w)\n  update w = v\n}\n",
)
usage(
    "array_in_place_of_a_kernel_file",
    "kiln run a.npy",
    "a.npy is an array, but FILE is a kernel file; give arrays with --in NAME=a.npy",
    "kiln run inc.kiln --in A=a.npy",
    a_npy="np.ones(3, np.float32)",
)
usage(
    "size_that_the_kernel_lacks",
    "kiln run inc.kiln --in A=a.npy --size k=3",
    "inc has no size k; its sizes are n",
    "--size n=3, or none: A says it",
    a_npy="np.ones(3, np.float32)", inc=INC,
)
usage(
    "unknown_flag",
    "kiln run inc.kiln --speed",
    "kiln run has no flag --speed; kiln run --help shows how",
    "kiln run --help lists the flags",
    inc=INC,
)
usage(
    "input_that_is_not_given",
    "kiln run inc.kiln",
    "inc needs A: float32[n]: give it with --in NAME=FILE.npy",
    "--in A=a.npy",
    inc=INC,
)
usage(
    "input_that_the_kernel_lacks",
    "kiln run inc.kiln --in X=a.npy",
    "inc has no input X",
    "--in A=a.npy",
    inc=INC,
)
usage(
    "input_without_a_file",
    "kiln run inc.kiln --in A",
    "--in A: write NAME=FILE.npy",
    "--in A=a.npy",
    inc=INC,
)
usage(
    "several_kernels",
    "kiln compile two.kiln",
    "two.kiln has several kernels: choose one of inc, gather with --kernel",
    "--kernel inc",
    two=INC + GATHER,
)
usage(
    "unknown_kernel",
    "kiln compile inc.kiln --kernel ink",
    "inc.kiln has no kernel ink; it has inc",
    "--kernel inc",
    inc=INC,
)
usage(
    "unknown_device_of_a_command",
    "kiln run inc.kiln --device tpu",
    "there is no device tpu; known are cpu, cuda:0 and further GPUs by their numbers",
    "--device cpu",
    inc=INC,
)
usage(
    "tune_on_a_numbered_gpu",
    "kiln tune inc.kiln --device cuda:1",
    "tune measures on the first GPU, and what it finds serves all; leave the number out of --device cuda:1",
    "--device cuda",
    inc=INC,
)
usage(
    "unknown_target_of_a_command",
    "kiln compile inc.kiln --target tpu",
    "there is no target tpu; known are llvm (or cpu) and cuda",
    "--target llvm",
    inc=INC,
)
usage(
    "size_that_is_no_number",
    "kiln run window.kiln --in X=x.npy --size w=three",
    "--size w=three: three is no whole number",
    "--size w=3",
    window=WINDOW,
    x_npy="np.ones(9, 'float32')",
)


def refused(name, reason, command, says, fix, exit_code=1, kind="InvalidArgument", **files):
    wrong.command(name, reason, command, says, fix, exit_code, kind, "run",
                  files=_named(files))


refused(
    "file_that_is_not_there",
    "FILE",
    "kiln run ink.kiln",
    "ink.kiln cannot be read: there is no such file, or no right to read it",
    "the path of a kernel file",
    kind="NotFound",
)
refused(
    "array_that_is_not_there",
    "FILE",
    "kiln run inc.kiln --in A=a.npy",
    "a.npy cannot be read: there is no such file, or no right to read it",
    "the path of an array",
    kind="NotFound",
    inc=INC,
)
refused(
    "array_that_is_none",
    "NPY",
    "kiln run inc.kiln --in A=inc.kiln",
    "inc.kiln: this is no .npy file",
    "a file that numpy.save wrote",
    inc=INC,
)
refused(
    "array_of_another_type",
    "ARGUMENT_TYPE",
    "kiln run inc.kiln --in A=a.npy",
    "argument A of inc is int32, but must be float32",
    'a.astype("float32")',
    inc=INC,
    a_npy="np.ones(3, 'int32')",
)
refused(
    "array_of_another_rank",
    "ARGUMENT_RANK",
    "kiln run inc.kiln --in A=a.npy",
    "argument A of inc has 2 dimensions, but must have 1",
    "an array of one dimension",
    inc=INC,
    a_npy="np.ones((3, 3), 'float32')",
)
refused(
    "index_past_the_end_of_the_data",
    "INDEX_OUT_OF_RANGE",
    "kiln run gather.kiln --in A=a.npy --in I=i.npy",
    "B of gather reads index 7 of dimension 0 of A, but its extent there is 3",
    "indices from 0 to n - 1",
    gather=GATHER,
    a_npy="np.ones(3, 'float32')",
    i_npy="np.array([0, 7])",
)
refused(
    "size_that_no_input_gives",
    "SIZE_MISSING",
    "kiln run window.kiln --in X=x.npy",
    "size w of window is not given by any argument; pass it as a size",
    "--size w=3",
    window=WINDOW,
    x_npy="np.ones(9, 'float32')",
)
refused(
    "mistake_in_a_kernel_file",
    "SYNTAX",
    "kiln compile inc.kiln",
    "expected an expression, but found }}",
    "A[i] + 1",
    inc=INC.replace("+ 1", "+"),
)
refused(
    "value_of_a_program_that_is_misspelt",
    "SYNTAX",
    "kiln run heat.kiln --in start=a.npy",
    "program heat has no value stat; did you mean start",
    "B = inc(start)",
    heat=INC + "program heat {\n  input start\n  B = inc(stat)\n  output B\n}\n",
    a_npy="np.ones(3, 'float32')",
)
refused(
    "schedule_that_does_not_fit",
    "SYNTAX",
    "kiln compile inc.kiln --schedule inc.sched",
    "unknown axis C.i; did you mean B.i",
    "split(B.i, factor=4)",
    inc=INC,
    inc_sched="schedule cpu {\n  split(C.i, factor=4)\n}\n",
)
refused(
    "unknown_pass_of_a_command",
    "PASS",
    "kiln lower inc.kiln --after vectorise_loops",
    "there is no pass vectorise_loops for llvm; did you mean vectorize_loops",
    "--after vectorize_loops",
    inc=INC,
)
refused(
    "unknown_job",
    "JOB",
    "kiln wait job-0",
    "there is no job job-0; kiln jobs lists those there are",
    "an id that kiln submit printed",
    kind="NotFound",
)
refused(
    "service_that_is_not_there",
    "UNREACHABLE",
    "kiln devices --address unix:/nowhere/kilnd.sock",
    "nothing listens at unix:/nowhere/kilnd.sock, there is no such socket: start kilnd there, or correct "
    "the address",
    "the address of a daemon, or none for a private one",
    exit_code=3,
    kind="Unavailable",
)
refused(
    "address_that_is_none",
    "ADDRESS",
    "kiln devices --address daemon",
    "the address daemon is not of the form HOST:PORT or unix:PATH",
    "HOST:PORT or unix:PATH",
)
refused(
    "certificate_that_is_not_there",
    "CA_FILE",
    "kiln devices --address localhost:1 --ca ca.pem",
    "the file of authorities ca.pem cannot be read",
    "the path of a PEM file",
    kind="NotFound",
)
usage(
    "schedule_for_another_target",
    "kiln run inc.kiln --in A=a.npy --schedule gpu.kiln",
    "gpu.kiln has no schedule for cpu; it has one for cuda",
    "--device cuda:0, or a block schedule cpu { ... }",
    a_npy="np.ones(3, np.float32)", inc=INC, gpu="schedule cuda {\n  bind(B.i, threadIdx.x)\n}\n",
)
refused(
    "reason_that_no_error_has",
    "REASON",
    "kiln explain SPLIT_FACTORS",
    "no error has the reason SPLIT_FACTORS; did you mean SPLIT_FACTOR",
    "kiln explain SPLIT_FACTOR",
    kind="NotFound",
)
