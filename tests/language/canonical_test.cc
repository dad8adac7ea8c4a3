#include "compiler/language/wire/canonical.h"

#include <gtest/gtest.h>

#include "compiler/language/wire/decode.h"
#include "tests/support/kernels.h"

namespace kiln::language::canonical {
namespace {

using testing::kernel_of;

std::string id(const TextKernel& kernel) { return id_of(canonical_form(kernel.kernel.definition)); }
std::string id(std::string_view text) { return id(kernel_of(text)); }

TEST(Canonical, IsThirtyTwoHexDigits) {
  const std::string digits = id(testing::test_kernel("cumsum"));
  EXPECT_EQ(digits.size(), 32U);
  EXPECT_EQ(digits.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Canonical, IgnoresNames) {
  EXPECT_EQ(id("kernel a(X: float32[m]) -> (Y: float32[m]) { Y[i] = X[i] + 1 }"),
            id("kernel b(A: float32[n]) -> (B: float32[n]) { B[j] = A[j] + 1 }"));
}

TEST(Canonical, IgnoresTheOrderOfStagesAndSharing) {
  EXPECT_EQ(id("kernel k(X: float32[m]) -> (Y: float32[m]) {\n"
               "  A: float32[m]  B: float32[m]\n"
               "  A[i] = X[i] * 2  B[i] = X[i] + 3\n"
               "  Y[i] = A[i] + B[i] }"),
            id("kernel k(X: float32[m]) -> (Y: float32[m]) {\n"
               "  A: float32[m]  B: float32[m]  C: float32[m]\n"
               "  C[i] = X[i]\n"  // reaches no output
               "  B[i] = X[i] + 3  A[i] = X[i] * 2\n"
               "  Y[i] = A[i] + B[i] }"));
}

TEST(Canonical, KnowsOneNan) {
  EXPECT_EQ(id("kernel k(X: float32[m]) -> (Y: float32[m]) { Y[i] = max(X[i], nan) }"),
            id("kernel k(X: float32[m]) -> (Y: float32[m]) { Y[i] = max(X[i], -nan) }"));
}

TEST(Canonical, DoesNotReorderOperands) {
  EXPECT_NE(id("kernel k(X: float32[m]) -> (Y: float32[m]) { Y[i] = X[i] + 1 }"),
            id("kernel k(X: float32[m]) -> (Y: float32[m]) { Y[i] = 1 + X[i] }"));
}

TEST(Canonical, TellsApartWhatDiffers) {
  const std::string base = "kernel k(X: float32[m, n]) -> (Y: float32[m, n]) ";
  const char* others[] = {
      "kernel k(X: float64[m, n]) -> (Y: float64[m, n]) { Y[i, j] = X[i, j] }",
      "kernel k(X: float32[m, m]) -> (Y: float32[m, m]) { Y[i, j] = X[i, j] }",
      "kernel k(X: float32[m, n]) -> (Y: float32[n, m]) { Y[i, j] = X[j, i] }",
      "kernel k(out Y: float32[m, n], X: float32[m, n]) { Y[i, j] = X[i, j] }",
      "kernel k(X: float32[m, n]) -> (Y: float32[m, n]) { Y[i, j] = -X[i, j] }",
  };
  std::vector<std::string> ids = {id(base + "{ Y[i, j] = X[i, j] }")};
  for (const char* other : others) {
    ids.push_back(id(other));
  }
  for (size_t a = 0; a < ids.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      EXPECT_NE(ids[a], ids[b]) << a << " and " << b;
    }
  }
}

TEST(Canonical, TellsApartConstantsThatLookAlike) {
  const auto with = [](const char* value) {
    return id("kernel k(X: float32[m]) -> (Y: float32[m]) { Y[i] = X[i] * " + std::string(value) +
              " }");
  };
  EXPECT_NE(with("0.0"), with("-0.0"));
  EXPECT_NE(with("1e-30"), with("1e-31"));
  EXPECT_EQ(with("0.1"), with("0.10000000149011612"));  // one float32
}

TEST(Canonical, NumbersNamesAndStepsTogether) {
  // The client numbers B before A, and has a stage that no output needs.
  const TextKernel text = kernel_of(
      "kernel k(X: float32[m]) -> (Y: float32[m]) {\n"
      "  unused: float32[m]  B: float32[m]  A: float32[m]\n"
      "  unused[u] = X[u]  B[b] = X[b] + 3  A[a] = X[a] * 2\n"
      "  Y[i] = A[i] + B[i]\n"
      "  schedule cpu { split(unused.u, factor=2) split(Y.i, factor=4) vectorize(Y.i.inner)\n"
      "                 unroll(B.b) }\n"
      "}\n");
  const CanonicalKernel canonical = canonicalize(text.kernel, text.schedules[0].second);
  EXPECT_EQ(canonical.kernel.names.stages, (std::vector<std::string>{"X", "A", "B", "Y"}));
  EXPECT_EQ(canonical.kernel.names.axes, (std::vector<std::string>{"a", "b", "i"}));
  ASSERT_EQ(canonical.schedule.steps.size(), 3U);
  EXPECT_EQ(canonical.schedule.steps[0].stage, 3U);
  EXPECT_EQ(canonical.schedule.steps[0].axes, std::vector<uint32_t>{2});
  EXPECT_EQ(canonical.schedule.steps[1].axes, std::vector<uint32_t>{4});  // i.inner
  EXPECT_EQ(canonical.schedule.steps[2].stage, 2U);
  EXPECT_EQ(canonical.schedule.steps[2].axes, std::vector<uint32_t>{1});
}

TEST(Canonical, LeavesLinesOutOfTheIdOfASchedule) {
  TextKernel text = testing::test_kernel("elementwise", "saxpy");
  Schedule& schedule = text.schedules[0].second;
  const std::string before = canonical_form(text.kernel.definition, schedule);
  for (Step& step : schedule.steps) {
    step.line += 7;
  }
  EXPECT_EQ(canonical_form(text.kernel.definition, schedule), before);
  schedule.steps[0].factors[0] = 16;
  EXPECT_NE(canonical_form(text.kernel.definition, schedule), before);
}

TEST(Canonical, TakesTheTimeOfAScanFromItsUpdate) {
  // The extent of the time axis as m - 1 and as -1 + m.
  const TextKernel text = testing::test_kernel("cumsum");
  v1::Definition wire = encode(text.kernel.definition);
  for (v1::Axis& axis : *wire.mutable_axes()) {
    if (axis.kind() != v1::AXIS_KIND_TIME) continue;
    const v1::Operation& minus = wire.expressions(static_cast<int>(axis.extent())).operation();
    const uint32_t m = minus.operands(0);
    v1::Expression& one = *wire.add_expressions();
    one.mutable_integer()->set_type(v1::DATA_TYPE_INT64);
    one.mutable_integer()->set_value(-1);
    v1::Expression& sum = *wire.add_expressions();
    sum.mutable_operation()->set_operator_("add");
    sum.mutable_operation()->add_operands(static_cast<uint32_t>(wire.expressions_size()) - 2);
    sum.mutable_operation()->add_operands(m);
    axis.set_extent(static_cast<uint32_t>(wire.expressions_size()) - 1);
  }
  const Kernel other = decode(wire, encode(text.kernel.names));
  EXPECT_EQ(canonical_form(other.definition), canonical_form(text.kernel.definition));
}

}  // namespace
}  // namespace kiln::language::canonical
