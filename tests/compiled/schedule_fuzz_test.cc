#include <cmath>
#include <cstdio>
#include <map>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose_schedule.h"
#include "compiler/compile.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate.h"
#include "compiler/language/scalar.h"
#include "compiler/language/text.h"
#include "runtime/core/error.h"
#include "tests/support/mutants.h"
#include "tests/support/random_kernel.h"
#include "tests/support/random_schedule.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

using language::Schedule;
using language::StepKind;
using Tensors = std::vector<HostTensor>;

/// One kernel with a schedule, values for its sizes, and inputs.
struct Case {
  RandomKernel drawn;
  language::Kernel kernel;
  Schedule schedule;
  std::vector<int64_t> sizes;
  Tensors inputs;
  Tensors expected;
};

/// Small whole numbers, so that sums are exact in every order unless they grow.
Tensors random_inputs(const language::Kernel& kernel, std::span<const int64_t> sizes,
                      Random& random) {
  Tensors inputs;
  // The evaluator knows extents; asking it for a definition's input shapes keeps this file short.
  for (const language::TensorId parameter : kernel.definition.parameters) {
    if (kernel.definition.is_output(parameter)) continue;
    HostTensor tensor;
    tensor.type = kernel.definition.type_of(parameter);
    int64_t count = 1;
    for (const language::ExprId extent : kernel.definition.shape_of(parameter)) {
      tensor.shape.push_back(language::evaluate_size(kernel.definition, extent, sizes));
      count *= tensor.shape.back();
    }
    tensor.bytes.resize(static_cast<size_t>(count * size_of(tensor.type)));
    for (int64_t i = 0; i < count; ++i) {
      const auto value = language::Scalar::of_int(DType::Int64, random.between(-4, 4));
      language::write_element(tensor, i, language::convert(tensor.type, value));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Case draw(uint64_t seed) {
  Random random(seed);
  Case result;
  result.drawn = random_kernel(random);
  result.kernel = language::parse_text(result.drawn.text, "random.kiln").at(0).kernel;
  result.schedule = random_schedule(result.kernel.definition, random);
  for (const std::string& name : result.kernel.names.variables) {
    result.sizes.push_back(result.drawn.sizes.at(name));
  }
  result.inputs = random_inputs(result.kernel, result.sizes, random);
  result.expected = language::evaluate(result.kernel.definition, result.kernel.names, result.sizes,
                                       result.inputs);
  return result;
}

/// How to repeat a case, and what it is.
std::string describe(uint64_t seed, const Case& which) {
  language::TextKernel text{which.kernel, {{"cpu", which.schedule}}};
  std::string sizes;
  for (const auto& [name, value] : which.drawn.sizes)
    sizes += fmt::format(" {}={}", name, value);
  return fmt::format("to repeat: KILN_FUZZ_SEED={} KILN_FUZZ_ROUNDS=1\nsizes:{}\n{}", seed, sizes,
                     language::print_text(text));
}

bool close(const language::Scalar& a, const language::Scalar& b) {
  if (!is_float(a.type)) return a.integer == b.integer;
  if (std::isnan(a.floating) || std::isnan(b.floating)) {
    return std::isnan(a.floating) && std::isnan(b.floating);
  }
  if (a.floating == b.floating) return true;
  const double tolerance = a.type == DType::Float32 ? 1e-4 : 1e-9;
  return std::fabs(a.floating - b.floating) <=
         tolerance * std::max({1.0, std::fabs(a.floating), std::fabs(b.floating)});
}

/// Empty when equal; else where they differ first.
std::string difference(const Tensors& actual, const Tensors& expected) {
  if (actual.size() != expected.size()) return "the number of outputs differs";
  for (size_t t = 0; t < actual.size(); ++t) {
    if (actual[t].shape != expected[t].shape)
      return fmt::format("the shape of output {} differs", t);
    const auto count = static_cast<int64_t>(expected[t].bytes.size()) / size_of(expected[t].type);
    for (int64_t i = 0; i < count; ++i) {
      const language::Scalar a = language::read_element(actual[t], i);
      const language::Scalar b = language::read_element(expected[t], i);
      if (!close(a, b)) {
        return is_float(a.type) ? fmt::format("output {}, element {}: {} instead of {}", t, i,
                                              a.floating, b.floating)
                                : fmt::format("output {}, element {}: {} instead of {}", t, i,
                                              a.integer, b.integer);
      }
    }
  }
  return "";
}

/// Runs the loops in the interpreter; the outputs in order.
Tensors interpret(const ir::Kernel& kernel, const Case& which) {
  Tensors arguments;
  size_t next_input = 0;
  size_t next_output = 0;
  for (const bool is_output : kernel.is_output) {
    if (is_output) {
      HostTensor tensor = which.expected[next_output++];
      std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0x5a});
      arguments.push_back(std::move(tensor));
    } else {
      arguments.push_back(which.inputs[next_input++]);
    }
  }
  ir::interpret(kernel, which.sizes, arguments);
  Tensors outputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (kernel.is_output[i]) outputs.push_back(std::move(arguments[i]));
  }
  return outputs;
}

