// What single steps come to in the CUDA C that is made of them: virtual threads, pipelines through
// registers, reductions by a warp, updates in one piece. Each is right on the host, thread by
// thread.
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/expect_error.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::steps {
namespace {

/// Right in the interpreter and on the host; the source.
std::string right_source(const std::string& kernel, const std::vector<int64_t>& sizes) {
  const language::TextKernel text = kernel_of(kernel);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, sizes), "") << ir::print(loops);
  EXPECT_EQ(difference_on_host(text, loops, sizes), "") << source_of(loops);
  return source_of(loops);
}

/// te's tutorial of convolutions on GPUs, of a smaller image.
constexpr const char* kConvolution = R"(
kernel conv(A: float32[3, 3, 16, 32], W: float32[3, 3, 16, 64]) -> (B: float32[3, 3, 64, 32]) {
  Apad: float32[5, 5, 16, 32]
  Apad[yy, xx, cc, nn] = if_then_else(yy >= 1 && yy - 1 < 3 && xx >= 1 && xx - 1 < 3,
      A[yy - 1, xx - 1, cc, nn], 0.0)
  B[yy, xx, ff, nn] = sum[ry < 3, rx < 3, rc < 16](Apad[yy + ry, xx + rx, rc, nn] * W[ry, rx, rc, ff])
  schedule cuda {
    compute_inline(Apad)
    cache_read(Apad, shared, B)
    cache_read(W, shared, B)
    cache_read(Apad.shared, local, B)
    cache_read(W.shared, local, B)
    cache_write(B, local)
    fuse(B.yy, B.xx)
    split(B.ff, factor=32)
    split(B.nn, factor=32)
    bind(B.yy.xx.fused, blockIdx.z)
    bind(B.ff.outer, blockIdx.y)
    bind(B.nn.outer, blockIdx.x)
    split(B.ff.inner, parts=2)
    split(B.nn.inner, parts=2)
    split(B.ff.inner.inner, parts=8)
    split(B.nn.inner.inner, parts=8)
    reorder(B.yy.xx.fused, B.ff.outer, B.nn.outer, B.ff.inner.outer, B.nn.inner.outer,
        B.ff.inner.inner.outer, B.nn.inner.inner.outer, B.ff.inner.inner.inner,
        B.nn.inner.inner.inner)
    bind(B.ff.inner.outer, vthread)
    bind(B.nn.inner.outer, vthread)
    bind(B.ff.inner.inner.outer, threadIdx.y)
    bind(B.nn.inner.inner.outer, threadIdx.x)
    compute_at(B.local, B.nn.inner.inner.outer)
    split(B.local.rc, factor=8)
    reorder(B.local.rc.outer, B.local.ry, B.local.rx, B.local.rc.inner, B.local.ff.c,
        B.local.nn.c)
    compute_at(Apad.shared, B.local.rx)
    compute_at(W.shared, B.local.rx)
    compute_at(Apad.shared.local, B.local.rc.inner)
    compute_at(W.shared.local, B.local.rc.inner)
    split(Apad.shared.ax2, parts=8)
    split(Apad.shared.ax3, parts=8)
    split(Apad.shared.ax3.inner, factor=4)
    reorder(Apad.shared.ax2.outer, Apad.shared.ax3.outer, Apad.shared.ax2.inner,
        Apad.shared.ax3.inner.inner)
    bind(Apad.shared.ax2.outer, threadIdx.y)
    bind(Apad.shared.ax3.outer, threadIdx.x)
    vectorize(Apad.shared.ax3.inner.inner)
    split(W.shared.ax2, parts=8)
    split(W.shared.ax3, parts=8)
    split(W.shared.ax3.inner, factor=4)
    reorder(W.shared.ax2.outer, W.shared.ax3.outer, W.shared.ax2.inner, W.shared.ax3.inner.inner)
    bind(W.shared.ax2.outer, threadIdx.y)
    bind(W.shared.ax3.outer, threadIdx.x)
    vectorize(W.shared.ax3.inner.inner)
  }
})";

TEST(StepsOnHost, TheConvolutionOfTheTutorialIsRight) {
  const std::string source = right_source(kConvolution, {});
  // Tiles of all virtual threads, filled once: 8 channels of 32 images and of 32 filters.
  EXPECT_NE(source.find("float Apad_shared[256];"), std::string::npos) << source;
  EXPECT_NE(source.find("float W_shared[256];"), std::string::npos) << source;
  EXPECT_EQ(count_in(source, "__syncthreads();"), 2u) << source;
}

