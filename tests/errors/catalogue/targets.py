"""Mistakes about targets, devices, and what a built function is asked."""

import kiln
from kiln import te

from .entry import Section
from .programs import add_one, chain, matmul

wrong = Section(
    "targets", "Targets and devices",
    "A target is what to compile for, a device where to run. `kiln.compile` needs no device, `kiln.build` does.",
)  # fmt: skip


@wrong(
    "TARGET",
    "unknown target opencl; known: llvm (or cpu), cuda, interpreter",
    fix="llvm or cuda",
    at="build",
)
def unknown_target():
    A, B, C = chain()
    kiln.build([A, C], target="opencl")  # <-


@wrong(
    "TARGET",
    "unknown option -mcpuu=znver4 of target llvm; known: -mcpu=, -arch=",
    fix="-mcpu=znver4",
    at="build",
)
def misspelt_option_of_a_target():
    A, B, C = chain()
    kiln.build([A, C], target="llvm -mcpuu=znver4")  # <-


@wrong(
    "TARGET",
    "a target is a string such as llvm or cuda, but got 3",
    fix='"llvm"',
    at="build",
)
def target_that_is_no_string():
    A, B, C = chain()
    kiln.build([A, C], target=3)  # <-


@wrong(
    "TARGET",
    "a target is a string such as llvm or cuda, but got cpu(0)",
    fix='"llvm"',
    at="build",
)
def device_in_place_of_a_target():
    A, B, C = chain()
    kiln.build([A, C], target=kiln.cpu(0))  # <-


@wrong(
    "ARCH",
    "there is no CPU pentium99; names are those of -march, as {arch} (this host), znver4, "
    "skylake-avx512 or x86-64-v3",
    fix="a name of -march, or leave it out for this host",
    kind="Unsupported", at="build",
)
def unknown_cpu():
    A, B, C = chain()
    kiln.build([A, C], target="llvm -mcpu=pentium99")  # <-


@wrong(
    "ARCH",
    "kernels are planned for neoverse-v2, but no code is made for it, only for x86-64; kiln schedule explain "
    "--arch neoverse-v2 has its schedules",
    fix="a CPU of x86-64, or leave it out for this host",
    kind="Unsupported", at="build",
)
def cpu_of_another_kind():
    A, B, C = chain()
    kiln.build([A, C], target="llvm -mcpu=neoverse-v2")  # <-


@wrong(
    "ARCH",
    "the arch of target llvm must be a name such as x86-64-v3",
    fix='arch="sm_90"',
    at="build",
)
def arch_that_is_no_name():
    A, B, C = chain()
    kiln.compile([A, C], target="llvm", arch="x86 64")  # <-


@wrong(
    "DEVICE",
    "unknown device tpu; known: cpu, cuda, as in cuda:0",
    fix='kiln.device("cuda", 0)',
)
def unknown_device():
    kiln.device("tpu")  # <-


@wrong(
    "DEVICE",
    "Kiln has no opencl devices; its devices are cpu and cuda",
    fix="kiln.cpu(0) or kiln.cuda(0)",
    kind="Unsupported",
)
def device_of_another_system():
    kiln.nd.empty((4,), "float32", kiln.opencl(0))  # <-


@wrong(
    "NO_DEVICE",
    "there is no device cpu:7 here; kiln devices lists those there are",
    fix="kiln.cpu(0)",
    kind="Unavailable", at="run",
)
def device_number_that_is_not_there():
    kiln.nd.empty((4,), device=kiln.cpu(7))  # <-


@wrong(
    "THREAD_EXTENT",
    "i0.inner is bound to threadIdx.x with 4096 iterations, but CUDA allows at most 1024; split it "
    "before bind()",
    fix="a factor of 256",
    at="lower",
)
def too_many_threads_a_block():
    A, B = add_one((1 << 16,))
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=4096)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))  # <-
    kiln.lower(s, [A, B], target="cuda", auto=True, after="check_launch")


@wrong(
    "SOURCE",
    "there is no source cuda of a kernel for llvm; there are lowered, llvm and asm",
    fix='f.source("llvm"), "asm" or "lowered"',
)
def source_of_another_target():
    A, B, C = chain()
    kiln.build([A, C]).source("cuda")  # <-


@wrong(
    "PASS",
    "there is no pass simplfy for llvm; did you mean simplify",
    fix="simplify",
    at="lower",
)
def unknown_pass():
    A, B, C = chain()
    kiln.lower([A, C], after="simplfy")  # <-


@wrong(
    "PASS",
    "there is no pass inlining for llvm; its passes are build_loops, {list}",
    fix="one of those listed",
    at="lower",
)
def pass_unlike_any():
    A, B, C = chain()
    kiln.lower([A, C], after="inlining")  # <-