const Target& host() {
  static const Target target{TargetKind::Llvm, host_cpu()};
  return target;
}

/// Counts what the accepted cases were made of.
class Distribution {
 public:
  void add(const Case& which) {
    ++cases_;
    std::map<StepKind, bool> seen;
    for (const language::Step& step : which.schedule.steps)
      seen[step.kind] = true;
    for (const auto& [kind, present] : seen)
      ++steps_[kind];
    for (const std::string_view kind : which.drawn.kinds)
      ++kinds_[kind];
    features_["symbolic"] += which.drawn.sizes.empty() ? 0 : 1;
    features_["several stages"] += which.drawn.stages > 1 ? 1 : 0;
    features_["three or more steps"] += which.schedule.steps.size() >= 3 ? 1 : 0;
  }
  void refuse(const Error& error) { ++refused_[error.reason()]; }

  double share(StepKind kind) const {
    const auto found = steps_.find(kind);
    return found == steps_.end() ? 0 : static_cast<double>(found->second) / cases_;
  }
  int cases() const { return cases_; }

  void print() const {
    std::printf("accepted cases: %d\n", cases_);
    for (const language::StepRow& row : language::step_table()) {
      std::printf("  %-16s %5.1f %%\n", std::string(row.spelling).c_str(), 100 * share(row.kind));
    }
    for (const std::string_view kind : kernel_kinds()) {
      std::printf("  %-20s %5.1f %%\n", std::string(kind).c_str(),
                  100.0 * (kinds_.contains(kind) ? kinds_.at(kind) : 0) / cases_);
    }
    for (const auto& [name, count] : features_) {
      std::printf("  %-20s %5.1f %%\n", name.c_str(), 100.0 * count / cases_);
    }
    for (const auto& [reason, count] : refused_) {
      std::printf("  refused %-20s %d\n", reason.c_str(), count);
    }
  }

 private:
  int cases_ = 0;
  std::map<StepKind, int> steps_;
  std::map<std::string_view, int> kinds_;
  std::map<std::string, int> features_;
  std::map<std::string, int> refused_;
};

