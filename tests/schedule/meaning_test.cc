#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/wire/decode.h"
#include "compiler/lower.h"
#include "compiler/schedule/build_loops.h"
#include "runtime/core/error.h"
#include "tests/schedule/kernels.h"
#include "tests/support/random_schedule.h"
#include "tests/support/tensors.h"

namespace kiln::testing {
namespace {

/// A kernel, made anew for each test, and the sizes it is run at.
struct Example {
  std::string name;
  std::function<void(Te&)> make;
  std::vector<std::vector<int64_t>> sizes;
};

using Exprs = std::vector<TeExpr>;

TeExpr if_then_else(TeExpr condition, TeExpr yes, TeExpr no) {
  return yes.te->op(Operator::IfThenElse, {condition, yes, no});
}
TeExpr less(TeExpr a, TeExpr b) { return a.te->op(Operator::Less, {a, b}); }

void softmax(Te& te) {
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor top = te.compute(
      "top", "i", {m}, [&](Exprs v) { return te.reduce(Combiner::Max, X(v[0], k), {k}); });
  const TeTensor E = te.compute("E", "i j", {m, n}, [&](Exprs v) {
    return te.op(Operator::Exp, {X(v[0], v[1]) - top(v[0])});
  });
  const TeExpr l = te.reduce_axis("l", te.integer(0), n);
  const TeTensor S = te.compute("S", "i", {m}, [&](Exprs v) { return te.sum(E(v[0], l), {l}); });
  const TeTensor Y = te.compute("Y", "i j", {m, n}, [&](Exprs v) {
    return te.op(Operator::Div, {E(v[0], v[1]), S(v[0])});
  });
  te.arguments({X, Y});
}

void hidden_sum(Te& te) {
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor Y = te.compute("Y", "i j", {m, n}, [&](Exprs v) {
    const TeExpr k = te.reduce_axis("k", te.integer(0), n);
    return X(v[0], v[1]) * te.sum(X(v[0], k), {k}) + te.real(1);
  });
  te.arguments({X, Y});
}

void product(Te& te) {
  const TeExpr n = te.var("n");
  const TeExpr m = te.var("m");
  const TeExpr l = te.var("l");
  const TeTensor A = te.placeholder("A", {n, l});
  const TeTensor B = te.placeholder("B", {l, m});
  const TeExpr k = te.reduce_axis("k", te.integer(0), l);
  const TeTensor C =
      te.compute("C", "i j", {n, m}, [&](Exprs v) { return te.sum(A(v[0], k) * B(k, v[1]), {k}); });
  const TeTensor D =
      te.compute("D", "i j", {n, m}, [&](Exprs v) { return C(v[0], v[1]) + te.real(0.5); });
  te.arguments({A, B, D});
}

void transposed_product(Te& te) {
  const TeTensor A = te.placeholder("A", {te.integer(33), te.integer(40)});
  const TeTensor B = te.placeholder("B", {te.integer(37), te.integer(40)});
  const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(40));
  const TeTensor C = te.compute("C", "i j", {te.integer(33), te.integer(37)},
                                [&](Exprs v) { return te.sum(A(v[0], k) * B(v[1], k), {k}); });
  te.arguments({A, B, C});
}

void convolution(Te& te) {
  const auto fixed = [&](int64_t value) { return te.integer(value); };
  const TeTensor X = te.placeholder("X", {fixed(2), fixed(11), fixed(13)});
  const TeTensor F = te.placeholder("F", {fixed(3), fixed(2), fixed(3), fixed(3)});
  const TeTensor P = te.compute("P", "c h w", {fixed(2), fixed(13), fixed(15)}, [&](Exprs v) {
    const auto inside = [&](TeExpr at, int64_t extent) {
      return te.op(Operator::And, {less(te.integer(0), at), less(at, te.integer(extent + 1))});
    };
    return if_then_else(te.op(Operator::And, {inside(v[1], 11), inside(v[2], 13)}),
                        X(v[0], v[1] - 1, v[2] - 1), te.real(0));
  });
  const TeExpr c = te.reduce_axis("rc", fixed(0), fixed(2));
  const TeExpr r = te.reduce_axis("rr", fixed(0), fixed(3));
  const TeExpr s = te.reduce_axis("rs", fixed(0), fixed(3));
  const TeTensor Y = te.compute("Y", "m h w", {fixed(3), fixed(11), fixed(13)}, [&](Exprs v) {
    return te.sum(P(c, v[1] + r, v[2] + s) * F(v[0], c, r, s), {c, r, s});
  });
  te.arguments({X, F, Y});
}

void stencils(Te& te) {
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n + 4});
  const TeTensor B = te.compute("B", "i", {n + 2}, [&](Exprs v) { return A(v[0]) + A(v[0] + 2); });
  const TeTensor C = te.compute("C", "i", {n + 1}, [&](Exprs v) { return B(v[0]) + B(v[0] + 1); });
  const TeTensor D = te.compute("D", "i", {n}, [&](Exprs v) { return C(v[0]) * C(v[0] + 1); });
  te.arguments({A, D});
}

