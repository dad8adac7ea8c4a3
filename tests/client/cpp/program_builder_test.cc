// Programs made of tensors, on a real daemon: what steps compute, and what beginners get wrong.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"
#include "tests/client/cpp/floats.h"
#include "tests/client/cpp/on_a_daemon.h"

namespace kiln::test {
namespace {

class ProgramBuilders : public OnADaemon {
 protected:
  const Connection connection_ = connect(daemon_->address());
};

/// The mean of (x w - y)^2, of x: [4, 2] with rows (k, 1).
struct Regression {
  explicit Regression(ProgramBuilder& program) {
    const Tensor x = program.data({4, 2}, float32, "x");
    const Tensor y = program.data({4}, float32, "y");
    w = program.parameter(Array({2}), "w");
    const ReduceAxis k = reduce_axis(0, 2);
    const Tensor product = compute(
        {4}, [&](Expr i) { return sum(x(i, k) * w->operator()(k), {k}); }, "product");
    const Tensor error = compute(
        {4}, [&](Expr i) { return product(i) - y(i); }, "error");
    const ReduceAxis r = reduce_axis(0, 4);
    loss = compute(
        {}, [&] { return sum(error(r) * error(r) * 0.25, {r}); }, "loss");
    program.report("loss", *loss);
  }

  static std::map<std::string, Argument> feeds() {
    return {{"x", Array(std::vector<float>{0, 1, 1, 1, 2, 1, 3, 1}, {4, 2})},
            {"y", Array(std::vector<float>{1, 3, 5, 7}, {4})}};
  }