/// A product in tiles of 16 x 16 of 8 x 4 threads, each of which has 4 of every `strides`.
std::string product(std::string_view n, std::string_view more) {
  return fmt::format(
      R"(kernel p(A: float32[{0}, {0}], B: float32[{0}, {0}]) -> (C: float32[{0}, {0}]) {{
  C[i, j] = sum[k < {0}](A[i, k] * B[k, j])
  schedule cuda {{
    cache_read(A, shared, C)
    cache_read(B, shared, C)
    cache_write(C, local)
    split(C.i, factor=16)
    split(C.j, factor=16)
    bind(C.i.outer, blockIdx.y)
    bind(C.j.outer, blockIdx.x)
    split(C.i.inner, parts=4)
    split(C.j.inner, parts=8)
    reorder(C.i.outer, C.j.outer, C.i.inner.outer, C.j.inner.outer, C.i.inner.inner, C.j.inner.inner)
    bind(C.i.inner.outer, threadIdx.y)
    bind(C.j.inner.outer, threadIdx.x)
    compute_at(C.local, C.j.inner.outer)
    split(C.local.k, factor=8)
    reorder(C.local.k.outer, C.local.k.inner, C.local.i.c, C.local.j.c)
    compute_at(A.shared, C.local.k.outer)
    compute_at(B.shared, C.local.k.outer)
    split(A.shared.ax0, parts=4)
    split(A.shared.ax1, parts=8)
    bind(A.shared.ax0.outer, threadIdx.y)
    bind(A.shared.ax1.outer, threadIdx.x)
    split(B.shared.ax0, parts=4)
    split(B.shared.ax1, parts=8)
    bind(B.shared.ax0.outer, threadIdx.y)
    bind(B.shared.ax1.outer, threadIdx.x)
    {1}
  }}
}})",
      n, more);
}

TEST(StepsOnHost, APipelineFetchesTheNextTileIntoRegisters) {
  for (const char* n : {"32", "37", "n"}) {
    const std::vector<int64_t> sizes =
        n == std::string("n") ? std::vector<int64_t>{19} : std::vector<int64_t>{};
    right_source(product(n, ""), sizes);
    for (const char* more :
         {"software_pipeline(C.local.k.outer, stages=2)",
          "double_buffer(A.shared) double_buffer(B.shared)",
          "double_buffer(A.shared) software_pipeline(C.local.k.outer, stages=2)"}) {
      const std::string source = right_source(product(n, more), sizes);
      const bool is_pipelined = std::string_view(more).find("pipeline") != std::string_view::npos;
      EXPECT_EQ(source.find("A_shared_next") != std::string::npos, is_pipelined) << source;
    }
  }
}

TEST(StepsOnHost, EachBarrierOfAPipelineIsNeeded) {
  const language::TextKernel text =
      kernel_of(product("24", "software_pipeline(C.local.k.outer, stages=2)"));
  const ir::Kernel loops = gpu_loops(text);
  const size_t barriers = count_in(ir::print(loops), "barrier\n");
  EXPECT_EQ(barriers, 2u);
  for (size_t i = 0; i < barriers; ++i) {
    const Setting without("FAKE_NVRTC_WITHOUT_BARRIER", std::to_string(i));
    EXPECT_NE(difference_on_host(text, loops, {}), "") << i << ir::print(loops);
  }
}

/// With two copies of the tiles an iteration waits once: until they are filled.
TEST(StepsOnHost, TilesOfTwoCopiesSaveABarrier) {
  for (const char* more : {"double_buffer(A.shared) double_buffer(B.shared)",
                           "double_buffer(A.shared) double_buffer(B.shared) "
                           "software_pipeline(C.local.k.outer, stages=2)"}) {
    const language::TextKernel text = kernel_of(product("24", more));
    const ir::Kernel loops = gpu_loops(text);
    EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
    EXPECT_EQ(difference_on_host(text, loops, {}), "");
    EXPECT_EQ(count_in(ir::print(loops), "barrier\n"), 1u) << ir::print(loops);
    const Setting without("FAKE_NVRTC_WITHOUT_BARRIER", "0");
    EXPECT_NE(difference_on_host(text, loops, {}), "");
  }
}