void reversed(Te& te) {
  const TeExpr n = te.var("n");
  const TeExpr m = te.var("m");
  const TeTensor A = te.placeholder("A", {n, m});
  const TeTensor B =
      te.compute("B", "i j", {m, n}, [&](Exprs v) { return A(n - 1 - v[1], v[0]) * te.real(2); });
  const TeTensor C = te.compute("C", "i j", {m, n},
                                [&](Exprs v) { return B(m - 1 - v[0], v[1]) + B(v[0], v[1]); });
  te.arguments({A, C});
}

void prefixes(Te& te) {
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n}, [&](Exprs v) {
    const TeExpr k = te.reduce_axis("k", te.integer(0), v[0] + 1);
    return te.sum(A(k), {k});
  });
  const TeTensor C = te.compute("C", "i", {n}, [&](Exprs v) { return B(v[0]) + A(v[0]); });
  te.arguments({A, C});
}

void several_outputs(Te& te) {
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n, te.integer(3)});
  const std::vector<TeTensor> both =
      te.compute_all("both", "i j", {n, te.integer(3)}, [&](Exprs v) {
        return Exprs{A(v[0], v[1]) + te.real(1), A(v[0], v[1]) * te.real(3)};
      });
  const TeTensor C = te.compute("C", "i", {n}, [&](Exprs v) {
    return both[0](v[0], te.integer(1)) + both[1](v[0], te.integer(2));
  });
  te.arguments({A, both[0], C});
}

void cumsum(Te& te) {
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor state = te.placeholder("state", {m, n});
  const TeTensor init = te.compute("init", "z i", {te.integer(1), n},
                                   [&](Exprs v) { return X(te.integer(0), v[1]); });
  const TeTensor update = te.compute(
      "update", "t i", {m, n}, [&](Exprs v) { return state(v[0] - 1, v[1]) + X(v[0], v[1]); });
  const TeTensor scan = te.scan("scan", {init}, {update}, {state}, m)[0];
  te.arguments({X, scan});
}

void two_stage_scan(Te& te) {
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor state = te.placeholder("state", {m, n});
  const TeTensor init = te.compute("init", "z i", {te.integer(1), n},
                                   [&](Exprs v) { return X(te.integer(0), v[1]); });
  const TeTensor s1 = te.compute("s1", "t i", {m, n},
                                 [&](Exprs v) { return state(v[0] - 1, v[1]) * te.real(0.5); });
  const TeTensor s2 =
      te.compute("s2", "t i", {m, n}, [&](Exprs v) { return s1(v[0], v[1]) + X(v[0], v[1]); });
  const TeTensor scan = te.scan("scan", {init}, {s2}, {state}, m)[0];
  const TeTensor last = te.compute("last", "i", {n}, [&](Exprs v) { return scan(m - 1, v[0]); });
  te.arguments({X, last});
}

void two_state_scan(Te& te) {
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor a = te.placeholder("a", {m, n});
  const TeTensor b = te.placeholder("b", {m, n});
  const TeTensor start = te.placeholder("start", {te.integer(2), n});
  const TeTensor init =
      te.compute("init", "z i", {te.integer(2), n}, [&](const Exprs&) { return te.real(1); });
  const TeTensor next = te.compute(
      "next", "t i", {m, n}, [&](Exprs v) { return a(v[0] - 1, n - 1 - v[1]) + X(v[0], v[1]); });
  const TeTensor other = te.compute("other", "t i", {m, n}, [&](Exprs v) {
    return b(v[0] - 2, v[1]) + a(v[0] - 1, v[1]) + next(v[0], v[1]);
  });
  const std::vector<TeTensor> scans = te.scan("scan", {init, start}, {next, other}, {a, b}, m, 2);
  te.arguments({X, start, scans[0], scans[1]});
}

