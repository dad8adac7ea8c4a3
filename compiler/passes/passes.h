#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/passes/pass_context.h"

/// All passes, one .cc each, in the order of lower.cc. The contract of each stands here.
///
/// Every pass is a pure function `ir::Kernel pass(ir::Kernel kernel, const PassContext& context)`.
namespace kiln::passes {

/// Each expression in its simplest form under what its loops and guards say; branches that are
/// never taken, loops that never run and Checks that never fire are gone.
ir::Kernel simplify(ir::Kernel kernel, const PassContext& context);

/// On CUDA, refuses a block of threads that no device can run: more than 1024 threads, or more than
/// an axis may have, as far as the extents are constants; and a loop inside another one over the
/// same threads, unless it fills shared memory. Changes nothing. Stands where bind() can still be
/// named: loops still are what the user bound.
ir::Kernel validate_threads(ir::Kernel kernel, const PassContext& context);

/// Gives loops bound to GPU indices a meaning on a CPU, and says so in a note.
///
///   for blockIdx.x in 0..n bind { for threadIdx.x in 0..16 bind { C[...] = ... } }
///     ->
///   for blockIdx.x in 0..n parallel { for threadIdx.x in 0..16 vectorize { C[...] = ... } }
///
/// A threadIdx loop becomes vectors where it is the innermost of them, its extent is a constant and
/// what it stores lies side by side; else it runs one iteration after the other.
ir::Kernel bind_to_cores(ir::Kernel kernel, const PassContext& context);

/// Keeps the step that a scan has come to in a buffer of its own, where the output is large and
/// nothing else reads it: what is only stored can be stored with non-temporal stores.
///
///   for i in 0..512 vectorize { S[0, i] = X[0, i] }
///   for t in 0..m - 1 { for i in 0..512 vectorize { S[t + 1, i] = S[t, i] + X[t + 1, i] } }
///     ->
///   allocate S.state: float32[512] scope(local)
///   for i in 0..512 vectorize { S.state[i] = X[0, i]  S[0, i] = S.state[i] }
///   for t in 0..floordiv(m - 1, 4) { for r in 0..4 unroll { for i in 0..512 vectorize {
///     S.state[i] = S.state[i] + X[t*4 + r + 1, i]  S[t*4 + r + 1, i] = S.state[i] } } }
///   for t in 0..floormod(m - 1, 4) { the steps that are left }
///
/// Four rows at once, within the loops around the vectors: states stay in registers between them.
/// Stands before partition_loops, so that the first step and the others are one nest each.
ir::Kernel carry_states(ir::Kernel kernel, const PassContext& context);

/// Shifts the last tile of a serial loop inwards, so that it ends where the axis ends, instead of
/// cutting it: some elements are computed twice, at most one of 64, and there is one tile to
/// compile and not two.
///
///   for i in 0..114 { for j in 0..9 unroll { if likely(i*9 + j < 1024) { C[i*9 + j] = A[i*9 + j] }
///   } }
///     ->
///   for i in 0..114 { for j in 0..9 unroll { C[min(i*9, 1015) + j] = A[min(i*9, 1015) + j] } }
///
/// Only around loops that are written out, where all sizes are constants, and where the body stores
/// the same whenever it runs.
ir::Kernel shift_last_tiles(ir::Kernel kernel, const PassContext& context);

/// Fills tiles at the end of an axis as all others: guards go that say of an element of shared or
/// local memory whether it is there.
///
///   allocate s[64] { if likely(b*64 + t < n) { s[t] = A[b*64 + t] } .. }
///     ->
///   allocate s[64] { if likely(0 < n) { s[t] = A[min(b*64 + t, n - 1)] } .. }
///
/// What stands there is not read by anybody who needs it, as before. Guards stay around what cannot
/// be computed of any values, and those that change while the memory is there.
ir::Kernel fill_tiles(ir::Kernel kernel, const PassContext& context);

/// Splits loops where a `likely` guard begins or ceases to hold: full tiles run without the guard.
///
///   for i in 0..ceildiv(n, 4) { for j in 0..4 { if likely(i*4 + j < n) { S } } }
///     ->
///   for i in 0..floordiv(n, 4) { for j in 0..4 { S } }
///   if floordiv(n, 4) < ceildiv(n, 4) { for j in 0..n - floordiv(n, 4)*4 { S at the last i } }
///
/// Conditions of if_then_else count as guards, and one may begin to hold, as padding does: the
/// iterations before come first then, in a loop of their own. A parallel loop stays one, with both
/// in an if, around what has guards alone; where loops over tiles inside of it can be cut, it is
/// left to them. What only the last iteration of a loop around has left over knows which it is.
/// Last iterations that do nothing are left out. Nested tiles are split from the outside in, up to
/// 8 copies of a statement; loops over GPU indices are left alone, as are those whose full tiles
/// end at more minima than the guards are worth. Leaves the kernel simplified.
ir::Kernel partition_loops(ir::Kernel kernel, const PassContext& context);

/// Nested parallel loops become one.
///
///   for i in 0..n parallel { for j in 0..m parallel { S } }
///     ->
///   for i.j.fused in 0..n*m parallel { S with i = floordiv(i.j.fused, m), j = floormod(...) }
///
/// A parallel loop in another one that does more runs serially, with a note.
ir::Kernel collapse_parallel(ir::Kernel kernel, const PassContext& context);

/// Makes a vectorised loop serial, with a note, when an iteration may need what another one stored.
///
/// Stands before flatten_storage, since indices that are kept per dimension are far easier to tell
/// apart. What it leaves marked, vectorize_loops may run in any order of statements and lanes.
ir::Kernel validate_vectors(ir::Kernel kernel, const PassContext& context);

/// Puts the loop over virtual threads around what is another statement for each of them.
///
///   for v in 0..2 bind(vthread) { allocate s[4] .. { fill b; for j { s[j] = s[j] + b[v, j] } } }
///     ->
///   allocate s[2, 4] .. { fill b; for v in 0..2 unroll { for j { s[v, j] = s[v, j] + b[v, j] } } }
///
/// A buffer that differs from one to the next is one for each. Where one may need what another one
/// stores they run one after the other, with a note. Stands before insert_barriers.
ir::Kernel interleave_vthreads(ir::Kernel kernel, const PassContext& context);

/// Lets the host run a loop of which each iteration needs what other blocks did in those before.
///
///   for t in 0..m { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] } }
///     ->
///   for t in 0..m host { for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] } }
///
/// The statements of its body are launches one after the other. A loop that one launch can run
/// stays in it. Stands before insert_barriers, which refuses what is left.
ir::Kernel separate_launches(ir::Kernel kernel, const PassContext& context);

/// Puts a Barrier between a store and an access of the same element by another thread of the block.
///
///   for threadIdx.x ... { s[threadIdx.x] = ... }  for threadIdx.x ... { C[...] = s[31 - t] }
///     ->    the same with a Barrier between the two loops
///
/// In front of loops that need none inside. A loop over the threads of one around is divided.
/// Refuses what no barrier can order: a dependence across blocks, or a barrier that not all threads
/// of the block reach. Stands before flatten_storage, which loses the dimensions.
ir::Kernel insert_barriers(ir::Kernel kernel, const PassContext& context);

/// For arguments of any stride, loops marked `vectorize` or `unroll` run one iteration after the
/// other, but for those over a reduction, where the mark says in which order to add. For compact
/// arguments nothing changes.
///
/// Vectors of elements that lie apart are gathers: ten times the code, hardly faster, and the
/// longest part of a compile.
ir::Kernel keep_strided_plain(ir::Kernel kernel, const PassContext& context);

/// Makes the loops of each mark `tensorize` the intrinsic that it names.
///
///   tensorize x86.dot.u8s8s32 {
///     for j in 0..16 { for k in 0..4 { C[j] = C[j] + int32(A[k])*int32(B[j, k]) } }
///   }
///     ->
///   for j in 0..16 vectorize { C[j] = dot(C[j], A[ramp(0, 1, 4)], B[j, ramp(0, 1, 4)]) }
///
/// x86.fma.f32 unrolls the rows and vectorises the columns. Refuses other loops, saying in what
/// they differ. Tiles that the end of an axis cuts off run as plain loops, with a note; so does all
/// for arguments of any stride. Stands after partition_loops, which frees the full tiles of guards,
/// and before the sums get registers.
ir::Kernel tensorize(ir::Kernel kernel, const PassContext& context);

/// Adds up groups of products at once where their elements lie side by side: four of 8 bits into an
/// int32, two of bfloat16 into a float32.
///
///   for j in 0..48 vectorize { for k in 0..4 { C[j] = C[j] + int32(A[k])*int32(B[j, k]) } }
///     ->
///   for j in 0..48 vectorize { C[j] = dot(C[j], A[ramp(0, 1, 4)], B[j, ramp(0, 1, 4)]) }
///
/// Stands where tensorize does, for the same reasons; only for compact arguments.
ir::Kernel add_in_groups(ir::Kernel kernel, const PassContext& context);

/// Keeps the elements that a reduction adds up, over a tile written out by unrolled and vectorised
/// loops, in registers while it runs.
///
///   for k in 0..l { for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j] = C[i, j] + S } } }
///     ->
///   allocate C.acc: float32[8, 32] scope(local) {
///     for i in 0..8 unroll { for j in 0..32 vectorize { C.acc[i, j] = C[i, j] } }
///     for k in 0..l { for i .. { for j .. { C.acc[i, j] = C.acc[i, j] + S } } }
///     for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j] = C.acc[i, j] } }
///   }
///
/// The last vector of a row is padded where an epilogue of several short ones would take longer: of
/// 31 elements there are 32 in the registers, of which the last is no element and is not stored.
///
/// Where a loop before stores a constant to just these elements, they begin with it instead, and
/// that loop is gone.
///
/// A tile in serial loops is packed into memory of its own while a long sum passes, if it is small
/// beside the first cache: rows of C may lie so far apart that they evict each other (conflict
/// misses). A short loop over k is written out.
///
/// Stands before flatten_storage, where elements of different indices are easily told apart; LLVM
/// could not, once a stride is a variable.
ir::Kernel accumulate_in_registers(ir::Kernel kernel, const PassContext& context);

/// Multiplies bytes of one kind as bytes of two, which is what CPUs have instructions for.
///
///   allocate C.acc: int32[2, 16] .. { load C.acc
///     for q in 0..l { for i in 0..2 unroll { for j in 0..16 vectorize {
///       C.acc[i, j] = dot(C.acc[i, j], A[i, q, ramp(0, 1, 4)], B[q, j, ramp(0, 1, 4)]) } } }
///     store C.acc }
///     ->
///   the same with uint8(A[..]) ^ broadcast(128, 4) in the place of A[..], beside it
///   for j in 0..16 vectorize { C.acc.moved[j] = dot(C.acc.moved[j], 128, B[q, j, ..]) }
///   and before C.acc is stored, C.acc.moved taken off each row
///
/// Only where rows of an accumulator tile share their columns.
ir::Kernel turn_signs_once(ir::Kernel kernel, const PassContext& context);

/// Puts the dimension of an allocated buffer last along which all vectors on it go, so that their
/// lanes lie side by side.
///
///   allocate E: float32[16, 10] { for j in 0..10 { for i in 0..16 vectorize { E[i, j] = S } } .. }
///     ->
///   allocate E: float32[10, 16] { for j in 0..10 { for i in 0..16 vectorize { E[j, i] = S } } .. }
///
/// Stands before flatten_storage, where a dimension is an index of its own.
ir::Kernel lay_out_lanes(ir::Kernel kernel, const PassContext& context);

/// Decides where each allocated buffer lives: small ones of constant size keep their Allocate
/// (stack, registers, shared memory), all others become a part of the workspace of the call.
///
///   allocate s1: float32[1, n] scope(global) { S }    ->    S, and an entry in kernel.workspace
///
/// One inside a parallel loop is a part of the workspace of each thread. Bytes are expressions over
/// the sizes; their overflow is found when the runtime evaluates them.
ir::Kernel plan_storage(ir::Kernel kernel, const PassContext& context);

/// One index an access, in elements.
///
///   C[i, j] = ...    ->    C[i*n + j] = ...                     (Layout::Compact)
///                    ->    C[i*C.stride0 + j*C.stride1] = ...   (Layout::Strided; parameters only)
ir::Kernel flatten_storage(ir::Kernel kernel, const PassContext& context);

/// Replaces the variable of a loop marked `vectorize` by a vector of its values.
///
///   for i in 0..8 vectorize { for k in 0..n { C[i] = C[i] + A[k]*B[k*8 + i] } }
///     ->
///   for k in 0..n { C[ramp(0, 1, 8)] = C[ramp(0, 1, 8)] + broadcast(A[k], 8)*B[ramp(k*8, 1, 8)] }
///
/// Guards that depend on the variable become predicates; `s = s op f(i)` becomes a VectorReduce; a
/// long loop becomes a loop over vectors of 64 lanes, and what is left of it an epilogue of vectors
/// of 32, 16, .. lanes. Where that cannot be done (an inner loop whose extent depends on the
/// variable, a Check of it) the loop runs serially, with a note.
ir::Kernel vectorize_loops(ir::Kernel kernel, const PassContext& context);

/// Sums up lane by lane what a loop adds to one element in any order, and the lanes once behind it.
///
///   for k in 0..n { S[0] = reduce_sum(S[0], A[ramp(k*32, 1, 32)], reassociate) }
///     ->
///   allocate S.lanes: float32[32] scope(local)
///   S.lanes[ramp(0, 1, 32)] = broadcast(0.0, 32)
///   for k in 0..n { S.lanes[ramp(0, 1, 32)] = S.lanes[ramp(0, 1, 32)] + A[ramp(k*32, 1, 32)] }
///   S[0] = reduce_sum(S[0], S.lanes[ramp(0, 1, 32)], reassociate)
///
/// Of an element that unrolled loops choose, each has lanes of its own, as far as registers reach.
/// An element that is there under a condition alone has its lanes added under that condition.
///
/// Stands behind vectorize_loops, which makes the vectors.
ir::Kernel accumulate_in_lanes(ir::Kernel kernel, const PassContext& context);

/// Replaces each loop marked `unroll` by its iterations, in order.
///
///   for i in 0..3 unroll { A[i] = B[i] }    ->    A[0] = B[0]  A[1] = B[1]  A[2] = B[2]
///
/// Runs after vectorize_loops, which wants the loops whole, and before simplify, which folds the
/// indices this leaves behind.
ir::Kernel unroll_loops(ir::Kernel kernel, const PassContext& context);

/// Divides only the first lane of a vector of indices, where all of them lie between the same two
/// multiples of the divisor: a CPU divides integers one by one, and what is side by side is a load
/// and not a gather.
///
///   C[ramp(i, 1, 16)] = A[floormod(ramp(i + s, 1, 16), broadcast(n, 16))]
///     ->
///   if floormod(i + s, n) + 15 < n {
///     C[ramp(i, 1, 16)] = A[ramp(floormod(i + s, n), 1, 16)]
///   } else { the same as before }
///
/// Stands before simplify, which puts the sums of such ramps together.
ir::Kernel divide_once(ir::Kernel kernel, const PassContext& context);

/// Moves a guard out of the loops it does not depend on.
///
///   for t in 0..m { if i < n { S } }    ->    if i < n { for t in 0..m { S } }
///
/// Other invariant code is left to LLVM and ptxas, which move it well.
ir::Kernel hoist_invariants(ir::Kernel kernel, const PassContext& context);

/// Fetches what innermost loops read side by side a page before they do, from inputs that are
/// larger than the near caches: a CPU fetches ahead by itself, but stops at the end of a page.
///
///   for i in 0..131072 { C[..] = A[ramp(i*16, 1, 16)] }
///     ->
///   for i in 0..131072 { prefetch A[min(i*16 + 1024, 2097136)]  C[..] = A[ramp(i*16, 1, 16)] }
///
/// Where the loop ends sooner and the one around it goes on elsewhere, it fetches what that one
/// reads next. Of several loops in one, that which computes most fetches. Of an output that a loop
/// reads too, as a scan does, it fetches where it is going to store. Stands where loops are in
/// vectors, unrolled, and parameters have one index.
ir::Kernel fetch_ahead(ir::Kernel kernel, const PassContext& context);

/// Names the outputs that get non-temporal stores: those that the kernel never reads, and that are
/// larger than a cache or of a size that is not known yet. A cached store first reads the line it
/// writes, and evicts what is needed sooner.
///
///   fn k(A: float32[n], C: float32[n]) { C[ramp(0, 1, 32)] = A[ramp(0, 1, 32)] }
///     ->
///   fn k(A: float32[n], C: float32[n]) { nontemporal C  C[ramp(0, 1, 32)] = A[ramp(0, 1, 32)] }
///
/// Stands last, where parameters have their strides. At the call, the size that was not known
/// decides, and of each vector whether its place is aligned; others are stored as usual.
ir::Kernel bypass_caches(ir::Kernel kernel, const PassContext& context);

/// Makes each statement of the body one launch: its ThreadIndex loops stand outermost, each axis
/// once.
///
///   for blockIdx.x in 0..b bind { for threadIdx.x in 0..32 bind { S }  for threadIdx.x in 0..8
///   bind { T } }
///     ->
///   for blockIdx.x in 0..b bind { for threadIdx.x in 0..32 bind { S  if threadIdx.x < 8 { T } } }
///
/// What stands outside the threads of its launch is done by the first thread alone. A loop around
/// bound ones is run by every thread: insert_barriers has seen to their order.
ir::Kernel split_host_device(ir::Kernel kernel, const PassContext& context);

/// Divides indices as unsigned numbers where neither operand is negative.
///
///   if b*256 + t < m*n { .. floordiv(b*256 + t, n) .. }
///     ->
///   if b*256 + t < m*n { .. int64(truncdiv(uint64(b*256 + t), uint64(n))) .. }
ir::Kernel divide_unsigned(ir::Kernel kernel, const PassContext& context);

/// Keeps an element that is set before a loop, and that each step of the loop updates, in a local
/// buffer while the loop runs.
///
///   C[i] = 0    for k in 0..l { C[i] = C[i] + S }
///     ->
///   allocate C.acc: float32[1] scope(local) {
///     C.acc[0] = 0    for k in 0..l { C.acc[0] = C.acc[0] + S }    C[i] = C.acc[0]
///   }
///
/// After insert_barriers: a loop in which threads wait for each other stays.
ir::Kernel accumulate_in_locals(ir::Kernel kernel, const PassContext& context);

/// Refuses a launch that no CUDA device can start, as far as extents, shared memory and what a
/// thread has of its own are constants; what depends on sizes the runtime checks at the call.
/// Changes nothing.
ir::Kernel check_launch(ir::Kernel kernel, const PassContext& context);

}  // namespace kiln::passes
