// Shared memory whose 16 bytes change places: the CUDA C finds each element where it was put, in
// every way that elements are moved: one by one, as vectors, by matrix instructions and by copies
// in the background.
#include "compiler/ir/swizzle.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using language::Step;
using language::StepKind;

struct Swizzled {
  language::TextKernel text;
  ir::Kernel loops;
};

/// By an automatic schedule, whose lines are padded, with a swizzle in the place of the padding,
/// by lines or by what is given.
Swizzled swizzled(const std::string& kernel, std::string_view sketch, int64_t every = 0) {
  Swizzled result{kernel_of(kernel), {}};
  const Target target{TargetKind::Cuda, "sm_90"};
  const SketchSpace space(result.text.kernel, {}, target, {});
  const std::vector<autoschedule::Sketch>& sketches = space.stages().at(0).sketches;
  const auto found = std::ranges::find_if(sketches, [&](const autoschedule::Sketch& each) {
    return each.name.find(sketch) != std::string::npos;
  });
  KILN_CHECK(found != sketches.end());
  const auto number = static_cast<uint32_t>(found - sketches.begin());
  language::Schedule schedule = space.schedule({{{number, found->preferred()}}});
  for (Step& step : schedule.steps) {
    if (step.kind != StepKind::StorageAlign) continue;
    const int64_t lines = std::max<int64_t>(step.factors[0], 128);
    step = Step{.kind = StepKind::StorageSwizzle,
                .stage = step.stage,
                .value = every > 0 ? every : static_cast<int64_t>(std::bit_ceil<uint64_t>(lines))};
  }
  LoweringObserver silent;
  result.loops = lower(result.text.kernel, schedule, target, {}, Layout::Compact, silent);
  return result;
}

void expect_right(const Swizzled& kernel, const std::vector<int64_t>& sizes = {}) {
  EXPECT_EQ(gpu_difference(kernel.text, kernel.loops, sizes), "") << ir::print(kernel.loops);
  EXPECT_EQ(difference_on_host(kernel.text, kernel.loops, sizes), "") << source_of(kernel.loops);
}

TEST(SwizzleOnHost, TransposesAreSwizzledOfThemselves) {
  for (const char* type : {"int8", "float16", "float32", "float64"}) {
    const language::TextKernel text = kernel_of(fmt::format(
        "kernel k(X: {0}[160, 256]) -> (Y: {0}[256, 160]) {{ Y[i, j] = X[j, i] }}", type));
    const ir::Kernel loops = gpu_loops(text);
    EXPECT_NE(ir::print(loops).find("scope(shared) swizzle("), std::string::npos) << type;
    expect_right({text, loops});
    const std::string source = source_of(loops);
    EXPECT_GT(count_in(source, "*(uint4*)&kiln_swizzled<"), 0u) << source;
  }
}

TEST(SwizzleOnHost, ProductsFindTheirFactors) {
  const auto product = [](std::string_view type, std::string_view sum, std::string_view cast,
                          std::string_view a, std::string_view b) {
    return fmt::format(
        "kernel k(A: {0}[{3}], B: {0}[{4}]) -> (C: {1}[72, 72]) {{ C[i, j] = sum[k < 96]("
        "{2}(A[{5}]) * {2}(B[{6}])) }}",
        type, sum, cast, a == "i, k" ? "72, 96" : "96, 72", b == "j, k" ? "72, 96" : "96, 72", a,
        b);
  };
  const auto expect = [&](std::string_view type, std::string_view sum, std::string_view cast,
                          std::string_view a, std::string_view b) {
    const int64_t every = a == "i, k" ? 0 : 256;
    const Swizzled kernel =
        swizzled(product(type, sum, cast, a, b), "matrix instructions, 64 x 64", every);
    EXPECT_GT(count_in(source_of(kernel.loops), "kiln_swizzled<"), 4u) << type << a << b;
    expect_right(kernel);
  };
  for (const char* a : {"i, k", "k, i"}) {
    for (const char* b : {"k, j", "j, k"}) {
      expect("bfloat16", "float32", "float32", a, b);
      expect("int8", "int32", "int32", a, b);
      expect("float32", "float32", "tf32", a, b);
    }
  }
}

TEST(SwizzleOnHost, CopiesInTheBackgroundPutThemThere) {
  for (const char* b : {"B[k, j]", "B[j, k]"}) {
    const Swizzled kernel = swizzled(
        fmt::format("kernel k(A: float16[72, 328], B: float16[{}]) -> (C: float32[72, 136]) {{\n"
                    "  C[i, j] = sum[k < 328](float32(A[i, k]) * float32({})) }}",
                    b == std::string("B[k, j]") ? "328, 136" : "136, 328", b),
        "256 x 128");
    const std::string source = source_of(kernel.loops);
    EXPECT_GT(count_in(source, ">(&kiln_swizzled<"), 2u) << source;
    EXPECT_EQ(difference_on_host(kernel.text, kernel.loops, {}), "") << source;
  }
}

/// Indices of which no bits are known, memory in turn, and rows that are padded as well.
TEST(SwizzleOnHost, AnyIndexFindsWhatWasPutThere) {
  const std::string text = R"(kernel k(X: float32[n, 37], P: int64[37]) -> (Y: float32[n, 37]) {
  Y[i, j] = X[i, floormod(P[j], 37)] + X[i, 36 - j]
  schedule cuda {
    cache_read(X, shared, Y)
    split(Y.i, factor=6)
    bind(Y.i.outer, blockIdx.x)
    bind(Y.j, threadIdx.x)
    compute_at(X.shared, Y.i.outer)
    STEPS
  } })";
  for (const char* steps :
       {"storage_swizzle(X.shared, every=32)", "storage_swizzle(X.shared, every=64)",
        "storage_align(X.shared.ax0, factor=8, offset=1) storage_swizzle(X.shared, every=128)"}) {
    std::string with = text;
    with.replace(with.find("STEPS"), 5, steps);
    Swizzled kernel{kernel_of(with), {}};
    kernel.loops = gpu_loops(kernel.text);
    EXPECT_NE(ir::print(kernel.loops).find("swizzle("), std::string::npos);
    EXPECT_EQ(difference_on_host(kernel.text, kernel.loops, {13}), "") << source_of(kernel.loops);
  }
}

TEST(SwizzleOnHost, KeepsPlacesApartThatAreAPeriodApart) {
  for (const int64_t bytes : {1, 2, 4, 8}) {
    for (const int64_t every : {128 / bytes, 512 / bytes}) {
      const ir::Swizzle swizzle = ir::swizzle_of(bytes, every);
      std::vector<int64_t> places;
      for (int64_t element = 0; element < 2 * swizzle.period(); ++element) {
        places.push_back(swizzle(element));
        EXPECT_EQ(swizzle(element + swizzle.period()), swizzle(element) + swizzle.period());
        EXPECT_EQ(swizzle(swizzle(element)), element);
        EXPECT_EQ(swizzle(element) / swizzle.span(), element / swizzle.span());
        EXPECT_EQ(swizzle(element) % (16 / bytes), element % (16 / bytes));
      }
      std::ranges::sort(places);
      EXPECT_EQ(std::unique(places.begin(), places.end()), places.end());
    }
  }
}

}  // namespace
}  // namespace kiln::testing
