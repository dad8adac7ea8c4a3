#include "compiler/program/plan.h"

#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/wire/decode.h"
#include "tests/program/build_program.h"

namespace kiln::program {
namespace {

using namespace kiln::testing;

ValueType float32(std::vector<int64_t> shape) { return {DType::Float32, std::move(shape)}; }

constexpr const char* kTransposed =
    "kernel transposed(X: float32[m, n]) -> (Y: float32[n, m]) { Y[i, j] = X[j, i] }";

std::vector<std::string> names_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedKernel& kernel : plan.kernels)
    names.push_back(kernel.name);
  return names;
}

TEST(ProgramPlan, JoinsAProductWithWhatFollowsElementByElement) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  const ValueId w = net.input("w");
  net.node("h", kDense, {"x", "w"});
  net.program.outputs = {net.node("y", kRelu, {"h"})};
  const Plan plan = make_plan(net.program, {{x, float32({30, 40})}, {w, float32({40, 50})}});
  EXPECT_EQ(names_of(plan), (std::vector<std::string>{"y_and_1"}));
  EXPECT_EQ(plan.kernels[0].read_bytes, (30 * 40 + 40 * 50) * 4);
  EXPECT_EQ(plan.kernels[0].written_bytes, 30 * 50 * 4);
  EXPECT_EQ(plan.values[net.value("h")].place, Place::Nowhere);
}

TEST(ProgramPlan, KeepsTwoProductsApart) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.node("a", kDense, {"x", "x"});
  net.program.outputs = {net.node("b", kDense, {"a", "x"})};
  const Plan plan = make_plan(net.program, {{x, float32({64, 64})}});
  EXPECT_EQ(names_of(plan), (std::vector<std::string>{"a", "b"}));
}

/// Of the two products and what comes after, the prediction knows no gain.
TEST(ProgramPlan, WhatWouldUndoAGainStaysApart) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.node("a", kDense, {"x", "x"});
  net.node("b", kDense, {"a", "x"});
  net.program.outputs = {net.node("r", kRelu, {"b"})};
  const auto predict = [&](size_t most) {
    return [most](const language::Kernel& kernel) {
      return kernel.definition.stages.size() > most ? 0 : 1e-3;
    };
  };
  EXPECT_EQ(names_of(make_plan(net.program, {{x, float32({64, 64})}}, predict(3))),
            (std::vector<std::string>{"b_and_1", "r"}));
  EXPECT_EQ(names_of(make_plan(net.program, {{x, float32({64, 64})}}, predict(4))),
            (std::vector<std::string>{"r_and_2"}));
}

/// A copy stays apart from a product that would lose its form by it, but not what computes.
TEST(ProgramPlan, ACopyThatWouldUndoTheFormOfAProductStaysApart) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.node("r", kRelu, {"x"});
  net.node("p", kDense, {"r", "x"});
  net.program.outputs = {net.node("t", kTransposed, {"p"})};
  const auto names = [&](size_t most) {
    const auto has_form = [most](const language::Kernel& kernel) {
      return kernel.definition.stages.size() <= most;
    };
    return names_of(make_plan(net.program, {{x, float32({64, 64})}}, {}, {}, has_form));
  };
  // Of what is given, relu and the product, then of all.
  EXPECT_EQ(names(2), (std::vector<std::string>{"t_and_2"}));
  EXPECT_EQ(names(3), (std::vector<std::string>{"p_and_1", "t"}));
  EXPECT_EQ(names(4), (std::vector<std::string>{"t_and_2"}));
}