/// With more stages the hardware copies, and the thread awaits it.
TEST(StepsOnHost, APipelineOfMoreStagesCopiesInTheBackground) {
  for (const char* n : {"32", "37", "5", "n"}) {
    const std::vector<int64_t> sizes =
        n == std::string("n") ? std::vector<int64_t>{19} : std::vector<int64_t>{};
    for (const int stages : {3, 4, 9}) {
      const std::string step = fmt::format("software_pipeline(C.local.k.outer, stages={})", stages);
      const std::string source = right_source(product(n, step), sizes);
      EXPECT_EQ(source.find("A_shared_next"), std::string::npos) << source;
      const bool is_loop = n != std::string("5");
      EXPECT_EQ(count_in(source, "kiln_copy<4, ") > 0, is_loop) << source;
      // An iteration for each memory, where so many copy, and the loop of those that are left.
      const size_t copies = std::min<size_t>(stages, 4);
      const bool is_written_out = n == std::string("n") || (n == std::string("37") && copies == 3);
      EXPECT_EQ(count_in(source, fmt::format("kiln_await<{}>();", copies - 2)),
                (is_loop ? 1u : 0u) + (is_written_out ? copies : 0u))
          << n << stages << source;
    }
  }
}

TEST(StepsOnHost, CopiesOfSixteenBytesGoInTheBackground) {
  const std::string source = right_source(
      R"(kernel k(A: float16[48, 128], B: float16[24, 128]) -> (C: float32[48, 24]) {
  C[i, j] = sum[k < 128](float32(A[i, k]) * float32(B[j, k]))
  schedule cuda {
    cache_read(A, shared, C) cache_read(B, shared, C)
    split(C.i, factor=24) bind(C.i.outer, blockIdx.x)
    bind(C.i.inner, threadIdx.y) bind(C.j, threadIdx.x)
    split(C.k, factor=16) compute_at(A.shared, C.k.outer) compute_at(B.shared, C.k.outer)
    split(A.shared.ax1, factor=8) vectorize(A.shared.ax1.inner)
    split(B.shared.ax1, factor=4) vectorize(B.shared.ax1.inner)
    bind(A.shared.ax0, threadIdx.y) bind(A.shared.ax1.outer, threadIdx.x)
    bind(B.shared.ax0, threadIdx.y) bind(B.shared.ax1.outer, threadIdx.x)
    software_pipeline(C.k.outer, stages=3)
  } })",
      {});
  // Two before the loop, and those of three iterations, each from one pointer.
  EXPECT_EQ(count_in(source, "kiln_copy<16, "), 2u + 3u) << source;
  EXPECT_EQ(count_in(source, "kiln_copy<8, "), 2u + 3u) << source;
  EXPECT_EQ(count_in(source, "= kiln_moving(&A["), 1u) << source;
  EXPECT_EQ(count_in(source, "= kiln_moving(&B["), 1u) << source;
  EXPECT_EQ(count_in(source, "kiln_from_0 += 96;"), 1u) << source;
}

/// Elements of 16 bits are too small for it: they wait in registers, as with two stages.
TEST(StepsOnHost, WhatHardwareDoesNotCopyWaitsInRegisters) {
  const std::string source = right_source(
      R"(kernel k(A: float16[24, 64], B: float32[64, 24]) -> (C: float32[24, 24]) {
  C[i, j] = sum[k < 64](float32(A[i, k]) * B[k, j])
  schedule cuda {
    cache_read(A, shared, C) cache_read(B, shared, C)
    bind(C.i, threadIdx.y) bind(C.j, threadIdx.x)
    split(C.k, factor=16) compute_at(A.shared, C.k.outer) compute_at(B.shared, C.k.outer)
    bind(A.shared.ax0, threadIdx.y) bind(A.shared.ax1, threadIdx.x)
    bind(B.shared.ax0, threadIdx.y) bind(B.shared.ax1, threadIdx.x)
    software_pipeline(C.k.outer, stages=3)
  } })",
      {});
  EXPECT_NE(source.find("A_shared_next"), std::string::npos) << source;
  EXPECT_EQ(source.find("B_shared_next"), std::string::npos) << source;
  EXPECT_GT(count_in(source, "kiln_copy<4, "), 0u) << source;
}

