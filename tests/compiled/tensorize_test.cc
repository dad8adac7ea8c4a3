#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/compile.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

constexpr std::string_view kBytes = R"(
kernel bytes(A: uint8[m, l, 4], W: int8[n, l, 16, 4]) -> (C: int32[m, n, 16]) {
  C[i, p, j] = sum[q < l, k < 4](int32(A[i, q, k]) * int32(W[p, q, j, k]))
  schedule cpu {
    split(C.i, factor=4)
    reorder(C.i.outer, C.p, C.q, C.i.inner, C.j, C.k)
    parallel(C.i.outer)
    unroll(C.i.inner)
    tensorize(C.j, x86.dot.u8s8s32)
  }
})";

constexpr std::string_view kHalves = R"(
kernel halves(A: bfloat16[m, l, 2], W: bfloat16[n, l, 16, 2]) -> (C: float32[m, n, 16]) {
  C[i, p, j] = sum[q < l, k < 2](float32(A[i, q, k]) * float32(W[p, q, j, k]))
  schedule cpu {
    reorder(C.q, C.j)
    tensorize(C.j, x86.dot.bf16f32)
  }
})";

constexpr std::string_view kTile = R"(
kernel tile(A: float32[m, l], B: float32[l, n]) -> (C: float32[m, n]) {
  C[i, j] = sum[k < l](A[i, k] * B[k, j])
  schedule cpu {
    tile(C.i, C.j, 4, 32)
    reorder(C.i.outer, C.j.outer, C.k, C.i.inner, C.j.inner)
    tensorize(C.i.inner, x86.fma.f32)
  }
})";

struct Case {
  language::TextKernel text;
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> expected;

  Case(std::string_view kernel, const std::vector<int64_t>& sizes) : text(kernel_of(kernel)) {
    Random random(7);
    inputs = random_inputs(text.kernel, sizes, random);
    expected = language::evaluate(text.kernel.definition, text.kernel.names, sizes, inputs);
  }
  const language::Schedule& schedule() const { return text.schedules[0].second; }
};

void expect_right(std::string_view kernel, const std::vector<int64_t>& sizes) {
  SCOPED_TRACE(::testing::PrintToString(sizes));
  const Case c(kernel, sizes);
  const auto actual = run_on_cpu(c.text.kernel, c.schedule(), sizes, c.inputs);
  EXPECT_EQ(difference(actual, c.expected, {}), "");
}

TEST(TensorizeCompiled, ComputesWhatTheLoopsSay) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{1, 1, 1}, {4, 3, 2}, {9, 5, 3}, {0, 2, 2}, {5, 0, 2}}) {
    expect_right(kBytes, sizes);
    expect_right(kHalves, sizes);
  }
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{1, 1, 1}, {4, 7, 32}, {9, 5, 100}, {3, 0, 40}}) {
    expect_right(kTile, sizes);
  }
}

TEST(TensorizeCompiled, KeepsTheExtremesOfItsTypes) {
  Case c(kBytes, {1, 4, 1});
  std::fill(c.inputs[0].bytes.begin(), c.inputs[0].bytes.end(), std::byte{255});
  std::fill(c.inputs[1].bytes.begin(), c.inputs[1].bytes.end(), std::byte{0x80});
  const auto actual = run_on_cpu(c.text.kernel, c.schedule(), {1, 4, 1}, c.inputs);
  EXPECT_EQ(values_of<int32_t>(actual[0]), std::vector<int32_t>(16, 16 * 255 * -128));
}

