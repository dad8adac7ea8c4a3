"""Mistakes in steps that say how memory lies, what is fetched, and what a loop becomes."""

import kiln
from kiln import te

from .entry import Section
from .programs import chain, matmul, running_sum

wrong = Section(
    "steps_hints", "Steps on memory and instructions",
    "storage_align, storage_swizzle, double_buffer, prefetch, pragma, tensorize, env_threads and software_pipeline.",
)  # fmt: skip


@wrong(
    "SPLIT_FACTOR",
    "storage_align(i, factor=0): the factor must be at least 1",
    fix="factor=8",
)
def storage_align_by_zero():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].storage_align(C.op.axis[0], 0, 0)  # <-


@wrong(
    "STEP_FIELDS",
    "storage_align(i): the factor must be an integer constant, but is f",
    fix="factor=8",
)
def storage_align_by_a_size():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].storage_align(C.op.axis[0], te.var("f"), 0)  # <-


@wrong(
    "STORAGE_ALIGN",
    "storage_align(i, factor=1099511627776): the factor must be at most 1048576",
    fix="a factor that rows can have",
    at="build",
)
def storage_align_by_too_much():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].storage_align(B.op.axis[0], 1 << 40, 0)  # <-
    kiln.build(s, [A, C])


@wrong(
    "STORAGE_SWIZZLE",
    "storage_swizzle(B) takes a power of two of elements, at most 1048576, but got 96",
    fix="every=128",
    at="build",
)
def storage_swizzle_by_no_power_of_two():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].storage_swizzle(96)  # <-
    kiln.build(s, [A, C])


@wrong(
    "STORAGE_SWIZZLE",
    "storage_swizzle(B, every=16): 16 bytes change places among 128, which are 32 elements of float32, so `every` must be at "
    "least that",
    fix="every=32",
    at="build",
)
def storage_swizzle_by_less_than_all_banks():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].storage_swizzle(16)  # <-
    kiln.build(s, [A, C])


@wrong(
    "STORAGE_SWIZZLE",
    "C is an output, whose memory is the caller's; swizzle a cache_write of it",
    fix="storage_swizzle of a copy in shared memory",
    at="build",
)
def storage_swizzle_of_an_output():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].storage_swizzle(128)  # <-
    kiln.build(s, [A, C])


@wrong(
    "DOUBLE_BUFFER",
    "C is an output, whose memory is the caller's; double a cache_write of it",
    fix="double_buffer of a stage that is computed at a loop",
    at="build",
)
def double_buffer_of_an_output():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].double_buffer()  # <-
    kiln.build(s, [A, C])


@wrong(
    "DOUBLE_BUFFER",
    "cannot double B: it is computed once, and no iterations take turns with it; compute_at it inside "
    "a loop of what reads it",
    fix="compute_at, then double_buffer",
    at="build",
)
def double_buffer_at_the_root():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].double_buffer()  # <-
    kiln.build(s, [A, C])


@wrong(
    "PRAGMA",
    "unknown pragma go_faster; known: {list}",
    fix="a pragma that is listed",
    at="build",
)
def unknown_pragma():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].pragma(C.op.axis[0], "go_faster")  # <-
    kiln.build(s, [A, C])


@wrong(
    "PREFETCH",
    "cannot prefetch A in i of C: C does not read it",
    fix="s[C].prefetch(B, i, 1)",
    at="build",
)
def prefetch_of_what_is_not_read():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].prefetch(A, C.op.axis[0], 1)  # <-
    kiln.build(s, [A, C])


@wrong(
    "PREFETCH",
    "C cannot prefetch itself",
    fix="s[C].prefetch(B, i, 1)",
    at="build",
)
def prefetch_of_itself():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].prefetch(C, C.op.axis[0], 1)  # <-
    kiln.build(s, [A, C])


@wrong(
    "INTRINSIC",
    "unknown intrinsic amx; known: {list}",
    fix="an intrinsic that is listed",
    at="build",
)
def unknown_intrinsic():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], "amx")  # <-
    kiln.build(s, [A, B, C])


@wrong(
    "INTRINSIC",
    "tensorize(j) takes the name of an intrinsic, such as 'x86.dot.u8s8s32', but got int",
    fix="the name of an intrinsic",
)
def intrinsic_that_is_no_name():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], 16)  # <-


@wrong(
    "THREAD_AXIS",
    "env_threads of S takes thread axes, but got 32",
    fix='te.thread_axis("threadIdx.x")',
)
def env_threads_of_numbers():
    X, S = running_sum()
    s = te.create_schedule(S.op)
    s[S].env_threads([32])  # <-


@wrong(
    "ENV_THREADS",
    "C is no scan; bind its axes to threads instead",
    fix="env_threads of a scan",
    at="build",
)
def env_threads_of_a_compute():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].env_threads([te.thread_axis("threadIdx.x")])  # <-
    kiln.build(s, [A, C])


@wrong(
    "SOFTWARE_PIPELINE",
    "software_pipeline(i) takes 2 to 16 stages, but got 0",
    fix="stages=2",
    at="build",
)
def software_pipeline_of_no_stages():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].software_pipeline(C.op.axis[0], 0)  # <-
    kiln.build(s, [A, C])


@wrong(
    "TRANSFORM_LAYOUT",
    "C is an output, whose memory is the caller's; transform a cache_write of it",
    fix="CC = s.cache_write(C, 'global'), then s[CC].transform_layout(...)",
    at="build",
)
def layout_of_an_output():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].transform_layout(lambda i: [i // 4, i % 4])  # <-
    kiln.build(s, [A, C])


@wrong(
    "TRANSFORM_LAYOUT",
    "transform_layout of B takes a function of 1 indices, but got one of 2",
    fix="lambda i: [i // 4, i % 4]",
)
def layout_of_other_dimensions():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].transform_layout(lambda i, j: [j, i])  # <-


@wrong(
    "TRANSFORM_LAYOUT",
    "transform_layout of B takes indices of the stage with // and % by constants, but got i * 2",
    fix="lambda i: [i // 4, i % 4]",
)
def layout_with_gaps():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].transform_layout(lambda i: [i * 2])  # <-


@wrong(
    "TRANSFORM_LAYOUT",
    "transform_layout of B: after floormod(i, 4) there must be an index that counts i on, as in [i // 4, i % 4]",
    fix="lambda i: [i // 4, i % 4]",
)
def layout_that_starts_again():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].transform_layout(lambda i: [i % 4])  # <-
