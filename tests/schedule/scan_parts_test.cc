// Scans whose steps run in parts at once: the loops, and where the compiler asks for them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/language/text/text.h"
#include "compiler/lower.h"
#include "compiler/schedule/build_loops.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string loops(std::string_view definition, TargetKind kind) {
  const language::TextKernel text = kernel_of(definition);
  const Target target{kind, ""};
  return lowered_text(text.kernel, text.schedules.at(0).second, target, {}, "");
}

TEST(ScanParts, AreThreadsOfTheirOwn) {
  EXPECT_EQ(loops(R"(kernel k(X: int32[290]) -> (S: int32[290]) {
  scan t { S[0] = X[0]  S[t] = S[t - 1] + X[t] }
  schedule cuda { pragma(S.idx, scan_in_parts, 64) }
})",
                  TargetKind::Cuda),
            R"(fn k(X: int32[290], S: int32[290]) {
  allocate S.sums: int32[5] scope(global)
  allocate S.before: int32[5] scope(global)
  for blockIdx.x in 0..1 bind {
    for threadIdx.x in 0..32 bind {
      if likely(threadIdx.x < 5) {
        if threadIdx.x == 0 {
          S[0] = X[0]
        }
        if threadIdx.x < 4 {
          allocate S.sum: int32[1] scope(local)
          if threadIdx.x == 0 {
            S.sum[0] = S[0]
          } else {
            S.sum[0] = X[threadIdx.x*64]
          }
          for S.idx in 0..31 unroll {
            S.sum[0] = S.sum[0] + X[threadIdx.x*64 + S.idx + 1]
          }
          {
            allocate S.values: int32[32] scope(local)
            for n in 0..8 unroll {
              for lane in 0..4 vectorize {
                S.values[n*4 + lane] = X[threadIdx.x*64 + n*4 + lane + 32]
              }
            }
            for u in 0..32 unroll {
              S.sum[0] = S.sum[0] + S.values[u]
            }
          }
          S.sums[threadIdx.x] = S.sum[0]
        }
      }
    }
  }
  for blockIdx.x in 0..1 bind {
    for threadIdx.x in 0..1 bind {
      S.before[0] = S.sums[0]
      for part in 0..3 {
        S.before[part + 1] = S.before[part] + S.sums[part + 1]
      }
    }
  }
  for blockIdx.x in 0..1 bind {
    for threadIdx.x in 0..32 bind {
      if likely(threadIdx.x < 5) {
        if 0 < threadIdx.x {
          S[threadIdx.x*64] = S.before[threadIdx.x - 1] + X[threadIdx.x*64]
        }
        if threadIdx.x < 4 {
          for S.idx_1 in 0..63 {
            S[threadIdx.x*64 + S.idx_1 + 1] = S[threadIdx.x*64 + S.idx_1] + X[threadIdx.x*64 + S.idx_1 + 1]
          }
        } else {
          for S.idx_2 in 0..33 {
            S[threadIdx.x*64 + S.idx_2 + 1] = S[threadIdx.x*64 + S.idx_2] + X[threadIdx.x*64 + S.idx_2 + 1]
          }
        }
      }
    }
  }
}
)");
}