  std::optional<Tensor> w;
  std::optional<Tensor> loss;
};

/// The same in numbers: what w is after steps of gradient descent.
std::vector<double> descend(int steps, double rate, double momentum) {
  double w[2] = {0, 0};
  double velocity[2] = {0, 0};
  for (int step = 0; step < steps; ++step) {
    double slope[2] = {0, 0};
    for (int i = 0; i < 4; ++i) {
      const double error = i * w[0] + w[1] - (2.0 * i + 1);
      slope[0] += 0.5 * error * i;
      slope[1] += 0.5 * error;
    }
    for (int p = 0; p < 2; ++p) {
      velocity[p] = velocity[p] * momentum + slope[p];
      w[p] -= velocity[p] * rate;
    }
  }
  return {w[0], w[1]};
}

TEST_F(ProgramBuilders, GoDownTheGradientOfALoss) {
  ProgramBuilder program("regression");
  const Regression regression(program);
  const Tensor slope = connection_.gradient(*regression.loss, {*regression.w})[0];
  program.update(*regression.w,
                 compute({2}, [&](Expr i) { return (*regression.w)(i)-slope(i) * 0.1; }));
  const ProgramResult result =
      connection_.run(program.build(), Regression::feeds(), {.epochs = 20, .batch = 4});
  EXPECT_EQ(result.steps, 20U);
  EXPECT_EQ(result.reports.at("loss").size(), 20U);
  EXPECT_NEAR(result.reports.at("loss")[0], 21, 1e-4);
}

TEST_F(ProgramBuilders, MinimizeByMomentum) {
  ProgramBuilder program("regression");
  const Array w({2});
  const Regression regression(program);
  minimize(program, connection_, *regression.loss, Sgd{.rate = 0.05, .momentum = 0.9});
  auto feeds = Regression::feeds();
  feeds.insert({"w", w});
  connection_.run(program.build(), feeds, {.epochs = 30, .batch = 4});
  const std::vector<double> expected = descend(30, 0.05, 0.9);
  EXPECT_NEAR(w.values<float>()[0], expected[0], 1e-4);
  EXPECT_NEAR(w.values<float>()[1], expected[1], 1e-4);
}

TEST_F(ProgramBuilders, MinimizeByAdamGoesOnWhereItStopped) {
  ProgramBuilder program("regression");
  const Regression regression(program);
  minimize(program, connection_, *regression.loss, Adam{.rate = 0.1});
  const Program built = program.build();
  const auto first = connection_.run(built, Regression::feeds(), {.epochs = 100, .batch = 4});
  const auto second = connection_.run(built, Regression::feeds(), {.epochs = 100, .batch = 4});
  EXPECT_LT(first.reports.at("loss").back(), 0.5);
  // Its own parameters, moments included, have what the first run made of them.
  EXPECT_LT(second.reports.at("loss").front(), first.reports.at("loss").back() * 1.05);
  EXPECT_LT(second.reports.at("loss").back(), 0.01);
  // The first step is that of the rate, whatever the gradient: w = (0.1, 0.1).
  double after_one = 0;
  for (int i = 0; i < 4; ++i)
    after_one += std::pow(0.1 * i + 0.1 - (2.0 * i + 1), 2) / 4;
  EXPECT_NEAR(first.reports.at("loss")[1], after_one, 1e-4);
}

TEST_F(ProgramBuilders, RunUntilAConditionHoldsAndSwapParameters) {
  ProgramBuilder program("swapping");
  const Array a = array_of({8});
  const Array b = array_of({1});
  const Tensor left = program.parameter(a, "left");
  const Tensor right = program.parameter(b, "right");
  const Tensor half = compute(
      {1}, [&](Expr i) { return left(i) * 0.5; }, "half");
  program.update(left, right);
  program.update(right, half);
  program.until(compute(
      {}, [&] { return half(0) < 0.3; }, "done"));
  program.output("step", program.step());
  const ProgramResult result = connection_.run(program.build(), {}, {.first_step = 10});
  // left, right: 8 1, 1 4, 4 0.5, 0.5 2: the half of the fourth step is the first that is small.
  EXPECT_EQ(result.steps, 4U);
  EXPECT_EQ(result.outputs.at("step").values<std::int64_t>()[0], 13);
  EXPECT_EQ(values_of(a), (std::vector<float>{2}));
  EXPECT_EQ(values_of(b), (std::vector<float>{0.25}));
}

TEST_F(ProgramBuilders, HaveScansAsOneNode) {
  ProgramBuilder program("sums");
  const Tensor x = program.input({5}, float32, "x");
  const Tensor state = placeholder({5}, float32, "state");
  const Tensor first = compute(
      {1}, [&](Expr) { return x(0); }, "first");
  const Tensor next = compute(
      {5}, [&](Expr t) { return state(t - 1) + x(t); }, "next");
  const Tensor sums = scan(first, next, state, {x}, "sums");
  program.output("twice", compute(
                              {5}, [&](Expr i) { return sums(i) * 2; }, "twice"));
  const ProgramResult result = connection_.run(program.build(), {{"x", array_of({1, 2, 3, 4, 5})}});
  EXPECT_EQ(values_of(result.outputs.at("twice")), (std::vector<float>{2, 6, 12, 20, 30}));

  program.output("next", next);
  expect_client_error([&] { program.build(); }, ErrorKind::InvalidArgument, "PROGRAM_VALUE",
                      "next is a part of a scan and has no value outside of it; compute it anew "
                      "from what the scan is given");
}

TEST_F(ProgramBuilders, TakePlaceholdersOfOthersAsInputs) {
  ProgramBuilder program("doubled");
  const Expr n = var("n");
  const Tensor x = placeholder({n}, float32, "x");
  program.output("x", x);
  program.output("y", compute(
                          {n}, [&](Expr i) { return x(i) * 2; }, "y"));
  const ProgramResult result = connection_.run(program.build(), {{"x", array_of({1, 2})}});
  EXPECT_EQ(values_of(result.outputs.at("x")), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(result.outputs.at("y")), (std::vector<float>{2, 4}));
}

// Salmon et al., "Parallel random numbers", known answers of Philox4x32-10: all words 0.
TEST_F(ProgramBuilders, HaveTheRandomNumbersOfPhilox) {
  ProgramBuilder program("noise", 0);
  program.output("u", program.uniform({2, 3}));
  program.output("v", program.normal({1000}));
  const ProgramResult result = connection_.run(program.build(), {});
  const std::vector<float> numbers = values_of(result.outputs.at("u"));
  const std::uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(numbers[i], static_cast<float>(words[i] >> 8) * 0x1p-24F);
  double mean = 0;
  double square = 0;
  for (const float each : values_of(result.outputs.at("v"))) {
    mean += each / 1000;
    square += each * each / 1000;
  }
  EXPECT_NEAR(mean, 0, 0.1);
  EXPECT_NEAR(square, 1, 0.15);
}

TEST_F(ProgramBuilders, SayWhatIsWrong) {
  ProgramBuilder program("wrong");
  const Tensor w = program.parameter(Array({2}), "w");
  const Tensor x = program.input({3}, float32, "x");
  const auto refuses = [&](const char* reason, const char* message, const auto& call) {
    expect_client_error(call, ErrorKind::InvalidArgument, reason, message);
  };
  refuses("PROGRAM_NAME", "wrong has two placeholders w; give each a name of its own",
          [&] { program.input({1}, float32, "w"); });
  refuses("PROGRAM_UPDATE",
          "wrong updates x, which is no parameter of it; make it one by program.parameter(values, "
          "\"x\")",
          [&] { program.update(x, x); });
  refuses("PROGRAM_UPDATE", "parameter w is float32[2], but becomes x, which is float32[3]",
          [&] { program.update(w, x); });
  program.update(w, w);
  refuses("PROGRAM_UPDATE", "wrong updates w twice", [&] { program.update(w, w); });
  refuses("PROGRAM_NUMBER",
          "the loss x of wrong must have one element, but has a dimension of 3; take its sum",
          [&] { minimize(program, connection_, x, Sgd{}); });
  refuses("OPTIMIZER", "the momentum of SGD must be at least 0 and below 1, but is 1",
          [&] { minimize(program, connection_, x, Sgd{.momentum = 1}); });
  refuses("PROGRAM_UPDATE", "empty has no parameter to minimize by; make one by program.parameter",
          [&] {
            ProgramBuilder empty("empty");
            minimize(empty, connection_, x, Adam{});
          });
}

}  // namespace
}  // namespace kiln::test