/// A schedule may change how a kernel runs, never what it computes: the compiled kernel under a
/// random schedule, the plain loops, and the automatic schedule all agree with the definition.
TEST(ScheduleFuzz, AgreesWithTheDefinition) {
  Distribution distribution;
  const uint64_t first = fuzz_seed();
  const uint64_t rounds = static_cast<uint64_t>(fuzz_rounds(2000));
  // A refused case is drawn again, so that as many as promised are compared.
  uint64_t seed = first;
  for (; distribution.cases() < static_cast<int>(rounds) && seed < first + 3 * rounds; ++seed) {
    const Case which = draw(seed);
    SCOPED_TRACE(describe(seed, which));
    try {
      const Schedule scheduled = choose_schedule(which.kernel, which.schedule, host(), {});
      EXPECT_EQ(difference(run_on_cpu(which.kernel, scheduled, which.sizes, which.inputs),
                           which.expected),
                "");
    } catch (const Error& error) {
      const bool allowed =
          error.kind() == ErrorKind::InvalidArgument || error.kind() == ErrorKind::Unsupported;
      EXPECT_TRUE(allowed) << error.message() << fmt::format(" {}", fmt::join(error.notes(), "; "));
      distribution.refuse(error);
      if (allowed) continue;
    }
    if (seed % 8 == 0) {
      EXPECT_EQ(difference(run_on_cpu(which.kernel, {}, which.sizes, which.inputs), which.expected),
                "")
          << "with plain loops";
      const Schedule automatic = choose_schedule(which.kernel, {}, host(), {});
      EXPECT_EQ(difference(run_on_cpu(which.kernel, automatic, which.sizes, which.inputs),
                           which.expected),
                "")
          << "with the automatic schedule";
    }
    if (HasFailure()) break;
    distribution.add(which);
  }
  distribution.print();
  if (HasFailure()) return;
  EXPECT_EQ(distribution.cases(), static_cast<int>(rounds)) << "too many schedules were refused";
  if (rounds < 500) return;  // too few for shares to mean something
  for (const language::StepRow& row : language::step_table()) {
    EXPECT_GE(distribution.share(row.kind), 0.03) << row.spelling;
  }
}

/// After every pass the loops compute the same, with every index inside its buffer and nothing read
/// that was not written.
TEST(ScheduleFuzz, EveryPassKeepsTheMeaning) {
  class Check : public LoweringObserver {
   public:
    explicit Check(const Case& which) : which_(which) {}
    void after(std::string_view pass, ir::Kernel& kernel) override {
      if (::testing::Test::HasFailure()) return;
      EXPECT_EQ(difference(interpret(kernel, which_), which_.expected), "")
          << "after " << pass << "\n"
          << ir::print(kernel);
    }

   private:
    const Case& which_;
  };

  const uint64_t first = fuzz_seed(100'000);
  const uint64_t rounds = static_cast<uint64_t>(fuzz_rounds(2000)) / 8 + 1;
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    const Case which = draw(seed);
    SCOPED_TRACE(describe(seed, which));
    Check observer(which);
    try {
      lower(which.kernel, choose_schedule(which.kernel, which.schedule, host(), {}), host(), {},
            Layout::Compact, observer);
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal)
          << error.message() << fmt::format(" {}", fmt::join(error.notes(), "; "));
    }
  }
}

/// Puts a mistake into the kernel after one pass.
class Sabotage : public LoweringObserver {
 public:
  explicit Sabotage(const Mutant& mutant) : mutant_(mutant) {}
  void after(std::string_view pass, ir::Kernel& kernel) override {
    if (pass == mutant_.after) kernel = mutant_.apply(std::move(kernel));
  }

 private:
  const Mutant& mutant_;
};

/// Whether the comparison above would notice the mistake in this case.
bool is_found(const Mutant& mutant, const Case& which) {
  Sabotage observer(mutant);
  try {
    const ir::Kernel kernel =
        lower(which.kernel, choose_schedule(which.kernel, which.schedule, host(), {}), host(), {},
              Layout::Compact, observer);
    return !difference(interpret(kernel, which), which.expected).empty();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Internal;
  }
}

/// The comparison can fail: each of these mistakes of the compiler is found.
TEST(ScheduleFuzz, FindsSeededMistakes) {
  ASSERT_GE(mutants().size(), 10u);
  for (const Mutant& mutant : mutants()) {
    constexpr uint64_t kFirst = 500'000;
    constexpr uint64_t kTries = 2000;
    uint64_t seed = kFirst;
    while (seed < kFirst + kTries && !is_found(mutant, draw(seed)))
      ++seed;
    EXPECT_LT(seed, kFirst + kTries) << "not found: " << mutant.name;
    std::printf("  found after %4d cases: %s\n", static_cast<int>(seed - kFirst + 1),
                std::string(mutant.name).c_str());
  }
}

}  // namespace
}  // namespace kiln::testing