/// What is computed waits as it is loaded, and each of what it is computed of, under its condition;
/// it is stored before threads wait for what hardware copies, and they wait once.
TEST(StepsOnHost, WhatIsComputedOfLoadsWaitsInRegistersAsTheyAre) {
  const std::string source = right_source(
      R"(kernel k(A: float16[16, 256], s: float32[256], B: float32[256, 16]) -> (C: float32[16, 16]) {
  R: float32[16, 256]
  R[i, k] = if_then_else(k >= 5, max(float32(A[i, k - 5]), 0.0) * s[k], s[0] + 1)
  C[i, j] = sum[k < 256](R[i, k] * B[k, j])
  schedule cuda {
    cache_read(R, shared, C) cache_read(B, shared, C) compute_inline(R)
    bind(C.i, threadIdx.y) bind(C.j, threadIdx.x)
    split(C.k, factor=16) compute_at(R.shared, C.k.outer) compute_at(B.shared, C.k.outer)
    bind(R.shared.ax0, threadIdx.y) bind(R.shared.ax1, threadIdx.x) double_buffer(R.shared)
    bind(B.shared.ax0, threadIdx.y) bind(B.shared.ax1, threadIdx.x)
    software_pipeline(C.k.outer, stages=4)
  } })",
      {});
  EXPECT_EQ(count_in(source, "kiln_float16 R_shared_next"), 1u) << source;
  EXPECT_EQ(count_in(source, "float R_shared_next"), 2u) << source;
  // The first iteration, behind it, four that are written out, and the rest is a loop.
  EXPECT_EQ(count_in(source, "__syncthreads();"), 7u) << source;
  const size_t put = source.find("      R_shared[");
  ASSERT_NE(put, std::string::npos);
  const std::string stored = source.substr(put + 6, source.find('\n', put) - put - 6);
  EXPECT_NE(stored.find("kiln_max"), std::string::npos) << stored;
  EXPECT_EQ(stored.find("A["), std::string::npos) << stored;
}

TEST(StepsOnHost, AnIterationOfThreeStagesWaitsOnceAndNeedsIt) {
  const language::TextKernel text =
      kernel_of(product("64", "software_pipeline(C.local.k.outer, stages=3)"));
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, {}), "");
  EXPECT_EQ(difference_on_host(text, loops, {}), "");
  const std::string lines = ir::print(loops);
  // Three iterations are written out, and the rest is a loop.
  EXPECT_EQ(count_in(lines, "barrier\n"), 4u) << lines;
  EXPECT_EQ(count_in(lines, "await 1\n"), 4u) << lines;
  for (const char* const what : {"FAKE_NVRTC_WITHOUT_BARRIER", "FAKE_NVRTC_WITHOUT_AWAIT"}) {
    for (int i = 0; i < 4; ++i) {
      const Setting without(what, std::to_string(i));
      EXPECT_NE(difference_on_host(text, loops, {}), "") << what << i;
    }
  }
  for (const std::string_view what : {"barrier\n", "await 1\n"}) {
    for (size_t at = lines.find(what); at != std::string::npos; at = lines.find(what, at + 1)) {
      std::string without = lines;
      without.erase(at, what.size());
      EXPECT_THROW((void)gpu_difference(text, ir::parse(without), {}), Error) << what << at;
    }
  }
  // One group more that need not have arrived.
  for (size_t at = lines.find("await 1"); at != std::string::npos;
       at = lines.find("await 1", at + 1)) {
    std::string late = lines;
    late.replace(at, 7, "await 2");
    EXPECT_THROW((void)gpu_difference(text, ir::parse(late), {}), Error) << at;
  }
}

TEST(StepsOnHost, WhatCannotWaitInRegistersIsNotPipelined) {
  const auto refused = [](const std::string& kernel) -> std::string {
    try {
      gpu_loops(kernel_of(kernel));
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "SOFTWARE_PIPELINE");
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(refused(R"(kernel k(A: float32[64, 8]) -> (C: float32[64]) {
      B: float32[64]
      B[i] = sum[j < 8](A[i, j])
      C[i] = B[i] + 1
      schedule cuda { split(C.i, factor=8) compute_at(B, C.i.outer)
        software_pipeline(C.i.outer, stages=2) bind(C.i.inner, threadIdx.x) } })"),
            "cannot pipeline i.outer of C: B is more than one value stored at each place, which "
            "could wait in registers of a GPU's thread");
  EXPECT_EQ(refused(R"(kernel k(A: float32[64, 64]) -> (C: float32[64, 64]) {
      C[i, j] = A[i, 63 - j]
      schedule cuda { cache_read(A, shared, C) bind(C.i, blockIdx.x) split(C.j, factor=8)
        reorder(C.i, C.j.inner, C.j.outer)
        bind(C.j.inner, threadIdx.x) compute_at(A.shared, C.j.outer)
        bind(A.shared.ax1, threadIdx.y) software_pipeline(C.j.outer, stages=2) } })"),
            "cannot pipeline j.outer of C: A.shared is computed by other threads than those that "
            "j.outer of C stands in; bind axes of both to the same ones");
}

