"""Mistakes in the schedules of kernel files."""

from .entry import Section

wrong = Section(
    "text_schedules", "Schedules in kernel files",
    "A step of a kernel file names its stages and axes in full: `split(C.i, factor=4)`.",
)  # fmt: skip

TWO_STAGES = """kernel k(A: float32[n]) -> (C: float32[n]) {{
  B: float32[n]
  B[i] = A[i] * 2
  C[i] = B[i] + 1
  schedule {target} {{
{steps}
  }}
}}
"""
THREE_STAGES = """kernel k(A: float32[n]) -> (D: float32[n]) {{
  B: float32[n]
  C: float32[n]
  B[i] = A[i] * 2
  C[i] = B[i] + 1
  D[i] = C[i] * 3
  schedule {target} {{
{steps}
  }}
}}
"""
SUMS = """kernel k(A: float32[n, l]) -> (C: float32[n]) {{
  B: float32[n]
  B[i] = sum[k < l](A[i, k])
  C[i] = B[i] + sum[k < l](A[i, k])
  schedule {target} {{
{steps}
  }}
}}
"""
GRID = """kernel k(A: float32[n, m]) -> (C: float32[n, m]) {{
  B: float32[n, m]
  B[i, j] = A[i, j] * 2
  C[i, j] = B[i, j] + 1
  schedule {target} {{
{steps}
  }}
}}
"""
STENCIL = """kernel k(A: float32[66, m]) -> (C: float32[64, m]) {{
  B: float32[66, m]
  B[i, j] = A[i, j] * 2
  C[i, j] = B[i, j] + B[i + 2, j]
  schedule {target} {{
{steps}
  }}
}}
"""
DIAGONAL = STENCIL.replace("[66, m]", "[66, 66]").replace("[64, m]", "[64, 64]").replace(
    "B[i, j] + B[i + 2, j]", "B[i, i] + B[i + 2, i + 2]"
)
BACKWARDS = STENCIL.replace("B[i, j] + B[i + 2, j]", "B[63 - i, j] + B[65 - i, j]")
BORDERS = STENCIL.replace("B[i, j] + B[i + 2, j]", "B[0, j] + B[65, j]")
SHIFTED = """kernel k(A: float32[66, m]) -> (D: float32[64, m]) {{
  B: float32[66, m]
  C: float32[64, m]
  B[i, j] = A[i, j] * 2
  C[i, j] = B[i, j] + B[i + 2, j]
  D[i, j] = C[i, j] + if_then_else(i > 0, C[i - 1, j], 0.0)
  schedule {target} {{
{steps}
  }}
}}
"""
SCAN = """kernel k(X: float32[m, n]) -> (S: float32[m, n]) {{
  scan t {{
    S[0, i] = X[0, i]
    D: float32[m, n]
    D[t, i] = S[t - 1, i] * 2
    S[t, i] = D[t, i] + X[t, i]
  }}
  schedule {target} {{
{steps}
  }}
}}
"""


def steps(name, reason, kernel, lines, says, fix, target="cpu", **columns):
    """A mistake in the steps of a kernel."""
    text = kernel.format(target=target, steps="\n".join("    " + line for line in lines))
    wrong.text(name, reason, text, says, fix, **columns)


