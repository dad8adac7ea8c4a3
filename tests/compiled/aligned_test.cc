// The code of whole kernels beside their loops: every statement that computes has some.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/codegen/nvrtc.h"
#include "compiler/compile.h"
#include "compiler/language/text/text.h"
#include "runtime/core/error.h"
#include "tests/support/kernels.h"

namespace kiln {
namespace {

nlohmann::json aligned(const char* file, const Target& target) {
  const language::TextKernel kernel =
      language::parse_text(testing::kernel_file(file), file).front();
  return nlohmann::json::parse(source_of(kernel.kernel, {}, target, {}, "aligned"));
}

/// The numbers of the lines of loops that a column has code of, without those of nothing.
std::set<int> lines_with_code(const nlohmann::json& column) {
  std::set<int> lines;
  for (const nlohmann::json& line : column.at("lines")) {
    if (line.at(0) != 0) lines.insert(line.at(0).get<int>());
  }
  return lines;
}

/// Each assignment of the loops has code in every column.
void expect_code_of_assignments(const nlohmann::json& code) {
  for (const nlohmann::json& column : code.at("columns")) {
    SCOPED_TRACE(column.at("name"));
    const std::set<int> lines = lines_with_code(column);
    int assignments = 0;
    for (size_t i = 0; i < code.at("loops").size(); ++i) {
      const auto text = code.at("loops")[i].get<std::string>();
      if (text.find("] = ") == std::string::npos) continue;
      ++assignments;
      EXPECT_TRUE(lines.contains(static_cast<int>(i) + 1)) << text;
    }
    EXPECT_GT(assignments, 0);
  }
}

class Aligned : public ::testing::TestWithParam<const char*> {};

TEST_P(Aligned, EveryAssignmentHasCodeOfTheCpu) {
  const nlohmann::json code = aligned(GetParam(), {TargetKind::Llvm, ""});
  ASSERT_EQ(code.at("columns").size(), 2U);
  EXPECT_EQ(code.at("columns")[0].at("name"), "llvm");
  EXPECT_EQ(code.at("columns")[1].at("name"), "asm");
  expect_code_of_assignments(code);
  EXPECT_FALSE(code.contains("cubin"));
}

TEST_P(Aligned, EveryAssignmentHasCodeOfTheGpu) {
  try {
    codegen::describe_nvrtc();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const nlohmann::json code = aligned(GetParam(), {TargetKind::Cuda, "sm_90"});
  ASSERT_EQ(code.at("columns").size(), 2U);
  EXPECT_EQ(code.at("columns")[0].at("name"), "cuda");
  EXPECT_EQ(code.at("columns")[1].at("name"), "ptx");
  EXPECT_TRUE(code.at("cubin").get<std::string>().starts_with("7f454c46"));  // ELF
  expect_code_of_assignments({{"loops", code.at("loops")}, {"columns", {code.at("columns")[0]}}});
  EXPECT_GT(lines_with_code(code.at("columns")[1]).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Aligned, ::testing::Values("elementwise", "cumsum", "softmax"));

}  // namespace
}  // namespace kiln