/// Two products that are one kernel with what lies between them: none of the two is joined to a
/// copy with which that would gain nothing, on either side of them.
TEST(ProgramPlan, ACopyThatWouldUndoThatProductsAreOneKernelStaysApart) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.node("before", kTransposed, {"x"});
  net.node("p", kDense, {"before", "x"});
  net.node("r", kRelu, {"p"});
  net.node("q", kDense, {"r", "x"});
  net.program.outputs = {net.node("after", kTransposed, {"q"})};
  const auto names = [&](bool gains) {
    const auto saved = [gains](const language::Kernel& kernel) {
      const auto is_computed = [](const language::Stage& stage) {
        return std::holds_alternative<language::Compute>(stage);
      };
      return gains && std::ranges::count_if(kernel.definition.stages, is_computed) == 3 ? 1e-3 : 0;
    };
    const auto has_no_form = [](const language::Kernel&) { return false; };
    return names_of(make_plan(net.program, {{x, float32({64, 64})}}, saved, {}, has_no_form));
  };
  EXPECT_EQ(names(true), (std::vector<std::string>{"before", "q_and_2", "after"}));
  EXPECT_EQ(names(false), (std::vector<std::string>{"r_and_2", "after_and_1"}));
}

TEST(ProgramPlan, JoinsTwoProductsThatArePredictedToGain) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.node("a", kDense, {"x", "x"});
  net.node("r", kRelu, {"a"});
  net.node("b", kDense, {"r", "x"});
  net.program.outputs = {net.node("c", kDense, {"b", "x"})};
  std::vector<size_t> asked;
  const auto predict = [&](const language::Kernel& kernel) {
    asked.push_back(kernel.definition.stages.size());
    return asked.size() == 1 ? 1e-3 : 0;
  };
  const Plan plan = make_plan(net.program, {{x, float32({64, 64})}}, predict);
  EXPECT_EQ(names_of(plan), (std::vector<std::string>{"b_and_2", "c"}));
  // Of a, r and b with x, then of all.
  EXPECT_EQ(asked, (std::vector<size_t>{4, 5}));
}

/// loss = sum((x w - y)^2): what the step has computed is read, not computed again.
TEST(ProgramPlan, GradientsReadWhatTheStepComputes) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  const ValueId w = net.parameter("w");
  net.node("p", kDense, {"x", "w"});
  net.node("r", kRelu, {"p"});
  const ValueId loss = net.node("loss", kTotal, {"r"});
  Node& node = net.program.nodes.emplace_back();
  node.name = "g";
  node.is_gradient = true;
  node.inputs = {loss, w};
  node.outputs = {net.value("g")};
  net.program.outputs = {net.value("g")};
  const Plan plan = make_plan(net.program, {{x, float32({64, 64})}, {w, float32({64, 64})}});
  size_t products = 0;
  for (const Node& each : plan.program.nodes) {
    EXPECT_FALSE(each.is_gradient);
    products += each.name == "p" ? 1 : 0;
  }
  EXPECT_EQ(products, 1U);
  EXPECT_EQ(plan.shapes.values[net.value("g")].shape, (std::vector<int64_t>{64, 64}));
  ASSERT_EQ(plan.kernels.size(), 2U);
  EXPECT_EQ(plan.kernels[1].joined.outputs, std::vector<ValueId>{net.value("g")});
}

TEST(ProgramPlan, ANodeMayReadAValueTwice) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.node("a", kAdd, {"x", "x"});
  net.program.outputs = {net.node("b", kAdd, {"a", "a"})};
  const Plan plan = make_plan(net.program, {{x, float32({30, 40})}});
  ASSERT_EQ(plan.kernels.size(), 1U);
  EXPECT_EQ(plan.kernels[0].joined.inputs, std::vector<ValueId>{x});
  EXPECT_EQ(plan.kernels[0].joined.kernel.definition.stages.size(), 3U);
  EXPECT_EQ(plan.kernels[0].read_bytes, 30 * 40 * 4);
}

TEST(ProgramPlan, NeverJoinsAcrossAnotherKernel) {
  // a and c would surround the product b.
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.node("p", kDense, {"x", "x"});
  net.node("a", kRelu, {"p"});
  net.node("b", kDense, {"a", "x"});
  net.program.outputs = {net.node("c", kAdd, {"a", "b"})};
  const Plan plan = make_plan(net.program, {{x, float32({64, 64})}});
  ASSERT_EQ(plan.kernels.size(), 2U);
  EXPECT_EQ(plan.kernels[0].nodes, (std::vector<NodeId>{0, 1}));
  EXPECT_EQ(plan.kernels[1].nodes, (std::vector<NodeId>{2, 3}));
}

