#include "compiler/language/parts.h"

#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "tests/support/kernels.h"

namespace kiln::language {
namespace {

/// "total(E) -> total": a part by its names.
std::string text_of(const Kernel& kernel, const Part& part) {
  std::string text = part.name + "(";
  for (const TensorId id : part.inputs)
    text += (text.ends_with('(') ? "" : ", ") + kernel.names.tensor_name(kernel.definition, id);
  text += ") ->";
  for (const TensorId id : part.outputs)
    text += " " + kernel.names.tensor_name(kernel.definition, id);
  return text;
}

std::vector<std::string> texts_of(const Kernel& kernel) {
  std::vector<std::string> texts;
  for (const Part& part : parts_of(kernel.definition, kernel.names))
    texts.push_back(text_of(kernel, part));
  return texts;
}

Kernel kernel_in(const char* file) {
  return parse_text(testing::kernel_file(file), file).front().kernel;
}

TEST(Parts, EachComputeIsOne) {
  EXPECT_EQ(texts_of(kernel_in("softmax")),
            (std::vector<std::string>{"top(X) -> top", "E(X, top) -> E", "total(E) -> total",
                                      "Y(E, total) -> Y"}));
}

TEST(Parts, AScanIsOneWithItsCells) {
  const std::vector<std::string> parts = texts_of(kernel_in("two_stage_scan"));
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_NE(parts[0].find("(X) -> "), std::string::npos) << parts[0];
}

/// What a request with the part alone would go through.
class PartsOfTestKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(PartsOfTestKernels, AreKernels) {
  for (const TextKernel& text : parse_text(testing::kernel_file(GetParam()), GetParam())) {
    const std::vector<Part> parts = parts_of(text.kernel.definition, text.kernel.names);
    ASSERT_FALSE(parts.empty());
    for (const Part& part : parts) {
      SCOPED_TRACE(text_of(text.kernel, part));
      const Kernel alone = kernel_of(text.kernel, part);
      const Kernel again = decode(encode(alone.definition), encode(alone.names));
      EXPECT_EQ(again.definition.parameters.size(), part.inputs.size() + part.outputs.size());
      EXPECT_EQ(again.definition.variables.size(), text.kernel.definition.variables.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Text, PartsOfTestKernels,
                         ::testing::Values("cumsum", "two_stage_scan", "two_state_scan",
                                           "row_cumsum", "backward", "lstm", "fibonacci", "matmul",
                                           "softmax", "conv2d", "elementwise"));

TEST(Parts, SayTheSameAsTheWhole) {
  const Kernel whole = kernel_in("softmax");
  const Part part = parts_of(whole.definition, whole.names)[1];
  TextKernel alone;
  alone.kernel = kernel_of(whole, part);
  EXPECT_EQ(print_text(alone),
            "kernel E(X: float32[m, n], top: float32[m]) -> (E: float32[m, n]) {\n"
            "  E[i, j] = exp(X[i, j] - top[i])\n"
            "}\n");
}

TEST(Parts, WorkCountsValuesAndEachElementOnce) {
  const Kernel kernel = testing::kernel_of(
                            "kernel f(A: float32[n, m], B: float64[m]) -> (C: float64[n]) {\n"
                            "  C[i] = sum[k < m](float64(A[i, k])*B[k] + exp(B[k]))\n"
                            "}")
                            .kernel;
  const Part part = parts_of(kernel.definition, kernel.names).front();
  const Work work = work_of(kernel.definition, part, std::vector<int64_t>{10, 20});
  EXPECT_EQ(work.operations, 10 * 20 * 4);  // a product, a function, a sum, and combining
  EXPECT_EQ(work.bytes_read, 10 * 20 * 4 + 20 * 8);
  EXPECT_EQ(work.bytes_written, 10 * 8);
}

TEST(Parts, ALoopAsLongAsATensorSaysReadsThatTensor) {
  const Kernel kernel = testing::kernel_of(
                            "kernel f(A: float32[n, m], L: int32[n]) -> (C: float32[n]) {\n"
                            "  C[i] = sum[k < L[i]](A[i, k])\n"
                            "}")
                            .kernel;
  EXPECT_EQ(texts_of(kernel), (std::vector<std::string>{"C(A, L) -> C"}));
  const Part part = parts_of(kernel.definition, kernel.names).front();
  EXPECT_EQ(kernel_of(kernel, part).definition.parameters.size(), 3U);
  const Work work = work_of(kernel.definition, part, std::vector<int64_t>{10, 20});
  EXPECT_EQ(work.operations, 10);
  EXPECT_EQ(work.bytes_read, 10 * 20 * 4 + 10 * 4);
}

}  // namespace
}  // namespace kiln::language
