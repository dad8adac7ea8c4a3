#include <gtest/gtest.h>

#include "compiler/language/wire/decode.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::language::schedule {
namespace {

using testing::expect_error;

/// Stages A (placeholder), B, C (an output, with a reduction D between) and a scan S.
const TextKernel& kernel() {
  static const TextKernel kKernel = testing::kernel_of(
      "kernel k(A: float32[n, l], X: float32[m, n]) -> (C: float32[n], S: float32[m, n]) {\n"
      "  B: float32[n, l]\n"
      "  D: float32[n]\n"
      "  B[i, j] = A[i, j] + 1\n"
      "  D[p] = sum[k < l](B[p, k])\n"
      "  C[x] = D[x] * 2\n"
      "  scan t {\n"
      "    S[0, q] = X[0, q]\n"
      "    S[t, u] = S[t - 1, u] + X[t, u]\n"
      "  }\n"
      "}\n");
  return kKernel;
}

uint32_t stage(std::string_view name) {
  const auto& names = kernel().kernel.names.stages;
  return static_cast<uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}
uint32_t axis(std::string_view name) {
  const auto& names = kernel().kernel.names.axes;
  return static_cast<uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}
/// The n-th axis that the steps define.
uint32_t defined(uint32_t n) {
  return static_cast<uint32_t>(kernel().kernel.definition.axes.size()) + n;
}

class Steps {
 public:
  Steps& add(const char* name, std::string_view stage_name, std::vector<uint32_t> axes = {}) {
    v1::Step& step = *schedule_.add_steps();
    step.set_name(name);
    step.set_stage(stage(stage_name));
    step.mutable_axes()->Add(axes.begin(), axes.end());
    step.mutable_line()->set_line(static_cast<uint32_t>(10 + schedule_.steps_size()));
    return *this;
  }
  Steps& factors(std::vector<int64_t> factors) {
    last().mutable_factors()->Add(factors.begin(), factors.end());
    return *this;
  }
  Steps& parts(int64_t parts) {
    last().set_parts(parts);
    return *this;
  }
  Steps& tag(const char* tag) {
    last().set_tag(tag);
    return *this;
  }
  Steps& at(std::string_view consumer, uint32_t consumer_axis) {
    last().set_at_stage(stage(consumer));
    last().set_at_axis(consumer_axis);
    return *this;
  }
  v1::Step& last() { return *schedule_.mutable_steps(schedule_.steps_size() - 1); }

  Schedule decode() const { return decode_schedule(schedule_, kernel().kernel); }

