/// Squares of elements that are transposed in registers: what they store, and that they do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/backends.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

/// Panels of 32 channels of so many lines, by squares of `lanes`.
language::TextKernel panels(std::string_view type, int lanes) {
  return kernel_of(
      fmt::format("kernel pack(F: {0}[64, 16, 3]) -> (P: {0}[2, 16, 3, 32]) {{\n"
                  "  P[o, c, r, i] = F[o*32 + i, c, r]\n"
                  "  schedule cpu {{\n"
                  "    fuse(P.c, P.r)  split(P.c.r.fused, factor={1})  split(P.i, factor={1})\n"
                  "    reorder(P.o, P.c.r.fused.outer, P.i.outer, P.i.inner, P.c.r.fused.inner)\n"
                  "    unroll(P.i.inner)  vectorize(P.c.r.fused.inner)\n"
                  "  }}\n"
                  "}}\n",
                  type, lanes));
}

TEST(TurnedStores, AreWhatTheDefinitionSays) {
  for (const std::string_view type : {"float32", "float64", "float16", "int32", "int8"}) {
    for (const int lanes : {2, 4, 8, 16}) {
      SCOPED_TRACE(fmt::format("{} by {}", type, lanes));
      const language::TextKernel text = panels(type, lanes);
      Random random(1);
      const std::vector<HostTensor> inputs = random_inputs(text.kernel, {}, random);
      const std::vector<HostTensor> expected =
          language::evaluate(text.kernel.definition, text.kernel.names, {}, inputs);
      const std::vector<HostTensor> actual =
          run_on_cpu(text.kernel, text.schedules[0].second, {}, inputs);
      EXPECT_EQ(actual[0].bytes, expected[0].bytes);
    }
  }
}

TEST(TurnedStores, ScatterNothing) {
  for (const int lanes : {8, 16}) {
    const language::TextKernel text = panels("float32", lanes);
    const std::string code =
        source_of(text.kernel, text.schedules[0].second, {TargetKind::Llvm, "znver4"}, {}, "asm");
    EXPECT_EQ(code.find("scatter"), std::string::npos) << code;
  }
}

size_t count_of(const std::string& code, std::initializer_list<std::string_view> names) {
  size_t count = 0;
  for (const std::string_view name : names)
    for (size_t at = code.find(name); at != std::string::npos; at = code.find(name, at + 1))
      ++count;
  return count;
}

/// A square of n rows takes n shuffles for each bit of a lane's number, within 128 bits or of them.
TEST(TurnedStores, ShuffleEachRegisterOnceForEachBit) {
  const auto shuffles = [](std::string_view type, int lanes, const char* cpu) {
    const language::TextKernel text = panels(type, lanes);
    const std::string code =
        source_of(text.kernel, text.schedules[0].second, {TargetKind::Llvm, cpu}, {}, "asm");
    EXPECT_EQ(count_of(code, {"vpinsr", "vpextr", "vpermt2", "vpermi2", "vpermpd", "vpermq"}), 0U)
        << code;
    return count_of(code, {"unpck", "vperm2f128", "vinsertf128", "vshuff64x2", "vinsertf64x4",
                           "vshuff32x4"}) /
           static_cast<double>(lanes);
  };
  EXPECT_EQ(shuffles("float32", 8, "znver3"), 3);
  EXPECT_EQ(shuffles("float64", 4, "znver3"), 2);
  EXPECT_EQ(shuffles("int8", 16, "znver3"), 4);
  EXPECT_EQ(shuffles("int16", 8, "znver3"), 3);
  EXPECT_EQ(shuffles("float32", 16, "znver4"), 4);
}

}  // namespace
}  // namespace kiln::testing