void recurrent(Te& te) {
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor W = te.placeholder("W", {n, n});
  const TeTensor state = te.placeholder("h", {m, n});
  const TeTensor init =
      te.compute("init", "z i", {te.integer(1), n}, [&](const Exprs&) { return te.real(0.5); });
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor sum = te.compute(
      "sum", "t i", {m, n}, [&](Exprs v) { return te.sum(state(v[0] - 1, k) * W(v[1], k), {k}); });
  const TeTensor next = te.compute(
      "next", "t i", {m, n}, [&](Exprs v) { return te.op(Operator::Tanh, {sum(v[0], v[1])}); });
  const TeTensor scan = te.scan("rnn", {init}, {next}, {state}, m)[0];
  te.arguments({W, scan});
}

std::vector<Example> examples() {
  return {
      {"softmax", softmax, {{5, 33}, {3, 1}, {0, 4}}},
      {"hidden_sum", hidden_sum, {{5, 33}, {1, 31}, {4, 0}}},
      {"product", product, {{9, 35, 6}, {16, 32, 8}, {1, 1, 1}, {4, 5, 0}, {0, 3, 2}}},
      {"transposed_product", transposed_product, {{}}},
      {"convolution", convolution, {{}}},
      {"stencils", stencils, {{100}, {31}, {1}, {0}}},
      {"reversed", reversed, {{7, 33}, {1, 1}, {0, 5}}},
      {"prefixes", prefixes, {{20}, {1}, {0}}},
      {"several_outputs", several_outputs, {{40}, {1}, {0}}},
      {"cumsum", cumsum, {{6, 100}, {4, 31}, {1, 5}, {3, 0}}},
      {"two_stage_scan", two_stage_scan, {{6, 70}, {4, 31}, {1, 5}, {3, 0}}},
      {"two_state_scan", two_state_scan, {{6, 70}, {2, 31}, {3, 1}, {3, 0}}},
      {"recurrent", recurrent, {{5, 12}, {1, 3}, {3, 0}}},
  };
}

/// Inputs of small values, different at each place.
std::vector<HostTensor> inputs_of(const language::Kernel& kernel,
                                  const std::vector<int64_t>& sizes) {
  std::vector<HostTensor> inputs;
  Random random(7);
  for (const TensorId parameter : kernel.definition.parameters) {
    if (kernel.definition.is_output(parameter)) continue;
    std::vector<int64_t> shape;
    for (const ExprId extent : kernel.definition.shape_of(parameter)) {
      shape.push_back(evaluate_size(kernel.definition, extent, sizes));
    }
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& value : values)
      value = static_cast<float>(random.between(-8, 8)) / 4.0F;
    inputs.push_back(tensor_of(std::move(shape), values));
  }
  return inputs;
}

void expect_close(const HostTensor& actual, const HostTensor& expected) {
  ASSERT_EQ(actual.shape, expected.shape);
  const std::vector<float> a = values_of<float>(actual);
  const std::vector<float> b = values_of<float>(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], 1e-4 * (1 + std::abs(b[i]))) << "element " << i;
  }
}

/// The outputs of the loops, run one iteration after the other.
std::vector<HostTensor> run_loops(const language::Kernel& kernel, const ir::Kernel& loops,
                                  const std::vector<int64_t>& sizes,
                                  const std::vector<HostTensor>& inputs,
                                  const std::vector<HostTensor>& like) {
  std::vector<HostTensor> arguments;
  size_t input = 0;
  size_t output = 0;
  for (const TensorId parameter : kernel.definition.parameters) {
    if (kernel.definition.is_output(parameter)) {
      arguments.push_back(zeros(like[output].type, like[output].shape));
      ++output;
    } else {
      arguments.push_back(inputs[input++]);
    }
  }
  ir::interpret(loops, sizes, arguments);
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (loops.is_output[i]) outputs.push_back(arguments[i]);
  }
  return outputs;
}

