#include <limits>

#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/canonical.h"
#include "compiler/language/wire/decode.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"
#include "tests/support/tensors.h"

namespace kiln::language::reducer {
namespace {

using testing::expect_error;
using testing::kernel_of;
using testing::tensor_of;
using testing::values_of;

constexpr std::string_view kArgmax =
    "kernel largest(A: float32[m, n]) -> (I: int64[m], V: float32[m]) {\n"
    "  reducer argmax((i: int64, v: float32), (j, w)) = select(v >= w, i, j), "
    "select(v >= w, v, w) identity -1, -inf\n"
    "  I[r], V[r] = argmax[k < n](k, A[r, k])\n"
    "}\n";

constexpr std::string_view kStart =
    "kernel start(A: float32[m, n], B: int8[m, n], S: float32[m]) -> (C: float32[m]) {\n"
    "  C[i] = sum[k < n](A[i, k], where=B[i, k] != 0, init=S[i])\n"
    "}\n";

std::string id(const TextKernel& kernel) { return id_of(canonical_form(kernel.kernel.definition)); }

std::string printed(std::string_view text) { return print_text(kernel_of(text)); }

std::vector<HostTensor> run(std::string_view text, std::vector<int64_t> sizes,
                            const std::vector<HostTensor>& inputs) {
  const TextKernel kernel = kernel_of(text);
  return evaluate(kernel.kernel.definition, kernel.kernel.names, sizes, inputs);
}

/// A kernel whose message a test spoils.
struct Wire {
  explicit Wire(std::string_view text)
      : definition(encode(kernel_of(text).kernel.definition)),
        names(encode(kernel_of(text).kernel.names)) {}

  v1::Reducer& reducer() { return *definition.mutable_reducers(0); }
  /// The expressions that are reductions, in order.
  v1::Reduction& reduction(int number) {
    for (v1::Expression& expression : *definition.mutable_expressions()) {
      if (expression.has_reduction() && number-- == 0) return *expression.mutable_reduction();
    }
    throw std::out_of_range("no such reduction");
  }
  uint32_t add(const v1::Expression& expression) {
    *definition.add_expressions() = expression;
    return static_cast<uint32_t>(definition.expressions_size()) - 1;
  }
  uint32_t integer(int64_t value) {
    v1::Expression expression;
    expression.mutable_integer()->set_type(v1::DATA_TYPE_INT64);
    expression.mutable_integer()->set_value(value);
    return add(expression);
  }

