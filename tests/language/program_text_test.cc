#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "tests/support/expect_error.h"

namespace kiln::language::program_text {
namespace {

using testing::expect_error;

const std::string kKernels =
    "kernel step(u: float32[n]) -> (v: float32[n], change: float32[]) {\n"
    "  v[i] = u[i] * 0.5\n"
    "  change[] = max[i < n](abs(v[i] - u[i]))\n"
    "}\n"
    "kernel is_small(x: float32[]) -> (done: bool[]) { done[] = x[] < 0.1 }\n";

v1::Program parse_one(const std::string& lines) {
  const auto programs = parse_programs(kKernels + "program halve {\n" + lines + "\n}\n", "p.kiln");
  EXPECT_EQ(programs.size(), 1U);
  return programs.at(0);
}

void expect_refused(const std::string& lines, const std::string& message) {
  expect_error([&] { parse_one(lines); }, ErrorKind::InvalidArgument, message);
}

TEST(ProgramText, WiresKernelsByName) {
  const v1::Program program = parse_one(
      "parameter u\n"
      "v, change = step(u)\n"
      "done = is_small(change)\n"
      "update u = v\n"
      "report change\n"
      "output v\n"
      "until done");
  ASSERT_EQ(program.values_size(), 4);
  EXPECT_EQ(program.name(), "halve");
  EXPECT_EQ(program.values(0).name(), "u");
  EXPECT_EQ(program.values(0).kind(), v1::VALUE_KIND_PARAMETER);
  EXPECT_EQ(program.values(2).name(), "change");
  EXPECT_EQ(program.values(2).kind(), v1::VALUE_KIND_UNSPECIFIED);
  ASSERT_EQ(program.nodes_size(), 2);
  const v1::ProgramNode& step = program.nodes(0);
  EXPECT_EQ(std::vector<uint32_t>(step.inputs().begin(), step.inputs().end()),
            std::vector<uint32_t>{0});
  EXPECT_EQ(std::vector<uint32_t>(step.outputs().begin(), step.outputs().end()),
            (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(step.line(), 8U);
  EXPECT_EQ(step.file(), "p.kiln");
  EXPECT_EQ(program.updates(0).parameter(), 0U);
  EXPECT_EQ(program.updates(0).value(), 1U);
  EXPECT_EQ(program.reports(0), 2U);
  EXPECT_EQ(program.outputs(0), 1U);
  EXPECT_EQ(program.until(), 3U);
  EXPECT_EQ(program.definitions_size(), 2);
}

TEST(ProgramText, LinesStandInAnyOrderAndKernelsAreSentOnce) {
  const v1::Program program = parse_one("output b; b, c = step(a); a, d = step(x); input x");
  EXPECT_EQ(program.definitions_size(), 1);
  EXPECT_EQ(program.nodes(0).inputs(0), program.nodes(1).outputs(0));
  EXPECT_EQ(program.values(4).kind(), v1::VALUE_KIND_INPUT);
}

TEST(ProgramText, EveryWordHasItsKind) {
  const v1::Program program = parse_one("input a, b data c step d");
  EXPECT_EQ(program.values(1).kind(), v1::VALUE_KIND_INPUT);
  EXPECT_EQ(program.values(2).kind(), v1::VALUE_KIND_BATCH);
  EXPECT_EQ(program.values(3).kind(), v1::VALUE_KIND_STEP);
}

TEST(ProgramText, AsksForGradients) {
  const v1::Program program =
      parse_one("parameter u, w  v, loss = step(u)  du, dw = gradient(loss, u, w)");
  ASSERT_EQ(program.nodes_size(), 2);
  const v1::ProgramNode& gradient = program.nodes(1);
  EXPECT_TRUE(gradient.gradient());
  EXPECT_FALSE(program.nodes(0).gradient());
  EXPECT_EQ(std::vector<uint32_t>(gradient.inputs().begin(), gradient.inputs().end()),
            (std::vector<uint32_t>{3, 0, 1}));
  EXPECT_EQ(std::vector<uint32_t>(gradient.outputs().begin(), gradient.outputs().end()),
            (std::vector<uint32_t>{4, 5}));
  EXPECT_EQ(program.definitions_size(), 1);
}

TEST(ProgramText, AKernelOfTheFileMayBeCalledGradient) {
  const auto programs = parse_programs(
      "kernel gradient(u: float32[n]) -> (v: float32[n]) { v[i] = u[i] } "
      "program p { input u  v = gradient(u)  output v }",
      "p.kiln");
  EXPECT_FALSE(programs.at(0).nodes(0).gradient());
}

TEST(ProgramText, AValueMayBeCalledAsAWordIs) {
  const v1::Program program = parse_one("input data  output, step = step(data)");
  EXPECT_EQ(program.values(0).name(), "data");
  EXPECT_EQ(program.values(1).name(), "output");
}

TEST(ProgramText, SaysWhatIsWrong) {
  expect_refused("parameter u v, c = steps(u)", "the file has no kernel steps; did you mean step");
  expect_refused("parameter state v, c = step(stat)",
                 "program halve has no value stat; did you mean state");
  expect_refused("parameter u v = step(u)", "step gives 2 values (v, change), but has 1 here");
  expect_refused("parameter u v, c = step(u, u)", "step takes 1 value (u), but has 2 here");
  expect_refused("parameter u v, c = step(u) g = gradient(c)",
                 "gradient takes a number and what it is differentiated with respect to, as in "
                 "slope = gradient(loss, w)");
  expect_refused("parameter u v, c = step(u) g, h = gradient(c, u)",
                 "gradient gives 1 value, one for each of 1 behind c, but has 2 names here");
  expect_refused("parameter u input u", "program halve makes u twice");
  expect_refused("parameter u until u until u",
                 "program halve has several values that it runs until");
  expect_refused("parameter u, v update u, v = v",
                 "an update is of one parameter; write a line for each");
  expect_refused("parameter u v = 3", "expected the name of a kernel, but found 3");
  expect_refused("= u",
                 "expected a line of the program, as in v = step(u), parameter u or update u = v, "
                 "but found =");
  expect_refused("parameter u rport u", "rport begins no line of a program; did you mean report");
  expect_refused(
      "input a b v = step(a)",
      "b begins no line of a program; known: input, data, parameter, step, update, output, "
      "report, until");
  expect_refused("update u", "expected = and what the parameter becomes, but found }");
  expect_error(
      [] { parse_programs(kKernels + "program p { input a", "p.kiln"); },
      ErrorKind::InvalidArgument,
      "expected a line of the program, as in v = step(u), parameter u or update u = v, but "
      "found the end of the file");
  expect_error([] { parse_programs(kKernels + "program p { } program p { }", "p.kiln"); },
               ErrorKind::InvalidArgument, "the file has two programs p");
}

TEST(ProgramText, KernelsOfAFileWithProgramsAreParsedAsBefore) {
  EXPECT_EQ(parse_text(kKernels + "program p { input a }", "p.kiln").size(), 2U);
}

TEST(ProgramText, IsLaidOutALineEach) {
  EXPECT_EQ(format_text("kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] } program p{ "
                        "input a,b # what is read\n c=k(a) output c}",
                        "p.kiln"),
            "kernel k(A: float32[n]) -> (B: float32[n]) {\n"
            "  B[i] = A[i]\n"
            "}\n"
            "\n"
            "program p {\n"
            "  input a, b  # what is read\n"
            "  c = k(a)\n"
            "  output c\n"
            "}\n");
}

}  // namespace
}  // namespace kiln::language::program_text