 private:
  v1::Schedule schedule_;
};

void expect_refused(const Steps& steps, const char* message, const char* note) {
  SCOPED_TRACE(message);
  const Error error = expect_error([&] { steps.decode(); }, ErrorKind::InvalidArgument, message);
  ASSERT_EQ(error.notes().size(), 1U);
  EXPECT_EQ(error.notes()[0], note);
  EXPECT_EQ(error.location().file, "test.kiln");
  EXPECT_GT(error.location().line, 10);
}

TEST(Schedule, KeepsStepsAsTheyAre) {
  const Schedule schedule = Steps()
                                .add("split", "C", {axis("x")})
                                .factors({32})
                                .add("bind", "C", {defined(0)})
                                .tag("blockIdx.x")
                                .add("compute_at", "D")
                                .at("C", defined(0))
                                .decode();
  ASSERT_EQ(schedule.steps.size(), 3U);
  EXPECT_EQ(schedule.steps[0].kind, StepKind::Split);
  EXPECT_EQ(schedule.steps[0].factors, std::vector<int64_t>{32});
  EXPECT_EQ(schedule.steps[0].parts, std::nullopt);
  EXPECT_EQ(schedule.steps[1].tag, "blockIdx.x");
  EXPECT_EQ(schedule.steps[2].at_stage, stage("C"));
  EXPECT_EQ(schedule.steps[2].line, 13U);
}

TEST(Schedule, KnowsItsSteps) {
  expect_refused(Steps().add("splitt", "C"), "unknown step splitt; did you mean split",
                 "at step 1: splitt");
}

TEST(Schedule, CountsTheFields) {
  Steps tagged = Steps().add("split", "C", {axis("x")}).factors({4});
  tagged.last().add_tags("threadIdx.x");
  expect_refused(tagged, "split takes no list of thread axes", "at step 1: split");
  expect_refused(Steps().add("split", "C"), "split takes 1 axis, but got 0", "at step 1: split");
  expect_refused(Steps().add("fuse", "B", {axis("i")}), "fuse takes 2 or more axes, but got 1",
                 "at step 1: fuse");
  expect_refused(Steps().add("split", "C", {axis("x")}),
                 "split takes either a factor or parts, but got neither", "at step 1: split");
  expect_refused(Steps().add("split", "C", {axis("x")}).factors({2}).parts(2),
                 "split takes either a factor or parts, but got both", "at step 1: split");
  expect_refused(Steps().add("tile", "B", {axis("i"), axis("j")}).factors({2}),
                 "tile takes 2 factors, but got 1", "at step 1: tile");
  expect_refused(Steps().add("unroll", "C", {axis("x")}).tag("threadIdx.x"),
                 "unroll takes no thread axis", "at step 1: unroll");
  expect_refused(Steps().add("unroll", "C", {axis("x")}).parts(2), "unroll takes no parts",
                 "at step 1: unroll");
}

TEST(Schedule, RejectsFactorsBelowOne) {
  expect_refused(Steps().add("split", "D", {axis("k")}).factors({0}),
                 "split(k, factor=0): the factor must be at least 1",
                 "at step 1: split(k, factor=0)");
  expect_refused(Steps().add("split", "D", {axis("k")}).parts(-1),
                 "split(k, parts=-1): the parts must be at least 1",
                 "at step 1: split(k, parts=-1)");
  expect_refused(Steps().add("tile", "B", {axis("i"), axis("j")}).factors({4, -4}),
                 "tile(i, j, 4, -4): the factors must be at least 1",
                 "at step 1: tile(i, j, 4, -4)");
}

/// Else n + factor - 1 would pass the range of int64, and the loop would have no iterations.
TEST(Schedule, RejectsFactorsThatNoLoopHas) {
  expect_refused(Steps().add("split", "D", {axis("k")}).factors({INT64_MAX}),
                 "split(k, factor=9223372036854775807): the factor must be at most 2147483647",
                 "at step 1: split(k, factor=9223372036854775807)");
  expect_refused(Steps().add("split", "D", {axis("k")}).parts(int64_t{1} << 40),
                 "split(k, parts=1099511627776): the parts must be at most 2147483647",
                 "at step 1: split(k, parts=1099511627776)");
}

TEST(Schedule, KnowsWhichAxesAreLeft) {
  expect_refused(
      Steps().add("split", "C", {axis("x")}).factors({4}).add("parallel", "C", {axis("x")}),
      "axis x was split into x.outer, x.inner at line 11", "at step 2: parallel(x)");
  expect_refused(Steps().add("fuse", "B", {axis("i"), axis("j")}).add("unroll", "B", {axis("j")}),
                 "axis j was fused into i.j.fused at line 11", "at step 2: unroll(j)");
  expect_refused(Steps().add("unroll", "C", {axis("i")}), "axis i belongs to stage B, not to C",
                 "at step 1: unroll(i)");
  expect_refused(Steps().add("unroll", "C", {defined(0)}),
                 "unroll refers to axis 10, but there are 10 at this step", "at step 1: unroll");
  expect_refused(Steps().add("reorder", "B", {axis("i"), axis("i")}), "reorder names axis i twice",
                 "at step 1: reorder(i, i)");
  expect_refused(
      Steps().add("vectorize", "C", {axis("x")}).add("split", "C", {axis("x")}).factors({4}),
      "axis x was vectorized at line 11; split it before that", "at step 2: split(x, factor=4)");
}

TEST(Schedule, KnowsThreadAxes) {
  expect_refused(Steps().add("bind", "C", {axis("x")}).tag("threadIdx.q"),
                 "unknown thread axis threadIdx.q; known: blockIdx.x, blockIdx.y, blockIdx.z, "
                 "threadIdx.x, threadIdx.y, threadIdx.z, vthread",
                 "at step 1: bind(x, threadIdx.q)");
  expect_refused(Steps()
                     .add("bind", "B", {axis("i")})
                     .tag("threadIdx.x")
                     .add("bind", "B", {axis("j")})
                     .tag("threadIdx.x"),
                 "axis i of B is bound to threadIdx.x already; bind j to another thread axis",
                 "at step 2: bind(j, threadIdx.x)");
  // Another stage may use the same thread axis, and vthread may stand for several.
  Steps()
      .add("bind", "B", {axis("i")})
      .tag("threadIdx.x")
      .add("bind", "C", {axis("x")})
      .tag("threadIdx.x")
      .decode();
}

TEST(Schedule, MarksAnAxisOnce) {
  expect_refused(Steps().add("parallel", "C", {axis("x")}).add("vectorize", "C", {axis("x")}),
                 "axis x was made parallel at line 11 already", "at step 2: vectorize(x)");
  expect_refused(
      Steps().add("bind", "C", {axis("x")}).tag("threadIdx.x").add("unroll", "C", {axis("x")}),
      "axis x was bound to threadIdx.x at line 11 already", "at step 2: unroll(x)");
}

TEST(Schedule, LeavesTimeSequential) {
  for (const char* step : {"parallel", "vectorize"}) {
    expect_refused(Steps().add(step, "S", {axis("S.idx")}), "the time axis of a scan is sequential",
                   fmt::format("at step 1: {}(S.idx)", step).c_str());
  }
  expect_refused(Steps().add("bind", "S", {axis("S.idx")}).tag("blockIdx.x"),
                 "the time axis of a scan is sequential", "at step 1: bind(S.idx, blockIdx.x)");
  expect_refused(
      Steps().add("split", "S", {axis("S.idx")}).factors({4}).add("parallel", "S", {defined(0)}),
      "the time axis of a scan is sequential", "at step 2: parallel(S.idx.outer)");
  expect_refused(Steps()
                     .add("split", "S", {axis("S.idx")})
                     .factors({4})
                     .add("reorder", "S", {defined(1), defined(0)}),
                 "the time axis of a scan is sequential",
                 "at step 2: reorder(S.idx.inner, S.idx.outer)");
  expect_refused(Steps().add("unroll", "S.update", {axis("t")}),
                 "axis t of S.update is the time of scan S; schedule S.idx, the axis of the scan",
                 "at step 1: unroll(t)");
  Steps().add("unroll", "S", {axis("S.idx")}).decode();
}

TEST(Schedule, ComputesStagesWhereTheyCanBe) {
  expect_refused(Steps().add("unroll", "A"), "unroll takes 1 axis, but got 0", "at step 1: unroll");
  expect_refused(Steps().add("compute_root", "A"),
                 "A is a placeholder; steps apply to what is computed",
                 "at step 1: compute_root(A)");
  expect_refused(Steps().add("compute_at", "B").at("B", axis("i")),
                 "B cannot be computed at itself", "at step 1: compute_at(B, B.i)");
  expect_refused(Steps().add("compute_at", "B").at("A", axis("i")),
                 "A is a placeholder and has no loops to compute B in",
                 "at step 1: compute_at(B, A.i)");
  expect_refused(Steps().add("compute_at", "B").at("D", axis("x")),
                 "axis x belongs to stage C, not to D", "at step 1: compute_at(B, D.x)");
  expect_refused(
      Steps().add("split", "C", {axis("x")}).factors({4}).add("compute_at", "D").at("C", axis("x")),
      "axis x of C was split at line 11; compute D at x.outer or x.inner",
      "at step 2: compute_at(D, C.x)");
  expect_refused(
      Steps().add("compute_at", "D").at("C", axis("x")).add("split", "C", {axis("x")}).factors({4}),
      "D is computed at axis x; split it before compute_at", "at step 2: split(x, factor=4)");
  expect_refused(Steps().add("compute_at", "S.update").at("C", axis("x")),
                 "S.update is the update of scan S, which computes it",
                 "at step 1: compute_at(S.update, C.x)");
}

TEST(Schedule, InlinesWhatCanBe) {
  expect_refused(Steps().add("compute_inline", "D"),
                 "D has a reduction and cannot be inlined; use compute_at",
                 "at step 1: compute_inline(D)");
  expect_refused(Steps().add("compute_inline", "S"), "S is a scan and cannot be inlined",
                 "at step 1: compute_inline(S)");
  expect_refused(Steps().add("compute_inline", "S.update"), "a scan update cannot be inlined",
                 "at step 1: compute_inline(S.update)");
  expect_refused(Steps().add("compute_inline", "S.init"),
                 "S.init gives scan S its initial steps and cannot be inlined",
                 "at step 1: compute_inline(S.init)");
  Steps().add("compute_inline", "B").decode();
}

TEST(Schedule, AlignsDimensionsOfItsOwnMemory) {
  const auto align = [](const char* stage, uint32_t axis, int64_t factor, int64_t offset) {
    Steps steps;
    steps.add("storage_align", stage, {axis}).factors({factor}).last().set_value(offset);
    return steps;
  };
  EXPECT_EQ(align("B", axis("i"), 16, 4).decode().steps[0].value, 4);
  expect_refused(align("B", axis("i"), 16, 16),
                 "storage_align(i, factor=16, offset=16): the offset is what is left over of the "
                 "factor, so it must be from 0 to 15",
                 "at step 1: storage_align(i, factor=16, offset=16)");
  expect_refused(align("B", axis("i"), 0, 0),
                 "storage_align(i, factor=0): the factor must be at least 1",
                 "at step 1: storage_align(i, factor=0)");
  expect_refused(align("D", axis("k"), 8, 0),
                 "k is a loop of D, but no dimension of it; its dimensions are p",
                 "at step 1: storage_align(k, factor=8)");
  expect_refused(align("C", axis("x"), 8, 0),
                 "C is an output, whose memory is the caller's; align a cache_write of it",
                 "at step 1: storage_align(x, factor=8)");
}

TEST(Schedule, DoublesWhatIsItsOwn) {
  expect_refused(Steps().add("double_buffer", "S"),
                 "S is an output, whose memory is the caller's; double a cache_write of it",
                 "at step 1: double_buffer(S)");
}

TEST(Schedule, KnowsIntrinsics) {
  expect_refused(Steps().add("tensorize", "B", {axis("j")}),
                 "tensorize(j) names no intrinsic; known: x86.dot.u8s8s32, x86.dot.bf16f32, "
                 "x86.fma.f32",
                 "at step 1: tensorize(j)");
  expect_refused(Steps().add("tensorize", "B", {axis("j")}).tag("x86.dot.u8s8s3"),
                 "unknown intrinsic x86.dot.u8s8s3; did you mean x86.dot.u8s8s32",
                 "at step 1: tensorize(j, x86.dot.u8s8s3)");
  expect_refused(Steps().add("tensorize", "D", {axis("k")}).tag("x86.fma.f32"),
                 "axis k of D is a reduction axis; tensorize the outermost data axis of the tile, "
                 "inside which the reduction runs",
                 "at step 1: tensorize(k, x86.fma.f32)");
  expect_refused(Steps()
                     .add("tensorize", "B", {axis("j")})
                     .tag("x86.fma.f32")
                     .add("vectorize", "B", {axis("j")}),
                 "axis j was tensorized with x86.fma.f32 at line 11 already",
                 "at step 2: vectorize(j)");
}

TEST(Schedule, KnowsPragmas) {
  expect_refused(
      Steps().add("pragma", "B", {axis("j")}).tag("auto_unroll_max_steps"),
      "unknown pragma auto_unroll_max_steps; did you mean auto_unroll_max_step; known: "
      "auto_unroll_max_step, unroll_explicit, scan_in_parts, tile_rows, tile_columns, "
      "tile_steps, tile_warps, attention_queries, attention_keys, parallel_launch_point, "
      "parallel_barrier_when_finish, "
      "parallel_stride_pattern, loop_partition_hint, "
      "debug_skip_region, import_c, import_llvm, tensor_core",
      "at step 1: pragma(j, auto_unroll_max_steps)");
  expect_refused(Steps().add("pragma", "B", {axis("j")}).tag("debug_skip_region"),
                 "pragma debug_skip_region is not taken: it would leave out a part of what the "
                 "kernel computes",
                 "at step 1: pragma(j, debug_skip_region)");
  Steps large;
  large.add("pragma", "B", {axis("j")}).tag("unroll_explicit").last().set_value(2);
  expect_refused(large, "pragma unroll_explicit takes a value from 0 to 1, but got 2",
                 "at step 1: pragma(j, unroll_explicit, value=2)");
  for (const char* pragma : {"tile_rows", "tile_columns", "tile_steps", "tile_warps"}) {
    Steps uneven;
    uneven.add("pragma", "B", {axis("j")}).tag(pragma).last().set_value(12);
    const std::string where = fmt::format("at step 1: pragma(j, {}, value=12)", pragma);
    const std::string why = fmt::format("pragma {} takes a power of two, but got 12", pragma);
    expect_refused(uneven, why.c_str(), where.c_str());
  }
  expect_refused(Steps()
                     .add("pragma", "B", {axis("j")})
                     .tag("parallel_launch_point")
                     .add("split", "B", {axis("j")})
                     .factors({4}),
                 "axis j was given a pragma at line 11; split it before that",
                 "at step 2: split(j, factor=4)");
  // Code made of tiles has no loops that could be split too late.
  Steps of_tiles;
  of_tiles.add("pragma", "B", {axis("j")}).tag("tile_rows").last().set_value(128);
  of_tiles.add("split", "B", {axis("j")}).factors({4});
  EXPECT_EQ(of_tiles.decode().steps.size(), 2u);
}

TEST(Schedule, PrefetchesForAStageThatReads) {
  const auto prefetch = [](const char* tensor, const char* reader, uint32_t axis, int64_t offset) {
    Steps steps;
    steps.add("prefetch", tensor).at(reader, axis).last().set_value(offset);
    return steps;
  };
  EXPECT_EQ(prefetch("A", "B", axis("i"), 2).decode().steps[0].at_stage, stage("B"));
  expect_refused(prefetch("A", "B", axis("i"), -1),
                 "prefetch(A, B.i, offset=-1): the offset must be from 0 to 1048576 iterations",
                 "at step 1: prefetch(A, B.i, offset=-1)");
  Steps of_output = prefetch("A", "B", axis("i"), 1);
  of_output.last().set_output(1);
  expect_refused(of_output, "prefetch refers to output 1 of A, which has 1", "at step 1: prefetch");
  expect_refused(prefetch("A", "B", axis("x"), 1), "axis x belongs to stage C, not to B",
                 "at step 1: prefetch(A, B.x, offset=1)");
}

TEST(Schedule, PutsThreadsAroundScans) {
  const auto threads = [](const char* stage, std::vector<std::string> tags) {
    Steps steps;
    steps.add("env_threads", stage);
    steps.last().mutable_tags()->Add(tags.begin(), tags.end());
    return steps;
  };
  EXPECT_EQ(threads("S", {"threadIdx.x"}).decode().steps[0].tags[0], "threadIdx.x");
  expect_refused(threads("C", {"threadIdx.x"}), "C is no scan; bind its axes to threads instead",
                 "at step 1: env_threads(C, threadIdx.x)");
  expect_refused(threads("S", {"threadIdx.w"}),
                 "unknown thread axis threadIdx.w; known: blockIdx.x, blockIdx.y, blockIdx.z, "
                 "threadIdx.x, threadIdx.y, threadIdx.z",
                 "at step 1: env_threads(S, threadIdx.w)");
  expect_refused(threads("S", {"threadIdx.x", "threadIdx.x"}),
                 "env_threads of S names threadIdx.x twice",
                 "at step 1: env_threads(S, threadIdx.x, threadIdx.x)");
  expect_refused(threads("S", {}), "env_threads of S names no thread axis",
                 "at step 1: env_threads(S)");
}

TEST(Schedule, PipelinesTwoStagesOrMore) {
  Steps steps;
  steps.add("software_pipeline", "B", {axis("i")}).last().set_value(1);
  expect_refused(steps, "software_pipeline(i) takes 2 to 16 stages, but got 1",
                 "at step 1: software_pipeline(i, stages=1)");
}

TEST(Schedule, HoldsItsLimits) {
  Steps steps;
  for (int i = 0; i < 3; ++i) {
    steps.add("compute_root", "C");
  }
  v1::Schedule wire = encode(steps.decode());
  expect_error([&] { decode_schedule(wire, kernel().kernel, {.steps = 2}); },
               ErrorKind::ResourceExhausted, "the schedule has 3 steps; the limit is 2");
}

TEST(Schedule, BoundsTheLengthOfDerivedNames) {
  Steps steps;
  steps.add("split", "C", {axis("x")}).factors({2});
  for (uint32_t i = 0; i < 400; ++i) {
    steps.add("split", "C", {defined(2 * i + 1)}).factors({2});
  }
  expect_error([&] { steps.decode(); }, ErrorKind::ResourceExhausted,
               "an axis name has 1027 bytes; the limit is 1024");
}

}  // namespace
}  // namespace kiln::language::schedule