  v1::Definition definition;
  v1::SourceMap names;
};

struct Case {
  std::string_view text;
  void (*spoil)(Wire&);
  std::string_view message;
};

void expect_refused(const Case& test) {
  SCOPED_TRACE(test.message);
  Wire wire(test.text);
  test.spoil(wire);
  expect_error([&] { decode(wire.definition, wire.names); }, ErrorKind::InvalidArgument,
               test.message);
}

TEST(Reducer, CombinesAllItsValuesAtOnce) {
  const HostTensor a = tensor_of<float>({2, 4}, {3, 7, 7, 1, -4, -2, -8, -2});
  const std::vector<HostTensor> results = run(kArgmax, {2, 4}, {a});
  EXPECT_EQ(values_of<int64_t>(results[0]), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(values_of<float>(results[1]), (std::vector<float>{7, -2}));
  // Each of both takes what the other was before.
  const std::vector<HostTensor> swapped =
      run("kernel f(A: int32[n]) -> (P: int32[], Q: int32[]) {\n"
          "  reducer swap((p: int32, q: int32), (r, s)) = q + r, p + s identity 0, 0\n"
          "  P[], Q[] = swap[k < n](A[k], 10 * A[k])\n"
          "}",
          {3}, {tensor_of<int32_t>({3}, {1, 2, 3})});
  EXPECT_EQ(values_of<int32_t>(swapped[0]), (std::vector<int32_t>{24}));
  EXPECT_EQ(values_of<int32_t>(swapped[1]), (std::vector<int32_t>{42}));
}

TEST(Reducer, OfNothingIsItsIdentity) {
  const std::vector<HostTensor> results = run(kArgmax, {2, 0}, {tensor_of<float>({2, 0}, {})});
  EXPECT_EQ(values_of<int64_t>(results[0]), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(values_of<float>(results[1])[1], -std::numeric_limits<float>::infinity());
}

TEST(Reducer, GivesOneOfItsValuesInsideAnExpression) {
  const std::vector<HostTensor> results =
      run("kernel f(A: float32[m, n]) -> (I: int64[m]) {\n"
          "  reducer argmax((i: int64, v: float32), (j, w)) = select(v >= w, i, j), "
          "select(v >= w, v, w) identity -1, -inf\n"
          "  I[r] = argmax.v0[k < n](k, A[r, k]) * 10 + int64(argmax.v1[k < n](k, A[r, k]))\n"
          "}",
          {1, 3}, {tensor_of<float>({1, 3}, {2, 5, 4})});
  EXPECT_EQ(values_of<int64_t>(results[0]), (std::vector<int64_t>{15}));
}

TEST(Reduction, LeavesOutWhereTheConditionDoesNotHold) {
  const HostTensor a = tensor_of<float>({2, 3}, {1, 2, 4, 8, 16, 32});
  const HostTensor b = tensor_of<int8_t>({2, 3}, {1, 0, 1, 0, 0, 0});
  const HostTensor s = tensor_of<float>({2}, {100, 200});
  EXPECT_EQ(values_of<float>(run(kStart, {2, 3}, {a, b, s})[0]), (std::vector<float>{105, 200}));
}

TEST(Reduction, ReadsNothingWhereTheConditionDoesNotHold) {
  const std::vector<HostTensor> results =
      run("kernel f(A: float32[n]) -> (C: float32[n]) {\n"
          "  C[i] = sum[k < 2](A[i + k], where=i + k < n)\n"
          "}",
          {3}, {tensor_of<float>({3}, {1, 2, 4})});
  EXPECT_EQ(values_of<float>(results[0]), (std::vector<float>{3, 6, 4}));
}

TEST(Reducer, IsPrintedAsItIsWritten) {
  EXPECT_EQ(printed(kArgmax), kArgmax);
  EXPECT_EQ(printed(kStart), kStart);
  const std::string_view one_value =
      "kernel f(A: float32[m, n], B: float32[m]) -> (C: float32[m]) {\n"
      "  reducer logsum(a: float32, b) = log(exp(a) + exp(b)) identity -inf\n"
      "  C[i] = 2.0 * logsum[k < n](A[i, k], where=k < i, init=B[i])\n"
      "}\n";
  EXPECT_EQ(printed(one_value), one_value);
  const std::string_view started =
      "kernel f(A: float32[m, n]) -> (I: int64[m], V: float32[m]) {\n"
      "  reducer argmax((i: int64, v: float32), (j, w)) = select(v >= w, i, j), "
      "select(v >= w, v, w) identity -1, -inf\n"
      "  I[r], V[r] = argmax[k < n](k, A[r, k], where=k != r, init=(7, 0.5))\n"
      "}\n";
  EXPECT_EQ(printed(started), started);
  const std::string_view inside =
      "kernel f(A: float32[m, n]) -> (I: int64[m]) {\n"
      "  reducer argmax((i: int64, v: float32), (j, w)) = select(v >= w, i, j), "
      "select(v >= w, v, w) identity -1, -inf\n"
      "  I[r] = argmax.v0[k < n](k, A[r, k]) + 1\n"
      "}\n";
  EXPECT_EQ(printed(inside), inside);
}

TEST(Reducer, HasNamesThatCanBeRead) {
  TextKernel kernel = kernel_of(kArgmax);
  kernel.kernel.names.reducers[0] = {"sum", {"m", "m", "two words", ""}};
  const std::string text = print_text(kernel);
  EXPECT_NE(text.find("reducer sum_1((m_1: int64, m_2: float32), (two_words, __1)) = "),
            std::string::npos)
      << text;
  EXPECT_EQ(id(kernel_of(text)), id(kernel));
}

TEST(Reducer, IsPartOfTheIdOfAKernelAndItsNamesAreNot) {
  std::string renamed(kArgmax);
  for (size_t at = 0; (at = renamed.find("argmax", at)) != std::string::npos;)
    renamed.replace(at, 6, "best");
  EXPECT_EQ(id(kernel_of(renamed)), id(kernel_of(kArgmax)));
  std::string other(kArgmax);
  other.replace(other.find("v >= w"), 6, "v > w");
  EXPECT_NE(id(kernel_of(other)), id(kernel_of(kArgmax)));
  std::string start(kStart);
  start.replace(start.find(", init=S[i]"), 11, "");
  EXPECT_NE(id(kernel_of(start)), id(kernel_of(kStart)));
}

TEST(Reducer, ThatIsOfTheTableIsThat) {
  const auto with = [](std::string_view reducer, std::string_view name) {
    return fmt::format(
        "kernel f(A: float32[n]) -> (C: float32[]) {{\n  {}\n  C[] = {}[k < n](A[k])\n}}\n",
        reducer, name);
  };
  const std::string sum = id(kernel_of(with("", "sum")));
  EXPECT_EQ(id(kernel_of(with("reducer mine(a: float32, b) = a + b identity 0", "mine"))), sum);
  EXPECT_NE(id(kernel_of(with("reducer mine(a: float32, b) = a + b identity 1", "mine"))), sum);
  EXPECT_NE(id(kernel_of(with("reducer mine(a: float32, b) = a + a identity 0", "mine"))), sum);
  EXPECT_EQ(id(kernel_of(with("reducer mine(a: float32, b) = max(a, b) identity -inf", "mine"))),
            id(kernel_of(with("", "max"))));
}

TEST(Reducer, BelongsToTheScheduleStateAsAnyReduction) {
  const TextKernel kernel = kernel_of(kArgmax);
  const ScheduleState state(kernel.kernel.definition, kernel.kernel.names);
  EXPECT_TRUE(state.stage(1).is_reduction);
  EXPECT_TRUE(state.stage(1).inner.empty());
  EXPECT_EQ(state.stage(1).loops.leaves.size(), 2U);
}

TEST(Reducer, IsCheckedOnTheWire) {
  const Case table[] = {
      {kArgmax, [](Wire& w) { w.reducer().clear_types(); }, "reducer argmax combines no values"},
      {kArgmax, [](Wire& w) { w.reducer().mutable_results()->RemoveLast(); },
       "reducer argmax combines 2 values, but has 1 results and 2 identities"},
      {kArgmax, [](Wire& w) { w.reducer().set_types(0, static_cast<v1::DataType>(77)); },
       "reducer argmax has the unknown type 77"},
      {kArgmax, [](Wire& w) { w.reducer().set_results(0, 9999); },
       "argmax refers to expression 9999, but there are 27"},
      {kArgmax, [](Wire& w) { w.reducer().set_results(0, w.reducer().identities(1)); },
       "result 0 of argmax is float32, but must be int64, as its value; cast it"},
      {kArgmax, [](Wire& w) { w.reducer().set_identities(1, w.reducer().results(1)); },
       "identity 1 of argmax uses a parameter; it is what the values are combined with at first"},
      {kArgmax, [](Wire& w) { w.reducer().set_results(0, w.integer(0)); },
       "expression 25 reduces by argmax before its results stand"},
      {kArgmax, [](Wire& w) { w.reducer().set_types(0, v1::DATA_TYPE_INT32); },
       "value 0 of argmax is int64, but must be int32; cast it"},
      {kArgmax, [](Wire& w) { w.reduction(0).set_reducer(1); },
       "expression 25 refers to reducer 1, but there are 1"},
      {kArgmax, [](Wire& w) { w.reduction(0).set_output(2); },
       "expression 25 refers to result of argmax 2, but there are 2"},
      {kArgmax, [](Wire& w) { w.reduction(0).mutable_sources()->RemoveLast(); },
       "argmax combines 2 values, but got 1"},
      {kArgmax, [](Wire& w) { w.reduction(0).add_init(w.reduction(0).sources(0)); },
       "argmax combines 2 values, but its init gives 1"},
      {kStart, [](Wire& w) { w.reduction(0).add_sources(w.reduction(0).sources(0)); },
       "sum combines 1 value, but got 2"},
      {kStart, [](Wire& w) { w.reduction(0).set_condition(w.reduction(0).sources(0)); },
       "the condition of sum is float32, but must be bool; compare it with something"},
      {kStart, [](Wire& w) { w.reduction(0).set_init(0, w.reduction(0).condition()); },
       "the init of value 0 of sum is bool, but must be float32; cast it"},
      {kStart, [](Wire& w) { w.reduction(0).set_init(0, w.reduction(0).sources(0)); },
       "the init of a reduction in C uses k, which it reduces over; a reduction starts from what "
       "is "
       "known outside of it"},
      {kArgmax,
       [](Wire& w) {
         w.definition.mutable_stages(1)->mutable_compute()->set_bodies(
             1, w.definition.stages(1).compute().bodies(0));
       },
       "the outputs of I, V are not all the results of one argmax, in order; a tuple compute is "
       "one "
       "reduction"},
      {kArgmax,
       [](Wire& w) {
         w.definition.mutable_stages(1)->mutable_compute()->set_bodies(0, w.reducer().results(0));
         w.definition.mutable_stages(1)->mutable_compute()->set_bodies(1, w.reducer().results(1));
       },
       "I, V uses a parameter of a reducer"},
      {kArgmax,
       [](Wire& w) {
         const auto parameter = std::ranges::find_if(w.definition.expressions(), [](const auto& e) {
           return e.has_parameter() && e.parameter().type() == v1::DATA_TYPE_INT64;
         });
         const auto id = parameter - w.definition.expressions().begin();
         w.definition.mutable_axes(0)->set_extent(static_cast<uint32_t>(id));
       },
       "the bounds of axis r uses a parameter of a reducer"},
  };
  for (const Case& test : table)
    expect_refused(test);
}

TEST(Reducer, KnowsItsParametersOnly) {
  const auto refused = [](std::string_view result, std::string_view message) {
    const std::string text = fmt::format(
        "kernel f(A: int64[n]) -> (C: int64[]) {{\n"
        "  reducer own(a: int64, b) = {} identity 0\n"
        "  C[] = own[k < n](A[k])\n"
        "}}\n",
        result);
    expect_error([&] { kernel_of(text); }, ErrorKind::InvalidArgument, message);
  };
  refused("a + A[0]",
          "result 0 of own reads a tensor; a reducer knows its parameters and sizes only");
  refused("a + sum[j < n](j)",
          "result 0 of own uses axis j; a reducer knows its parameters and sizes only");
  refused("a + c", "unknown name c");
  kernel_of(
      "kernel f(A: int64[n]) -> (C: int64[]) {\n"
      "  reducer own(a: int64, b) = floormod(a + b, n) identity 0\n"
      "  C[] = own[k < n](A[k])\n"
      "}\n");
}

TEST(Reducer, IsExplainedWhereItsTextIsWrong) {
  const auto refused = [](std::string_view reducer, std::string_view use,
                          std::string_view message) {
    const std::string text =
        fmt::format("kernel f(A: float32[n]) -> (C: float32[], D: float32[]) {{\n  {}\n  {}\n}}\n",
                    reducer, use);
    expect_error([&] { kernel_of(text); }, ErrorKind::InvalidArgument, message);
  };
  constexpr std::string_view kTwo =
      "reducer two((a: float32, b: float32), (c, d)) = a + c, b + d identity 0, 0";
  constexpr std::string_view kOne = "reducer one(a: float32, b) = a * b identity 1";
  refused("reducer sum(a: float32, b) = a + b identity 0", "",
          "sum is a reducer of the language; give yours another name");
  refused("reducer two(a: float32, (b, c)) = a identity 0", "",
          "reducer two has 1 value on the left, but 2 on the right");
  refused("reducer one(a, b) = a identity 0", "", "a has no type; write one, as in a: float32");
  refused("reducer one(a: float3, b) = a identity 0", "",
          "unknown type float3; did you mean float32");
  refused("reducer one(a: float32, b: int32) = a identity 0", "",
          "b is int32, but a on the left is float32");
  refused("reducer one(a: float32, a) = a identity 0", "", "reducer one has two values called a");
  refused("reducer one(a: float32, n) = a identity 0", "",
          "n is a size already; give the value another name");
  refused("reducer one(a: float32, b) = a, b identity 0", "",
          "reducer one combines 1 value, but has 2 results");
  refused("reducer one(a: float32, b) = a", "",
          "expected identity and what one starts from, but found }");
  refused("reducer one(a: float32, b) = a < b identity 0", "",
          "a is float32, but this is bool; cast it, as in float32(...)");
  refused(fmt::format("{0}\n  {0}", kOne), "", "reducer one is defined twice");
  refused(kTwo, "C[] = two[k < n](A[k], A[k])",
          "two gives 2 values; name as many tensors on the left, or take one of them, as in "
          "two.v0[...]");
  refused(kTwo, "C[] = two.v2[k < n](A[k], A[k])", "two.v2 asks for value 2, but there are 2");
  refused(kOne, "C[], D[] = one[k < n](A[k])", "2 tensors on the left, but one gives 1 value");
  refused(kTwo, "C[], D[] = two[k < n](A[k])", "two combines 2 values, but got 1");
  refused(kTwo, "C[], D[] = two(A[0], A[0])", "2 tensors on the left, but 1 value on the right");
  refused(kOne, "C[] = ones[k < n](A[k])", "unknown reducer ones; did you mean one");
  refused(kOne, "C[] = one[k < n](A[k], init=0, where=k < 1)",
          "expected where= or init=, in this order, but found where");
}

TEST(Reducer, HoldsTheLimitsOfARequest) {
  Wire wire(
      "kernel f(A: float32[n]) -> (C: float32[]) {\n"
      "  reducer two((a: float32, b: float32), (c, d)) = a + c, b + d identity 0, 0\n"
      "  C[] = two.v0[k < n](A[k], A[k])\n"
      "}");
  Limits limits;
  limits.outputs = 1;
  expect_error([&] { decode(wire.definition, wire.names, limits); }, ErrorKind::ResourceExhausted,
               "two has 2 values; the limit is 1");
  limits = {};
  limits.stages = 2;
  for (int i = 0; i < 2; ++i)
    *wire.definition.add_reducers() = wire.reducer();
  expect_error([&] { decode(wire.definition, wire.names, limits); }, ErrorKind::ResourceExhausted,
               "the definition has 3 reducers; the limit is 2");
}

}  // namespace
}  // namespace kiln::language::reducer
