#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/compile.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/error.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/seeds_in_threads.h"

namespace kiln::testing {
namespace {

using language::Schedule;
using language::StepKind;

const Target& host() {
  static const Target target{TargetKind::Llvm, host_cpu()};
  return target;
}

std::map<std::string, int64_t> named_sizes(const FuzzCase& which) {
  std::map<std::string, int64_t> named;
  for (size_t i = 0; i < which.sizes.size(); ++i)
    named["n" + std::to_string(i)] = which.sizes[i];
  return named;
}

std::vector<HostTensor> run_loops(const ir::Kernel& loops, const FuzzCase& which) {
  std::vector<HostTensor> tensors;
  size_t next = 0;
  for (const bool is_output : loops.is_output)
    tensors.push_back(is_output ? HostTensor{} : which.inputs.at(next++));
  run_artifact(compile_lowered(loops), tensors, named_sizes(which));
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (loops.is_output[i]) outputs.push_back(std::move(tensors[i]));
  }
  return outputs;
}

/// The outputs, of arguments that do not lie side by side.
std::vector<HostTensor> run_strided(const std::shared_ptr<const Artifact>& artifact,
                                    const FuzzCase& which) {
  std::vector<HostTensor> tensors;
  size_t next_input = 0;
  size_t next_output = 0;
  for (const Parameter& parameter : artifact->parameters) {
    tensors.push_back(parameter.is_output ? which.expected.at(next_output++)
                                          : which.inputs.at(next_input++));
    if (parameter.is_output)
      std::fill(tensors.back().bytes.begin(), tensors.back().bytes.end(), std::byte{0x5a});
  }
  run_spread_out(artifact, tensors, named_sizes(which));
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (artifact->parameters[i].is_output) outputs.push_back(std::move(tensors[i]));
  }
  return outputs;
}

/// Counts what the accepted cases were made of. For use by several threads.
class Distribution {
 public:
  void add(const FuzzCase& which) {
    const std::lock_guard lock(mutex_);
    ++cases_;
    std::set<StepKind> kinds;
    for (const language::Step& step : which.schedule.steps)
      kinds.insert(step.kind);
    for (const StepKind kind : kinds)
      ++shares_[std::string(row_of(kind).spelling)];
    for (const std::string_view kind : which.drawn.kinds)
      ++shares_[std::string(kind)];
    shares_["compared to the last bit"] += which.drawn.is_exact ? 1 : 0;
    shares_["an index outside"] += which.stops ? 1 : 0;
    shares_["symbolic sizes"] += which.drawn.sizes.empty() ? 0 : 1;
    shares_["several stages"] += which.drawn.stages > 1 ? 1 : 0;
    shares_["three or more steps"] += which.schedule.steps.size() >= 3 ? 1 : 0;
  }
  void refuse(const Error& error, uint64_t seed) {
    const std::lock_guard lock(mutex_);
    Refused& refused =
        refused_.try_emplace(error.reason(), Refused{0, seed, error.message()}).first->second;
    ++refused.count;
  }

  int cases() const { return cases_; }
  double share(std::string_view name) const {
    const auto found = shares_.find(std::string(name));
    return found == shares_.end() ? 0 : static_cast<double>(found->second) / cases_;
  }

  void print() const {
    std::printf("accepted cases: %d\n", cases_.load());
    for (const auto& [name, count] : shares_) {
      std::printf("  %-24s %5.1f %%\n", name.c_str(), 100.0 * count / cases_);
    }
    for (const auto& [reason, refused] : refused_) {
      std::printf("  refused %-16s %d times, as in %llu: %s\n", reason.c_str(), refused.count,
                  static_cast<unsigned long long>(refused.seed), refused.message.c_str());
    }
  }

 private:
  struct Refused {
    int count;
    uint64_t seed;  // of one of them
    std::string message;
  };

  std::mutex mutex_;
  std::atomic<int> cases_ = 0;
  std::map<std::string, int> shares_;
  std::map<std::string, Refused> refused_;
};

/// Interprets the loops of a schedule, and compiles and runs them now and then, since compiling
/// takes most of the time: one case in `compiled_share`.
class Comparison {
 public:
  Comparison(int rounds, int compiled_share) : rounds_(rounds), compiled_share_(compiled_share) {}