steps(
    "axis_without_its_stage", "SYNTAX", TWO_STAGES, ["parallel(i)  # <-"],
    "unknown axis i; write B.i or C.i",
    "parallel(C.i)",
)  # fmt: skip
steps(
    "stage_where_an_axis_of_many_is_taken", "SYNTAX", SUMS, ["split(B, factor=4)  # <-"],
    "unknown axis B; write B.i or B.k",
    "split(B.k, factor=4)",
)  # fmt: skip
steps(
    "misspelt_axis_of_a_stage", "SYNTAX", SUMS, ["parallel(B.x)  # <-"],
    "unknown axis B.x; did you mean B.i",
    "parallel(B.i)",
)  # fmt: skip
steps(
    "step_without_its_factor", "STEP_FIELDS", TWO_STAGES, ["split(C.i)  # <-"],
    "split takes either a factor or parts, but got neither",
    "split(C.i, factor=4)",
)  # fmt: skip
steps(
    "fusing_one_axis", "STEP_FIELDS", SUMS, ["fuse(B.i)  # <-"],
    "fuse takes 2 or more axes, but got 1",
    "leave it out: there is nothing to fuse",
)  # fmt: skip
steps(
    "computing_at_an_inline_stage", "ATTACH_AXIS", THREE_STAGES,
    ["compute_inline(C)", "compute_at(B, C.i)  # <-"],
    "cannot compute B at i of C: C has no loops",
    "compute_at(B, D.i)",
    notes=("at step 2: compute_at(B, C.i)",),
)  # fmt: skip
steps(
    "moving_the_first_steps_of_a_scan", "FIXED_STAGE", SCAN, ["compute_at(S.init, D.i)  # <-"],
    "cannot attach S.init: it is the init of S",
    "leave it where it is: it runs before the steps",
)  # fmt: skip
steps(
    "prefetch_of_an_inline_stage", "PREFETCH", TWO_STAGES,
    ["compute_inline(B)", "prefetch(B, C.i, offset=1)  # <-"],
    "cannot prefetch B in i of C: B is inline, in no memory",
    "prefetch(A, C.i, offset=1)",
)  # fmt: skip
steps(
    "prefetch_in_an_inline_stage", "PREFETCH", TWO_STAGES,
    ["compute_inline(B)", "prefetch(A, B.i, offset=1)  # <-"],
    "cannot prefetch A in i of B: B is inline, without loops",
    "prefetch(A, C.i, offset=1)",
)  # fmt: skip
steps(
    "prefetch_in_lanes", "PREFETCH", TWO_STAGES,
    ["split(B.i, factor=4)", "vectorize(B.i.inner)", "prefetch(A, B.i.inner, offset=1)  # <-"],
    "cannot prefetch A in i.inner of B: its iterations are lanes of vectors; choose a loop outside of it",
    "prefetch(A, B.i.outer, offset=1)",
)  # fmt: skip
steps(
    "prefetch_in_a_scan", "PREFETCH", SCAN, ["prefetch(X, S.idx, offset=1)  # <-"],
    "S is a scan and reads nothing itself; prefetch X for a stage that reads it",
    "prefetch(X, S.update.i, offset=1)",
)  # fmt: skip
steps(
    "pragma_without_a_name", "PRAGMA", TWO_STAGES, ["pragma(C.i)  # <-"],
    "pragma(i) names no pragma; known: auto_unroll_max_step, unroll_explicit, scan_in_parts, tile_rows, tile_columns, tile_steps, "
    "tile_warps, attention_queries, attention_keys, parallel_launch_point, parallel_barrier_when_finish, parallel_stride_pattern, "
    "loop_partition_hint, debug_skip_region, import_c, import_llvm, tensor_core",
    "pragma(C.i, auto_unroll_max_step, value=16)",
)  # fmt: skip
steps(
    "pragma_of_tiles_of_any_size", "PRAGMA", TWO_STAGES, ["pragma(C.i, tile_rows, value=12)  # <-"],
    "pragma tile_rows takes a power of two, but got 12",
    "pragma(C.i, tile_rows, value=16)",
)  # fmt: skip
steps(
    "pragma_of_an_attention_of_few_queries", "PRAGMA", TWO_STAGES, ["pragma(C.i, attention_queries, value=8)  # <-"],
    "pragma attention_queries takes 16 or more, but got 8",
    "pragma(C.i, attention_queries, value=16)",
)  # fmt: skip
steps(
    "cache_write_of_a_scan", "CACHE_WRITE", SCAN, ["cache_write(S, local)  # <-"],
    "S is a scan and has no values of its own to keep; cache_write its update",
    "cache_write(S.update, local)",
)  # fmt: skip
steps(
    "loops_of_two_nests", "FOREIGN_AXIS", SUMS, ["reorder(C.k, C.i)  # <-"],
    "k and i are not loops of one nest: the reduction over k inside C is computed before C's other loops",
    "make the sum a stage of its own, and reorder that",
)  # fmt: skip
steps(
    "partial_results_of_partial_results", "RFACTOR", SUMS,
    ["split(B.k, factor=4)", "rfactor(B.k.inner)", "rfactor(B.rf.k.outer)  # <-"],
    "cannot factor k.outer: it is the only reduction loop of B.rf, which has partial results already",
    "one rfactor, or a second over a part of the loop",
    kind="Unsupported",
)  # fmt: skip
wrong.text(
    "partial_results_over_an_extent_that_is_read", "RFACTOR",
    """
    kernel k(A: float32[n], count: int64[]) -> (C: float32[]) {
      C[] = sum[k < count[]](A[k])
      schedule cpu {
        rfactor(C.k)  # <-
      }
    }
    """,
    "cannot factor k: its extent is read from a tensor, but it becomes a dimension of C; split it and "
    "factor the inner part",
    "split(C.k, factor=16) and rfactor(C.k.inner)",
    kind="Unsupported",
)  # fmt: skip
steps(
    "memory_of_a_block_outside_of_any", "MEMORY_SCOPE", TWO_STAGES, ["cache_read(A, shared, B)  # <-"],
    "A.shared cannot lie in shared memory: it is computed outside of any block; compute it at a loop "
    "inside blockIdx",
    "compute_at(A.shared, B.i.outer), bound to blockIdx.x",
    target="cuda", build_for="cuda -arch=sm_90", kind="Unsupported",
)  # fmt: skip
wrong.text(
    "memory_of_many_blocks_at_once", "MEMORY_SCOPE",
    """
    kernel k(A: float32[4, 64]) -> (C: float32[4, 64]) {
      C[i, j] = A[i, 63 - j]
      schedule cuda {
        cache_read(A, shared, C)  # <-
        reorder(C.j, C.i)
        bind(C.j, threadIdx.x)
        compute_at(A.shared, C.j)
        bind(A.shared.ax0, threadIdx.x)
        bind(C.i, blockIdx.x)
      }
    }
    """,
    "A.shared cannot lie in shared memory: loops over blockIdx stand inside of its loops over threadIdx, "
    "so that no block could fill it for itself; reorder the loops so that blockIdx comes first",
    "reorder(C.i, C.j) and compute_at(A.shared, C.i)",
    build_for="cuda -arch=sm_90", kind="Unsupported",
)  # fmt: skip
wrong.text(
    "partial_results_over_an_extent_that_is_read_for_each_row", "RFACTOR",
    """
    kernel k(A: float32[n, m], count: int64[n]) -> (C: float32[n]) {
      C[i] = sum[k < count[i]](A[i, k])
      schedule cpu {
        rfactor(C.k)  # <-
      }
    }
    """,
    "cannot factor k: its extent is read from a tensor, but it becomes a dimension of C; split it and "
    "factor the inner part",
    "split(C.k, factor=16) and rfactor(C.k.inner)",
    kind="Unsupported",
)  # fmt: skip
wrong.text(
    "too_many_threads_in_two_dimensions", "BLOCK_THREADS",
    """
    kernel k(A: float32[64, 64]) -> (C: float32[64, 64]) {
      C[i, j] = A[i, j]
      schedule cuda {
        bind(C.i, threadIdx.x)
        bind(C.j, threadIdx.y)  # <-
      }
    }
    """,
    "k has 4096 threads a block (threadIdx.x=64, threadIdx.y=64), but CUDA allows at most 1024; split an "
    "axis before bind()",
    "bind(C.i, blockIdx.x)",
    build_for="cuda -arch=sm_90",
)  # fmt: skip
wrong.text(
    "stage_of_two_threads", "PARTLY_SHARED",
    """
    kernel k(A: float32[32, 32]) -> (C: float32[32, 32]) {
      B: float32[32, 32]
      B[i, j] = A[i, j]  # <-
      C[i, j] = B[i, j] + B[j, i]
      schedule cuda {
        bind(C.i, threadIdx.x)
        compute_at(B, C.i)
        bind(B.j, threadIdx.y)
      }
    }
    """,
    "B is computed inside one GPU thread axis and by the threads of another; compute it inside all of them "
    "or outside",
    "bind(B.j, threadIdx.x) and compute_at a loop outside of the threads",
    build_for="cuda -arch=sm_90", kind="Unsupported",
)  # fmt: skip
MIDDLE_SCAN = """kernel k(X: float32[m, n]) -> (Y: float32[m, n]) {{
  S: float32[m, n]
  scan t {{
    S[0, i] = X[0, i]
    D: float32[m, n]
    D[t, i] = S[t - 1, i] * 2
    S[t, i] = D[t, i] + X[t, i]
  }}
  Y[t, i] = S[t, i] * 2
  schedule {target} {{
{steps}
  }}
}}
"""
steps(
    "layout_for_what_a_scan_computes_step_by_step", "CACHE_READ", MIDDLE_SCAN,
    ["cache_read(D, local, S.update, S.update.i)  # <-"],
    "D is computed step by step in a scan; a copy of it has no layout of its own",
    "cache_read(D, local, S.update)",
)  # fmt: skip
steps(
    "memory_of_a_scan_aligned", "STORAGE_ALIGN", MIDDLE_SCAN, ["storage_align(S.idx, factor=8, offset=0)  # <-"],
    "S is a scan; align a stage that it reads, or a cache_read of it",
    "cache_read(S, local, Y), and storage_align of that",
)  # fmt: skip
steps(
    "memory_of_a_scan_swizzled", "STORAGE_SWIZZLE", MIDDLE_SCAN, ["storage_swizzle(S, every=128)  # <-"],
    "S is a scan; swizzle a stage that it reads, or a cache_read of it",
    "storage_swizzle of a cache_read of it",
)  # fmt: skip
steps(
    "memory_of_a_scan_doubled", "DOUBLE_BUFFER", MIDDLE_SCAN, ["double_buffer(S)  # <-"],
    "S is a scan; double a stage that it reads, or a cache_read of it",
    "double_buffer of a cache_read of it",
)  # fmt: skip
steps(
    "layout_for_a_stage_that_does_not_read_it", "CACHE_READ", TWO_STAGES, ["cache_read(A, local, C, C.i)  # <-"],
    "C does not read A in these loops",
    "cache_read(A, local, B, B.i)",
)  # fmt: skip
wrong.text(
    "sum_in_a_sum_of_a_triangle", "REDUCTION_PLACE",
    """
    kernel k(A: float32[n, n]) -> (C: float32[n]) {
      C[i] = sum[j < i + 1](A[i, j] * sum[k < n](A[j, k]))  # <-
    }
    """,
    "reductions are only allowed at the top level of compute: the one inside C uses j, whose extent depends on i; "
    "reduce over both axes at once, or make a stage of its own",
    "R: float32[n]  R[j] = sum[k < n](A[j, k])  C[i] = sum[j < i + 1](A[i, j] * R[j])",
)  # fmt: skip
steps(
    "layout_without_a_dimension", "TRANSFORM_LAYOUT", GRID, ["transform_layout(B.i, 1)  # <-"],
    "transform_layout(i, 1) leaves out the dimension j of B",
    "transform_layout(B.j, B.i, 1, 1)",
)  # fmt: skip
steps(
    "layout_that_shares_places", "TRANSFORM_LAYOUT", GRID, ["transform_layout(B.i, B.j, 4, 1)  # <-"],
    "transform_layout(i, j, 4, 1) would lay 4 neighbours along i in one place; name i once more with the factor 1",
    "transform_layout(B.i, B.j, B.i, 4, 1, 1)",
)  # fmt: skip
steps(
    "layout_in_large_blocks", "TRANSFORM_LAYOUT", GRID, ["transform_layout(B.i, B.j, B.i, 2097152, 1, 1)  # <-"],
    "transform_layout(i, j, i, 2097152, 1, 1): the factors must be at most 1048576",
    "transform_layout(B.i, B.j, B.i, 16, 1, 1)",
)  # fmt: skip
steps(
    "layout_of_blocks_that_do_not_nest", "TRANSFORM_LAYOUT", GRID,
    ["transform_layout(B.i, B.i, B.j, B.i, 6, 4, 1, 1)  # <-"],
    "transform_layout(i, i, j, i, 6, 4, 1, 1): of the factors 4 and 6 of i, one must be a multiple of the other",
    "transform_layout(B.i, B.i, B.j, B.i, 8, 4, 1, 1)",
)  # fmt: skip
steps(
    "second_layout", "TRANSFORM_LAYOUT", GRID,
    ["transform_layout(B.j, B.i, 1, 1)", "transform_layout(B.i, B.j, B.i, 4, 1, 1)  # <-"],
    "B has a layout already; name the whole layout in one step",
    "one of the two",
)  # fmt: skip
steps(
    "layout_of_aligned_rows", "TRANSFORM_LAYOUT", GRID,
    ["storage_align(B.i, factor=16, offset=0)", "transform_layout(B.j, B.i, 1, 1)  # <-"],
    "a step before says of the dimensions of B how they lie or are fetched; transform its layout without "
    "storage_align and prefetch",
    "transform_layout(B.j, B.i, 1, 1) alone",
)  # fmt: skip
steps(
    "aligned_rows_of_a_layout", "STORAGE_ALIGN", GRID,
    ["transform_layout(B.j, B.i, 1, 1)", "storage_align(B.i, factor=16, offset=0)  # <-"],
    "B has a layout already, whose dimensions are not those of the stage; leave out storage_align or transform_layout",
    "one of the two",
)  # fmt: skip
steps(
    "prefetch_of_a_layout", "PREFETCH", GRID,
    ["transform_layout(B.j, B.i, 1, 1)", "prefetch(B, C.i, offset=1)  # <-"],
    "B has a layout of its own, in which neighbours do not lie side by side; leave out prefetch or transform_layout",
    "prefetch(A, B.i, offset=1)",
)  # fmt: skip
steps(
    "rolling_of_an_output", "ROLLING_BUFFER", STENCIL, ["rolling_buffer(C)  # <-"],
    "C is an output, whose memory is the caller's; roll a cache_write of it",
    "compute_at(B, C.i)  rolling_buffer(B)",
)  # fmt: skip
steps(
    "rolling_of_a_stage_that_is_computed_once", "ROLLING_BUFFER", STENCIL, ["rolling_buffer(B)  # <-"],
    "cannot roll B: it is computed once, and no loop moves over it; compute_at it inside a loop of what reads it",
    "compute_at(B, C.i)  rolling_buffer(B)",
)  # fmt: skip
steps(
    "rolling_of_two_buffers", "ROLLING_BUFFER", STENCIL,
    ["compute_at(B, C.i)", "double_buffer(B)", "rolling_buffer(B)  # <-"],
    "B has a step double_buffer already; leave out one of double_buffer and rolling_buffer",
    "compute_at(B, C.i)  rolling_buffer(B)",
)  # fmt: skip
steps(
    "second_buffer_of_a_ring", "DOUBLE_BUFFER", STENCIL,
    ["compute_at(B, C.i)", "rolling_buffer(B)", "double_buffer(B)  # <-"],
    "B has a step rolling_buffer already; leave out one of rolling_buffer and double_buffer",
    "compute_at(B, C.i)  rolling_buffer(B)",
)  # fmt: skip
steps(
    "layout_of_a_ring", "TRANSFORM_LAYOUT", STENCIL,
    ["compute_at(B, C.i)", "rolling_buffer(B)", "transform_layout(B.j, B.i, 1, 1)  # <-"],
    "B has a step rolling_buffer already; leave out one of rolling_buffer and transform_layout",
    "compute_at(B, C.i)  rolling_buffer(B)",
)  # fmt: skip
steps(
    "rolling_along_a_parallel_loop", "ROLLING_BUFFER", STENCIL,
    ["compute_at(B, C.i)", "parallel(C.i)", "rolling_buffer(B)  # <-"],
    "cannot roll B: the iterations of i of C do not run one after the other; compute_at it inside a loop that is not "
    "parallel, vectorized or bound, as the inner one of a split",
    "split(C.i, factor=8)  parallel(C.i.outer)  compute_at(B, C.i.inner)  rolling_buffer(B)",
)  # fmt: skip
steps(
    "rolling_along_two_dimensions", "ROLLING_BUFFER", DIAGONAL, ["compute_at(B, C.i)", "rolling_buffer(B)  # <-"],
    "cannot roll B: what is read of it moves along i and j at once with i of C",
    "compute_at(B, C.i)",
)  # fmt: skip
steps(
    "rolling_backwards", "ROLLING_BUFFER", BACKWARDS, ["compute_at(B, C.i)", "rolling_buffer(B)  # <-"],
    "cannot roll B: how far what is read of it moves along i with i of C is not the same each time, or backwards",
    "compute_at(B, C.i)",
)  # fmt: skip
steps(
    "rolling_where_nothing_moves", "ROLLING_BUFFER", BORDERS, ["compute_at(B, C.i)", "rolling_buffer(B)  # <-"],
    "cannot roll B: what iterations of i of C read of it does not move along a dimension; compute_at it outside of "
    "that loop",
    "compute_at(B, C.i)  rolling_buffer(B)",
)  # fmt: skip
steps(
    "rolling_of_what_is_read_once", "ROLLING_BUFFER", GRID, ["compute_at(B, C.i)", "rolling_buffer(B)  # <-"],
    "cannot roll B: no two iterations of i of C read the same of it; leave out rolling_buffer",
    "compute_at(B, C.i)",
)  # fmt: skip
steps(
    "rolling_where_the_first_iteration_may_be_left_out", "ROLLING_BUFFER", SHIFTED,
    ["split(D.i, factor=8)", "compute_at(C, D.i.outer)", "compute_at(B, C.i)", "rolling_buffer(B)  # <-"],
    "cannot roll B: the first iterations of i of C may have nothing to compute, and later ones need what they leave "
    "out; compute_at it inside another loop",
    "compute_at(B, C.i)",
)  # fmt: skip