TEST(ProgramPlan, GivesWhatAParameterBecomesAPlaceForTheWholeStep) {
  ProgramBuilder net("net");
  const ValueId w = net.parameter("w");
  net.node("a", kDense, {"w", "w"});
  net.node("b", kDense, {"a", "a"});
  net.node("n", kDense, {"b", "b"});
  net.update("w", "n");
  const Plan plan = make_plan(net.program, {{w, float32({16, 16})}});
  EXPECT_EQ(plan.memory.separate_bytes, 3 * 1024);
  // n is alive all the time, a and b meet where b is made.
  EXPECT_EQ(plan.memory.bytes, 3 * 1024);
  EXPECT_EQ(plan.memory.live_bytes, 3 * 1024);
}

TEST(ProgramPlan, ReusesMemoryAlongAChain) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  std::string before = "x";
  for (const char* name : {"a", "b", "c", "d"}) {
    net.node(name, kDense, {before, "x"});
    before = name;
  }
  net.program.outputs = {net.value("d")};
  const Plan plan = make_plan(net.program, {{x, float32({16, 16})}});
  EXPECT_EQ(plan.memory.bytes, 2 * 1024);
  EXPECT_EQ(plan.values[net.value("c")].reuses, "a");
  EXPECT_EQ(plan.values[net.value("d")].reuses, "b");
}

/// What is made of parameters that stay is apart, and outside of the arena.
TEST(ProgramPlan, ComputesOnceWhatNoStepChanges) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  const ValueId w = net.parameter("w");
  const ValueId v = net.parameter("v");
  const ValueId r = net.node("r", kRelu, {"w"});
  const ValueId s = net.node("s", kAdd, {"r", "w"});
  net.node("p", kDense, {"x", "s"});
  net.node("q", kAdd, {"p", "v"});
  net.update("v", "q");
  const Plan plan = make_plan(
      net.program, {{x, float32({16, 16})}, {w, float32({16, 16})}, {v, float32({16, 16})}});
  ASSERT_EQ(names_of(plan), (std::vector<std::string>{"s_and_1", "q_and_1"}));
  EXPECT_TRUE(plan.kernels[0].is_constant);
  EXPECT_FALSE(plan.kernels[1].is_constant);
  EXPECT_EQ(plan.values[r].place, Place::Nowhere);
  EXPECT_EQ(plan.values[s].place, Place::Kept);
  EXPECT_EQ(plan.memory.bytes, 1024);
}

TEST(ProgramPlan, ComputesInEachStepWhatAnUpdateChanges) {
  ProgramBuilder net("net");
  const ValueId w = net.parameter("w");
  net.node("r", kRelu, {"w"});
  net.node("p", kDense, {"r", "r"});
  net.update("w", "p");
  const Plan plan = make_plan(net.program, {{w, float32({16, 16})}});
  for (const PlannedKernel& kernel : plan.kernels)
    EXPECT_FALSE(kernel.is_constant) << kernel.name;
}

TEST(ProgramPlan, DoesNotKeepWhatIsLargerThanWhatItIsMadeOf) {
  constexpr const char* kOuter =
      "kernel outer(A: float32[m, n]) -> (C: float32[m, n, n]) { C[i, j, k] = A[i, j] + A[i, k] }";
  constexpr const char* kInner =
      "kernel inner(A: float32[m, n, n], X: float32[m, n]) -> (C: float32[m, n]) "
      "{ C[i, j] = A[i, j, j] + X[i, j] }";
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  const ValueId w = net.parameter("w");
  net.node("o", kOuter, {"w"});
  net.program.outputs = {net.node("y", kInner, {"o", "x"})};
  const Plan plan = make_plan(net.program, {{x, float32({8, 8})}, {w, float32({8, 8})}});
  EXPECT_EQ(names_of(plan), (std::vector<std::string>{"y_and_1"}));
}