TEST(StepsOnHost, WhatHasNoConstantSizeIsNotPipelined) {
  const auto refused = [](const std::string& kernel) -> std::string {
    try {
      gpu_loops(kernel_of(kernel));
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "SOFTWARE_PIPELINE");
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(refused(R"(kernel k(A: float32[64, m]) -> (C: float32[64, m]) {
      B: float32[64, m]
      B[i, j] = A[i, j] * 2
      C[i, j] = B[i, j] + 1
      schedule cuda { split(C.i, factor=8) compute_at(B, C.i.outer)
        software_pipeline(C.i.outer, stages=2) bind(C.i.inner, threadIdx.x) } })"),
            "cannot pipeline i.outer of C: the part of B that a thread fetches has m iterations of "
            "j, which is no constant");
  EXPECT_EQ(refused(R"(kernel k(A: float32[64, 64], L: int64[1]) -> (C: float32[64]) {
      B: float32[64, 64]
      B[i, j] = A[i, j] * 2
      C[i] = sum[k < L[0]](B[i, k])
      schedule cuda { bind(C.i, threadIdx.x) compute_at(B, C.k)
        software_pipeline(C.k, stages=2) } })"),
            "cannot pipeline k of C: data says how many iterations it has");
}

/// Rows of `n` elements, each reduced by `threads` threads.
std::string rows(std::string_view what, int n, int threads, std::string_view type = "float32") {
  return fmt::format(R"(kernel r(X: {3}[5, {1}]) -> (S: {3}[5]) {{
  S[i] = {0}[k < {1}](X[i, k])
  schedule cuda {{
    bind(S.i, blockIdx.x)
    split(S.k, factor={2})
    bind(S.k.inner, threadIdx.x)
  }}
}})",
                     what, n, threads, type);
}

TEST(StepsOnHost, ThreadsOfOneWarpReduceByShuffles) {
  for (const int threads : {2, 8, 32}) {
    const std::string source = right_source(rows("sum", 70, threads), {});
    EXPECT_EQ(count_in(source, "__shared__"), 0u) << source;
    EXPECT_EQ(count_in(source, "__sync"), 0u) << source;
  }
  for (const char* type : {"float16", "float64", "int8", "int64", "bfloat16", "uint32"})
    EXPECT_NE(right_source(rows("max", 70, 16, type), {}).find("kiln_shuffle"), std::string::npos);
}

TEST(StepsOnHost, MoreThreadsLeaveTheLastPartsToAWarp) {
  for (const int threads : {64, 96, 256}) {
    const std::string source = right_source(rows("sum", 700, threads), {});
    // Of the parts that are stored, and of each step down to 64.
    EXPECT_EQ(count_in(source, "__syncthreads();"), threads == 64   ? 1u
                                                    : threads == 96 ? 2u
                                                                    : 3u)
        << source;
    EXPECT_EQ(count_in(source, "kiln_shuffle(S_left"), 5u) << source;
  }
  // Neither a power of two nor whole warps.
  EXPECT_EQ(count_in(right_source(rows("sum", 70, 20), {}), "kiln_shuffle"), 0u);
}

TEST(StepsOnHost, RowsOfABlockReduceByShufflesSideBySide) {
  const std::string source = right_source(R"(kernel r(X: float32[n, 50]) -> (S: float32[n]) {
    S[i] = sum[k < 50](X[i, k])
    schedule cuda {
      split(S.i, factor=4)
      bind(S.i.outer, blockIdx.x)
      bind(S.i.inner, threadIdx.y)
      split(S.k, factor=16)
      bind(S.k.inner, threadIdx.x)
    }
  })",
                                          {10});
  EXPECT_EQ(count_in(source, "__sync"), 0u) << source;
}