void expect_same_meaning(const Example& example, const language::Kernel& kernel,
                         const ir::Kernel& loops) {
  SCOPED_TRACE(example.name + "\n" + ir::print(loops));
  for (const std::vector<int64_t>& sizes : example.sizes) {
    SCOPED_TRACE(fmt::format("sizes {}", sizes.empty() ? 0 : sizes[0]));
    const std::vector<HostTensor> inputs = inputs_of(kernel, sizes);
    const std::vector<HostTensor> expected =
        evaluate(kernel.definition, kernel.names, sizes, inputs);
    const std::vector<HostTensor> actual = run_loops(kernel, loops, sizes, inputs, expected);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i)
      expect_close(actual[i], expected[i]);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Meaning, OfPlainLoopsIsThatOfTheDefinition) {
  for (const Example& example : examples()) {
    Te te;
    example.make(te);
    const ir::Kernel loops = build_loops(te.kernel, {}, Target{}, CompileOptions{});
    ir::verify(loops);
    expect_same_meaning(example, te.kernel, loops);
  }
}

TEST(Meaning, SurvivesTheChosenSchedule) {
  for (const Example& example : examples()) {
    for (const TargetKind kind : {TargetKind::Llvm, TargetKind::Cuda}) {
      Te te;
      example.make(te);
      const Target target{.kind = kind};
      const language::Schedule schedule = choose_schedule(te.kernel, {}, target, CompileOptions{});
      // Threads that fetch for each other mean something with the barriers that passes insert.
      LoweringObserver observer;
      const ir::Kernel loops =
          target.traits().has_threads
              ? lower(te.kernel, schedule, target, CompileOptions{}, Layout::Compact, observer)
              : build_loops(te.kernel, schedule, target, CompileOptions{});
      ir::verify(loops);
      expect_same_meaning(example, te.kernel, loops);
    }
  }
}

TEST(Meaning, SurvivesAllPasses) {
  const Target target;
  const CompileOptions options;
  for (const Example& example : examples()) {
    for (int seed = 0; seed < 12 && !HasFailure(); ++seed) {
      Te te;
      example.make(te);
      Random random(static_cast<uint64_t>(seed));
      if (seed == 1) te.schedule = choose_schedule(te.kernel, {}, target, options);
      if (seed > 1) te.schedule = random_schedule(te.kernel.definition, random);
      SCOPED_TRACE(fmt::format("seed {}", seed));
      LoweringObserver observer;
      ir::Kernel loops;
      try {
        te.schedule = language::decode_schedule(language::encode(te.schedule), te.kernel);
        loops = lower(te.kernel, te.schedule, target, options, Layout::Compact, observer);
      } catch (const Error& error) {
        ASSERT_GT(seed, 1) << example.name << ": " << error.message();
        ASSERT_NE(error.kind(), ErrorKind::Internal)
            << example.name << ": " << error.message() << "\n"
            << ::testing::PrintToString(error.notes()) << "\n"
            << te.lowered();
        continue;
      }
      expect_same_meaning(example, te.kernel, loops);
    }
  }
}

TEST(Meaning, SurvivesRandomSchedules) {
  int built = 0;
  int refused = 0;
  const uint64_t first = fuzz_seed(1);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(12));
  for (const Example& example : examples()) {
    for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
      Te te;
      example.make(te);
      Random random(seed);
      te.schedule = random_schedule(te.kernel.definition, random);
      SCOPED_TRACE(fmt::format("KILN_FUZZ_SEED={} KILN_FUZZ_ROUNDS=1", seed));
      ir::Kernel loops;
      try {
        te.schedule = language::decode_schedule(language::encode(te.schedule), te.kernel);
        loops = build_loops(te.kernel, te.schedule, Target{}, CompileOptions{});
      } catch (const Error& error) {
        ++refused;
        ASSERT_NE(error.kind(), ErrorKind::Internal) << example.name << ": " << error.message();
        continue;
      }
      ++built;
      ir::verify(loops);
      expect_same_meaning(example, te.kernel, loops);
    }
  }
  EXPECT_GT(built, refused) << "too few of the schedules drawn can be followed";
  RecordProperty("built", built);
  RecordProperty("refused", refused);
}

}  // namespace
}  // namespace kiln::testing