@wrong(
    "FUNCTION",
    "there is no function matmull; this is matmul",
    fix='f["matmul"]',
    kind="NotFound",
)
def function_by_another_name():
    A, B, C = matmul()
    kiln.build([A, B, C], name="matmul")["matmull"]  # <-


@wrong(
    "TIME_EVALUATOR",
    "time_evaluator: number and repeat must be at least 1",
    fix="number=10",
)
def measurement_of_nothing():
    A, B, C = chain()
    kiln.build([A, C]).time_evaluator("main", kiln.cpu(0), number=0)  # <-


@wrong(
    "MODULE_FILE",
    "cannot read the module /nonexistent/matmul.kiln: No such file or directory",
    fix="a path that export_library wrote",
)
def module_that_is_not_there():
    kiln.load_module("/nonexistent/matmul.kiln")  # <-


@wrong(
    "ARGUMENTS",
    "kernel inc has its arguments; leave args out",
    fix="kiln.build(kernel)",
    at="build",
)
def arguments_of_a_kernel_that_has_them():
    text = "kernel inc(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] + 1 }"
    inc = kiln.parse_kernels(text)["inc"]
    A, B, C = chain()
    kiln.build(inc, [A, C])  # <-


@wrong(
    "ADDRESS",
    "an address is a string, but got int",
    fix='kiln.connect("localhost:7171")',
)
def address_that_is_no_text():
    kiln.connect(7171, default=False)  # <-


@wrong(
    "TARGET",
    "no target is set by a with statement",
    fix='with kiln.target.Target("llvm"):',
)
def current_target_outside_of_with():
    kiln.target.Target.current(allow_none=False)  # <-


@wrong(
    "TARGET",
    'the target {{"kind": llvm}} starts as JSON does, but is none',
    fix='{"kind": "llvm", "mcpu": "znver4"}',
)
def target_that_is_no_json():
    kiln.target.Target('{"kind": llvm}')  # <-


@wrong(
    "SIZE",
    "the kernel is tuned for certain sizes, but n is not given; give each size, or the inputs",
    fix='sizes={"n": 512, ...}, or data=[a, b]',
    at="run",
)
def tuning_without_sizes():
    A, B, C = matmul()
    kiln.tune([A, B, C], progress=False)  # <-


@wrong(
    "NOTHING_TO_TUNE",
    "the kernel leaves nothing open: every stage has steps, or one way to run; tune measures schedules for "
    "stages without steps",
    fix="leave the steps out",
    kind="Unsupported", at="run",
)
def tuning_of_what_has_a_schedule():
    A, B = add_one((1 << 16,))
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    kiln.tune(s, [A, B], progress=False)  # <-


@wrong(
    "TUNE_BUDGET",
    "tune: trials and seconds must be at least 0",
    fix="seconds=60, or leave it out",
)
def tuning_for_less_than_no_time():
    A, B = add_one((1 << 16,))
    kiln.tune([A, B], seconds=-1, progress=False)  # <-


@wrong(
    "TUNE_INPUTS",
    "there is no sm_90 here to run the kernel on, so that its schedules are judged by their code; give its sizes "
    "instead of inputs",
    fix='sizes={"n": 512, ...}, or none where all are constants',
    at="run",
)
def tuning_on_inputs_without_the_gpu():
    A, B = add_one((1 << 16,))
    kiln.tune([A, B], target="cuda", arch="sm_90", data=[kiln.nd.empty((1 << 16,))], progress=False)  # <-


@wrong(
    "SIZE",
    "a report predicts the kernel for certain sizes, but l is not given; give each size",
    fix='report({"n": 512, "m": 512, "l": 512})',
    at="run",
)
def report_of_some_sizes():
    A, B, C = matmul()
    kiln.compile([A, B, C], target="cuda", arch="sm_90").report({"n": 512, "m": 512})  # <-


@wrong(
    "ARCH",
    "sm_90 is no CPU, but a GPU; compile for the target cuda",
    fix='target="cuda"',
    kind="Unsupported", at="build",
)
def gpu_of_a_target_that_is_a_cpu():
    A, B, C = chain()
    kiln.compile([A, C], target="llvm", arch="sm_90")  # <-


@wrong(
    "ARGUMENTS",
    "args= is a schedule; the schedule comes first: build(s, [A, B, C])",
    fix="kiln.build(s, [A, C])",
)
def schedule_after_the_arguments():
    A, B, C = chain()
    kiln.build([A, C], te.create_schedule(C.op))  # <-