/// What a step is for lies where its results do, whoever made it.
TEST(ProgramPlan, AResultIsComputedInEachStep) {
  ProgramBuilder net("net");
  const ValueId w = net.parameter("w");
  const ValueId r = net.node("r", kRelu, {"w"});
  net.program.outputs = {r};
  const Plan plan = make_plan(net.program, {{w, float32({8, 8})}});
  EXPECT_FALSE(plan.kernels[0].is_constant);
  EXPECT_EQ(plan.values[r].place, Place::Arena);
}

/// The copy that a kernel wants of a parameter is a constant, and one for all who want it.
TEST(ProgramPlan, PacksAParameterOnce) {
  constexpr const char* kTransposed =
      "kernel dense(X: float32[m, k], W: float32[n, k]) -> (Y: float32[m, n]) "
      "{ Y[i, j] = sum[l < k](X[i, l] * W[j, l]) }";
  constexpr const char* kTranspose =
      "kernel t(W: float32[k, n]) -> (T: float32[n, k]) { T[j, l] = W[l, j] }";
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  const ValueId w = net.parameter("w");
  net.node("p", kDense, {"x", "w"});
  net.program.outputs = {net.node("q", kDense, {"p", "w"})};
  const GivenTypes given = {{x, float32({16, 16})}, {w, float32({16, 16})}};
  const Plan plan = make_plan(
      net.program, given, {},
      [](const language::Kernel&, const std::vector<bool>& marks) -> std::optional<Packed> {
        EXPECT_EQ(marks, (std::vector<bool>{false, true, false}));
        return Packed{1, with_sizes(kernel_of(kTranspose).kernel, std::vector<int64_t>{16, 16}),
                      kernel_of(kTransposed).kernel};
      });
  EXPECT_EQ(names_of(plan), (std::vector<std::string>{"w_packed", "p", "q"}));
  EXPECT_TRUE(plan.kernels[0].is_constant);
  EXPECT_EQ(plan.kernels[1].joined.inputs[1], plan.kernels[0].joined.outputs[0]);
  EXPECT_EQ(plan.kernels[2].joined.inputs[1], plan.kernels[0].joined.outputs[0]);
}

/// A joined kernel is a definition like any other, and means what its nodes mean one after another.
TEST(ProgramPlan, JoinedKernelsComputeWhatTheirNodesDo) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  const ValueId w = net.input("w");
  net.node("h", kDense, {"x", "w"});
  net.node("r", kRelu, {"h"});
  net.node("s", kAdd, {"r", "h"});
  net.program.outputs = {net.value("s"), net.node("t", kTotal, {"s"})};
  const Plan plan = make_plan(net.program, {{x, float32({2, 3})}, {w, float32({3, 2})}});
  ASSERT_EQ(plan.kernels.size(), 1U);
  const Joined& joined = plan.kernels[0].joined;
  EXPECT_EQ(joined.inputs, (std::vector<ValueId>{x, w}));
  EXPECT_EQ(joined.outputs, net.program.outputs);
  // It passes every check of the wire.
  const language::Kernel checked = language::decode(language::encode(joined.kernel.definition),
                                                    language::encode(joined.kernel.names));
  const auto tensor = [](std::vector<int64_t> shape, std::vector<float> values) {
    language::HostTensor made{DType::Float32, std::move(shape), {}};
    made.bytes.resize(values.size() * 4);
    std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
    return made;
  };
  const std::vector<language::HostTensor> inputs = {tensor({2, 3}, {1, -2, 3, 4, 5, -6}),
                                                    tensor({3, 2}, {1, 0, 0, 1, 1, 1})};
  const std::vector<language::HostTensor> results =
      language::evaluate(checked.definition, checked.names, {}, inputs);
  // h = [[4, 1], [-2, -1]]; s = relu(h) + h = [[8, 2], [-2, -1]]
  std::vector<float> s(4);
  std::memcpy(s.data(), results[0].bytes.data(), 16);
  EXPECT_EQ(s, (std::vector<float>{8, 2, -2, -1}));
  float total = 0;
  std::memcpy(&total, results[1].bytes.data(), 4);
  EXPECT_EQ(total, 7);
}

}  // namespace
}  // namespace kiln::program