/// The second state needs the first column of the first one, which another block computes.
TEST(StepsOnHost, AScanOfTwoStatesIsRight) {
  const std::string scan = R"(kernel k(X: float32[m, n]) -> (S: float32[m, n], R: float32[m, l]) {
    scan t {
      S[0, i] = X[0, i]
      R[0, j] = 0
      S[t, i] = S[t - 1, i] + X[t, i]
      R[t, j] = R[t - 1, j] + S[t - 1, 0]
    }
    schedule cuda {)";
  const auto bound = [](const std::string& axis) {
    return fmt::format(
        "split({0}, factor=64) bind({0}.outer, blockIdx.x) bind({0}.inner, threadIdx.x) ", axis);
  };
  const std::string steps =
      bound("S.init.i") + bound("R.init.j") + bound("S.update.i") + bound("R.update.j");
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{5, 150, 70}, {1, 64, 1}, {3, 1, 129}})
    right_source(scan + steps + "} }", sizes);
}

TEST(StepsOnHost, ThreadsUpdateOneElementInOnePiece) {
  for (const char* type : {"int32", "int64", "uint32", "uint64", "float32", "float64"}) {
    for (const char* how : {"add", "min", "max"}) {
      const bool is_rounded = std::string_view(type).starts_with("float") && how[0] == 'a';
      const std::string kernel =
          fmt::format(R"(kernel h(B: {0}[7], bin: int32[m], X: {0}[m]) -> (H: {0}[7]) {{
  H = scatter_{1}[r < m](B, floormod(int64(bin[r]), 7), X[r])
  schedule cuda {{
    split(H.r, factor=32)
    bind(H.r.outer, blockIdx.x)
    bind(H.r.inner, threadIdx.x)
  }}
}})",
                      type, how);
      if (is_rounded) {
        EXPECT_THROW(gpu_loops(kernel_of(kernel)), Error) << kernel;
        continue;
      }
      EXPECT_NE(right_source(kernel, {100}).find("atomic"), std::string::npos);
    }
  }
}

/// Its second launch reads what the first one has not stored where the check has fired.
TEST(StepsOnHost, LaunchesAfterACheckThatFiredDoNothing) {
  const language::TextKernel text = kernel_of(
      R"(kernel k(A: float32[n], I: int32[70]) -> (C: float32[70]) {
        B: float32[70]
        B[i] = A[I[i]] * 2
        C[i] = B[69 - i] + 1
        schedule cuda {
          split(B.i, factor=32)
          bind(B.i.outer, blockIdx.x)
          bind(B.i.inner, threadIdx.x)
          bind(C.i, threadIdx.x)
        }
      })");
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 2u) << ir::print(loops);
  HostGpu gpu;
  gpu.add(loops);
  gpu.compile();
  const HostTensor a = zeros(DType::Float32, {5});
  const auto run = [&](int32_t outside) {
    HostTensor indices = zeros(DType::Int32, {70});
    std::memcpy(&indices.bytes[4 * 33], &outside, sizeof outside);
    const std::vector<int64_t> sizes = {5};
    const std::vector<HostTensor> inputs = {a, indices};
    const std::vector<HostTensor> outputs = gpu.run(0, sizes, inputs);
    return difference(outputs,
                      language::evaluate(text.kernel.definition, text.kernel.names, sizes, inputs),
                      std::vector<double>{0});
  };
  EXPECT_EQ(run(4), "");
  // A read of what nobody has written would be told as a fault of the device.
  const Error error =
      expect_error([&] { run(5); }, ErrorKind::InvalidArgument,
                   "stage of k reads index 5 of dimension 0 of stage, but its extent there is 5");
  EXPECT_EQ(error.reason(), "INDEX_OUT_OF_RANGE");
  // The next call of the same code is as the first.
  EXPECT_EQ(run(3), "");
  EXPECT_EQ(run(3), "");
}

TEST(StepsOnHost, AHistogramNeedsNoSchedule) {
  const std::string source = right_source(
      "kernel h(B: int32[7], bin: int32[m]) -> (H: int32[7]) {\n"
      "  H = scatter_add[r < m](B, floormod(int64(bin[r]), 7), 1)\n}",
      {300});
  EXPECT_NE(source.find("atomicAdd(&H["), std::string::npos) << source;
}

}  // namespace
}  // namespace kiln::testing::steps