TEST(ScanParts, AreCoresWithTheColumnsWithin) {
  EXPECT_EQ(loops(R"(kernel k(X: int32[256, 3]) -> (S: int32[256, 3]) {
  scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] }
  schedule cpu { pragma(S.idx, scan_in_parts, 64) }
})",
                  TargetKind::Llvm),
            R"(fn k(X: int32[256, 3], S: int32[256, 3]) {
  allocate S.sums: int32[4, 3] scope(global)
  allocate S.before: int32[4, 3] scope(global)
  for part in 0..4 parallel {
    if part == 0 {
      for i in 0..3 {
        S[0, i] = X[0, i]
      }
    }
    if part < 3 {
      if part == 0 {
        for i_1 in 0..3 {
          S.sums[part, i_1] = S[0, i_1]
        }
      } else {
        for i_2 in 0..3 {
          S.sums[part, i_2] = X[part*64, i_2]
        }
      }
      for S.idx in 0..63 {
        for i_3 in 0..3 {
          S.sums[part, i_3] = S.sums[part, i_3] + X[part*64 + S.idx + 1, i_3]
        }
      }
    }
  }
  for i_4 in 0..3 {
    S.before[0, i_4] = S.sums[0, i_4]
  }
  for part_1 in 0..2 {
    for i_5 in 0..3 {
      S.before[part_1 + 1, i_5] = S.before[part_1, i_5] + S.sums[part_1 + 1, i_5]
    }
  }
  for part_2 in 0..4 parallel {
    if 0 < part_2 {
      for i_6 in 0..3 {
        S[part_2*64, i_6] = S.before[part_2 - 1, i_6] + X[part_2*64, i_6]
      }
    }
    for S.idx_1 in 0..63 {
      for i_7 in 0..3 {
        S[part_2*64 + S.idx_1 + 1, i_7] = S[part_2*64 + S.idx_1, i_7] + X[part_2*64 + S.idx_1 + 1, i_7]
      }
    }
  }
}
)");
}

TEST(ScanParts, OfFewStepsAreTheWhole) {
  EXPECT_EQ(loops(R"(kernel k(X: int32[64]) -> (S: int32[64]) {
  scan t { S[0] = X[0]  S[t] = S[t - 1] + X[t] }
  schedule cuda { pragma(S.idx, scan_in_parts, 64) }
})",
                  TargetKind::Cuda),
            R"(fn k(X: int32[64], S: int32[64]) {
  S[0] = X[0]
  for S.idx in 0..63 {
    S[S.idx + 1] = S[S.idx] + X[S.idx + 1]
  }
}
)");
}

/// The steps that a GPU gets, by themselves.
std::string chosen(std::string_view definition, const CompileOptions& options = {}) {
  const language::Kernel kernel = kernel_of(definition).kernel;
  const Target target{TargetKind::Cuda, "sm_90"};
  const language::Schedule steps = choose_schedule(kernel, {}, target, options);
  std::string text;
  for (const std::string& line : language::kernel_file_text(steps, kernel.definition, kernel.names))
    text += line + "\n";
  return text;
}

std::string sum(std::string_view shape, std::string_view type,
                std::string_view step = "S[t - 1] + X[t]") {
  return fmt::format(
      "kernel k(X: {1}[{0}]) -> (S: {1}[{0}]) {{ scan t {{ S[0] = X[0]  S[t] = {2} }} }}", shape,
      type, step);
}

TEST(ScanParts, AreChosenForLongSumsOfIntegers) {
  EXPECT_EQ(chosen(sum("1048576", "int32")), "pragma(S.idx, scan_in_parts, value=512)\n");
  EXPECT_EQ(chosen(sum("n", "int32")), "pragma(S.idx, scan_in_parts, value=512)\n");
  EXPECT_EQ(chosen(sum("1048576", "float32", "max(S[t - 1], X[t])")),
            "pragma(S.idx, scan_in_parts, value=512)\n");
  EXPECT_EQ(chosen(sum("300", "int32")), "");
}

TEST(ScanParts, AreChosenForSumsOfFloatsWhereThatIsAskedFor) {
  EXPECT_EQ(chosen(sum("1048576", "float32")), "");
  EXPECT_EQ(chosen(sum("1048576", "float32"), {.fast = true}),
            "pragma(S.idx, scan_in_parts, value=512)\n");
  EXPECT_EQ(chosen(sum("1048576", "float32"), {.strict = true, .fast = true}), "");
  EXPECT_EQ(chosen(sum("1048576", "float32", "max(S[t - 1], X[t])"), {.strict = true}), "");
  // What is no running sum.
  EXPECT_EQ(chosen(sum("1048576", "float32", "S[t - 1] * 0.5 + X[t]"), {.fast = true}), "");
  EXPECT_EQ(chosen(sum("1048576", "float32", "S[t - 1] + exp(S[t - 1])"), {.fast = true}), "");
  EXPECT_EQ(
      chosen("kernel k(W: float32[4, 4]) -> (S: float32[1048576, 4]) { scan t { S[0, i] = 1.0 "
             "S[t, i] = S[t - 1, i] + sum[k < 4](S[t - 1, k] * W[k, i]) } }",
             {.fast = true})
          .find("scan_in_parts"),
      std::string::npos);
  EXPECT_EQ(chosen("kernel k(W: float32[4]) -> (S: float32[1048576, 4]) { scan t { S[0, i] = 1.0 "
                   "C: float32[1048576, 4]  C[t, i] = S[t - 1, i] * W[i]  S[t, i] = S[t - 1, i] + "
                   "C[t, i] } }",
                   {.fast = true})
                .find("scan_in_parts"),
            std::string::npos);
}