  void run(uint64_t first) {
    // A refused case is drawn again.
    for_each_seed(first, 3 * static_cast<uint64_t>(rounds_), [this](uint64_t seed) {
      if (distribution_.cases() < rounds_) check(seed);
    });
  }

  const Distribution& distribution() const { return distribution_; }

 private:
  void check(uint64_t seed) {
    const FuzzCase which = draw_case(seed);
    try {
      const std::string found = compare(which, seed);
      EXPECT_EQ(found, "") << describe(seed, which);
      distribution_.add(which);
    } catch (const Error& error) {
      const bool allowed = error.kind() == ErrorKind::InvalidArgument ||
                           error.kind() == ErrorKind::Unsupported ||
                           error.kind() == ErrorKind::ResourceExhausted;
      EXPECT_TRUE(allowed) << error.message()
                           << fmt::format(" {}\n", fmt::join(error.notes(), "; "))
                           << describe(seed, which);
      EXPECT_EQ(refusal_of(which.kernel), "") << describe(seed, which);
      distribution_.refuse(error, seed);
      if (rounds_ == 1)
        std::printf("%s\n%s\n", error.message().c_str(), describe(seed, which).c_str());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << describe(seed, which);
    }
  }

  /// Why the kernel is refused in plain loops, though all that are drawn make sense; empty if not.
  static std::string refusal_of(const language::Kernel& kernel) {
    try {
      LoweringObserver silent;
      lower(kernel, {}, host(), {}, Layout::Compact, silent);
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  }

  /// Empty, or what differs.
  std::string compare(const FuzzCase& which, uint64_t seed) {
    const Schedule checked = decode_schedule(encode(which.schedule), which.kernel);
    const Schedule scheduled = choose_schedule(which.kernel, checked, host(), {});
    LoweringObserver silent;
    const ir::Kernel loops = lower(which.kernel, scheduled, host(), {}, Layout::Compact, silent);
    std::string found = which.difference_of(loops);
    if (!found.empty()) return found + ", interpreted";
    const bool is_compiled = seed % compiled_share_ == 0;
    if (!is_compiled) return "";
    found = which.difference_of([&] { return run_loops(loops, which); });
    if (!found.empty()) return found + ", compiled";
    return seed % (8 * compiled_share_) == 0 ? compare_otherwise(which, scheduled) : "";
  }

  /// With arguments that lie apart, without a schedule, and with the chosen one.
  static std::string compare_otherwise(const FuzzCase& which, const Schedule& scheduled) {
    std::string found = which.difference_of([&] {
      return run_strided(compile_for_host(which.kernel, scheduled, {.strided = true}), which);
    });
    if (!found.empty()) return found + ", with strides";
    const auto run = [&](const Schedule& schedule) {
      return which.difference_of(
          [&] { return run_on_cpu(which.kernel, schedule, which.sizes, which.inputs); });
    };
    found = run({});
    if (!found.empty()) return found + ", with plain loops";
    found = run(choose_schedule(which.kernel, {}, host(), {}));
    return found.empty() ? "" : found + ", with the automatic schedule";
  }

  const int rounds_;
  const uint64_t compiled_share_;
  Distribution distribution_;
};
/// A schedule may change how a kernel runs, never what it computes: the kernel under a random
/// schedule, in plain loops, and as it is scheduled automatically all agree with the definition.
TEST(ScheduleFuzz, AgreesWithTheDefinition) {
  const bool is_long = std::getenv("KILN_LONG") != nullptr;
  const int rounds = fuzz_rounds(is_long ? 20'000 : 1000);
  Comparison comparison(rounds, rounds == 1 ? 1 : is_long ? 2 : 8);
  comparison.run(fuzz_seed());
  const Distribution& distribution = comparison.distribution();
  distribution.print();
  if (HasFailure()) return;
  EXPECT_GE(distribution.cases(), rounds) << "too many schedules were refused";
  if (rounds < 500) return;  // too few for shares to mean something
  for (const language::StepRow& row : language::step_table()) {
    EXPECT_GE(distribution.share(row.spelling), 0.03) << row.spelling;
  }
  for (const std::string_view kind : kernel_kinds()) {
    EXPECT_GE(distribution.share(kind), 0.01) << kind;
  }
  EXPECT_GE(distribution.share("three or more steps"), 0.5);
}

}  // namespace
}  // namespace kiln::testing