std::string assembly(std::string_view kernel, const std::string& arch, bool strict = false) {
  const language::TextKernel text = kernel_of(kernel);
  CompileOptions options;
  options.strict = strict;
  return source_of(text.kernel, text.schedules[0].second, {TargetKind::Llvm, arch}, options, "asm");
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(TensorizeCompiled, UsesTheInstructionsOfTheCpu) {
  EXPECT_TRUE(contains(assembly(kBytes, "znver4"), "vpdpbusd"));
  EXPECT_TRUE(contains(assembly(kHalves, "znver4"), "vdpbf16ps"));
  EXPECT_TRUE(contains(assembly(kBytes, "x86-64-v4+avx512vnni"), "vpdpbusd"));
  EXPECT_TRUE(contains(assembly(kHalves, "x86-64-v4+avx512vnni+avx512bf16"), "vdpbf16ps"));
  EXPECT_TRUE(contains(assembly(kTile, "znver4"), "vfmadd"));
}

TEST(TensorizeCompiled, DoesWithoutInstructionsThatTheCpuLacks) {
  EXPECT_FALSE(contains(assembly(kBytes, "x86-64-v3"), "vpdpbusd"));
  EXPECT_FALSE(contains(assembly(kHalves, "x86-64-v4"), "vdpbf16ps"));
  EXPECT_FALSE(contains(assembly(kHalves, "znver4", true), "vdpbf16ps"));
}

TEST(TensorizeCompiled, RunsWithoutTheInstructionToo) {
  const std::vector<int64_t> sizes = {9, 5, 3};
  for (const std::string_view kernel : {kBytes, kHalves}) {
    const Case c(kernel, sizes);
    const auto artifact = std::make_shared<const Artifact>(
        compile(c.text.kernel, c.schedule(), {TargetKind::Llvm, "x86-64-v2"}, {}));
    std::vector<HostTensor> tensors = {c.inputs[0], c.inputs[1], {}};
    run_artifact(artifact, tensors, {{"n0", 9}, {"n1", 5}, {"n2", 3}});
    EXPECT_EQ(difference({tensors[2]}, c.expected, {}), "");
  }
}

/// Sums of products of bytes in vectors of every length: LLVM has ideas of its own about them.
TEST(TensorizeCompiled, VectorsOfBytesAddUpWithoutTensorize) {
  for (const std::string_view types : {"uint8, int8", "int8, uint8", "int8, int8"}) {
    const std::string a(types.substr(0, types.find(',')));
    const std::string b(types.substr(types.find(' ') + 1));
    for (int lanes = 2; lanes <= 64; lanes += lanes < 33 ? 1 : 31) {
      const std::string row = fmt::format(R"(
kernel row(A: {0}[m, {2}], B: {1}[m, {2}]) -> (C: int32[m]) {{
  C[i] = sum[k < {2}](int32(A[i, k]) * int32(B[i, k]))
  schedule cpu {{ vectorize(C.k) }}
}})",
                                          a, b, lanes);
      expect_right(row, {5});
      const std::string columns = fmt::format(R"(
kernel columns(A: {0}[m, {2}, 4], B: {1}[{2}, n, 4]) -> (C: int32[m, n]) {{
  C[i, j] = sum[q < {2}, r < 4](int32(A[i, q, r]) * int32(B[q, j, r]))
  schedule cpu {{ vectorize(C.q) }}
}})",
                                              a, b, lanes);
      expect_right(columns, {3, 2});
    }
  }
}

std::string report(std::string_view kernel, const std::string& arch, bool strict = false) {
  const language::TextKernel text = kernel_of(kernel);
  CompileOptions options;
  options.strict = strict;
  return source_of(text.kernel, text.schedules[0].second, {TargetKind::Llvm, arch}, options,
                   "report");
}

TEST(TensorizeCompiled, SaysWhatTheCpuLacks) {
  EXPECT_FALSE(contains(report(kBytes, "znver4"), "several instructions"));
  EXPECT_TRUE(contains(report(kBytes, "x86-64-v3"),
                       "x86.dot.u8s8s32 runs as several instructions: the CPU x86-64-v3 has no "
                       "avx512vnni"));
  EXPECT_TRUE(contains(report(kHalves, "znver4", true),
                       "x86.dot.bf16f32 runs as several instructions: its own rounds in a way that "
                       "strict forbids"));
}

TEST(TensorizeCompiled, AgreesForArgumentsOfAnyStride) {
  const std::vector<int64_t> sizes = {6, 5, 3};
  const Case c(kBytes, sizes);
  std::vector<HostTensor> tensors = {c.inputs[0], c.inputs[1], c.expected[0]};
  std::fill(tensors[2].bytes.begin(), tensors[2].bytes.end(), std::byte{0});
  run_spread_out(compile_for_host(c.text.kernel, c.schedule(), {.strided = true}), tensors,
                 {{"n0", 6}, {"n1", 5}, {"n2", 3}});
  EXPECT_EQ(difference({tensors[2]}, c.expected, {}), "");
}

}  // namespace
}  // namespace kiln::testing