/// A reduction in each step is a stage of its own.
TEST(ScanParts, LeaveScansWithMoreInAStep) {
  EXPECT_EQ(chosen("kernel k(X: int32[100000, 8]) -> (S: int32[100000]) { scan t { S[0] = X[0, 0]  "
                   "S[t] = S[t - 1] + sum[k < 8](X[t, k]) } }")
                .find("scan_in_parts"),
            std::string::npos);
}

TEST(ScanParts, AreChosenForFewColumns) {
  const auto columns = [](std::string_view shape) {
    return fmt::format(
        "kernel k(X: int32[{0}]) -> (S: int32[{0}]) {{ scan t {{ S[0, i] = X[0, i]  S[t, i] = S[t "
        "- 1, i] + "
        "X[t, i] }} }}",
        shape);
  };
  EXPECT_EQ(chosen(columns("1000003, 3")), R"(split(S.init.i, factor=3)
bind(S.init.i.outer, blockIdx.y)
bind(S.init.i.inner, threadIdx.x)
split(S.update.i, factor=3)
bind(S.update.i.outer, blockIdx.y)
bind(S.update.i.inner, threadIdx.x)
pragma(S.idx, scan_in_parts, value=1024)
)");
  EXPECT_EQ(chosen(columns("4096, 65536")).find("scan_in_parts"), std::string::npos);
}

/// All schedules of a stage give the same bits, so parts of sums of floats have one length.
TEST(ScanParts, OfFloatsHaveOneLength) {
  const Target target{TargetKind::Cuda, "sm_90"};
  const auto count = [&](std::string_view type) {
    const language::Kernel kernel = kernel_of(sum("1048576", type)).kernel;
    const CompileOptions options{.fast = true};
    const SketchSpace space(kernel, {}, target, options);
    size_t values = 0;
    for (const autoschedule::Sketch& sketch : space.stages().at(0).sketches)
      values += sketch.parameters.at(0).values.size();
    return values;
  };
  EXPECT_EQ(count("float32"), 1u);
  EXPECT_GT(count("int32"), 5u);
}

std::vector<std::string> notes(std::string_view definition, const CompileOptions& options = {}) {
  return build_loops(kernel_of(definition).kernel, {}, {TargetKind::Cuda, "sm_90"}, options).notes;
}

TEST(ScanParts, AreNamedWhereFastWouldHaveThem) {
  const std::string note =
      "the steps of S are added up one after the other, by a thread; with fast (fast=True, --fast) "
      "parts of them run at once, and sums are rounded in another order";
  EXPECT_EQ(notes(sum("1048576", "float32")), std::vector<std::string>{note});
  EXPECT_EQ(notes(sum("n", "float32")), std::vector<std::string>{note});
  EXPECT_TRUE(notes(sum("64", "float32")).empty());
  EXPECT_TRUE(notes(sum("1048576", "int32")).empty());
  EXPECT_TRUE(notes(sum("1048576", "float32"), {.strict = true}).empty());
  EXPECT_TRUE(notes(sum("1048576", "float32"), {.fast = true}).empty());
  EXPECT_TRUE(notes(sum("1048576", "float32", "S[t - 1] * 0.5 + X[t]")).empty());
}

}  // namespace
}  // namespace kiln::testing
