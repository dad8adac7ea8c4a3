#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/compile.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/parse.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/cpu_name.h"
#include "tests/fuzz/fuzz_case.h"
#include "tests/support/call_in_memory.h"
#include "tests/support/case_under_way.h"
#include "tests/support/mutate_kernel.h"
#include "tests/support/mutated_case.h"
#include "tests/support/oracle.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/seeds_in_threads.h"

namespace kiln::testing {
namespace {

/// How a case ended. Anything else than these fails the test.
enum class End : uint8_t {
  Equal,         // it ran, and gave what the definition says
  Long,          // accepted, but too large to run here
  RefusedText,   // by the text form or the checks of the definition
  RefusedLower,  // by the compiler
  RefusedCall,   // by the checks of the arguments
  Stopped,       // by a guard, at an index that is outside
};
constexpr std::string_view kEnds[] = {"equal",         "too long to run", "refused text",
                                      "refused lower", "refused call",    "stopped"};

/// Cases by mutation and end. For use by several threads.
class Tally {
 public:
  void add(std::string_view mutation, End end, const std::string& reason, uint64_t seed) {
    const std::lock_guard lock(mutex_);
    ++counts_[std::string(mutation)][static_cast<size_t>(end)];
    auto& [count, example] = reasons_.try_emplace(reason, 0, seed).first->second;
    ++count;
  }

  int count(std::string_view mutation, std::initializer_list<End> ends) const {
    const auto found = counts_.find(std::string(mutation));
    int total = 0;
    for (const End end : ends)
      total += found == counts_.end() ? 0 : found->second[static_cast<size_t>(end)];
    return total;
  }

  void print() const {
    std::array<int, std::size(kEnds)> totals = {};
    std::printf("%-18s", "");
    for (const std::string_view end : kEnds)
      std::printf(" %15s", std::string(end).c_str());
    std::printf("\n");
    for (const auto& [mutation, ends] : counts_) {
      print_row(mutation, ends);
      for (size_t i = 0; i < ends.size(); ++i)
        totals[i] += ends[i];
    }
    print_row("all", totals);
    for (const auto& [reason, counted] : reasons_) {
      std::printf("  %-22s %6d times, as in seed %llu\n", reason.c_str(), counted.first,
                  static_cast<unsigned long long>(counted.second));
    }
  }

 private:
  static void print_row(const std::string& name, const std::array<int, std::size(kEnds)>& row) {
    std::printf("%-18s", name.c_str());
    for (const int count : row)
      std::printf(" %15d", count);
    std::printf("\n");
  }

  std::mutex mutex_;
  std::map<std::string, std::array<int, std::size(kEnds)>> counts_;
  std::map<std::string, std::pair<int, uint64_t>> reasons_;  // how often, and a seed
};

/// Ends loops that run for too long, such as those of a huge split factor.
class Budget : public ir::InterpretWatch {
 public:
  bool is_cancelled() const override { return ++iterations_ > 1'000'000; }

 private:
  mutable int64_t iterations_ = 0;
};

/// As `--check-nan` has it.
class NanWatch : public Budget {
 public:
  bool wants_nan() const override { return true; }
  void found_nan(const ir::Buffer& buffer, const std::vector<int64_t>&, bool) override {
    fail(ErrorKind::InvalidArgument, "NAN", "{} has a NaN", buffer.name);
  }
};

bool has_nan(const std::vector<HostTensor>& tensors) {
  for (const HostTensor& tensor : tensors) {
    for (int64_t i = 0; is_float(tensor.type) && i < element_count(tensor.shape); ++i) {
      if (std::isnan(language::read_element(tensor, i).floating)) return true;
    }
  }
  return false;
}

/// One mutated kernel, from its text to its results.
class MutatedCase {
 public:
  MutatedCase(const MutatedText& which, uint64_t seed, bool is_compiled)
      : which_(which), random_(seed + 77), is_compiled_(is_compiled) {}

  /// Throws what refuses the case; `end` says from where.
  void run(End& end) {
    end = End::RefusedText;
    const language::TextKernel text = language::parse_text(which_.text, "mutated.kiln").at(0);
    kernel_ = text.kernel;
    for (const auto& [target, schedule] : text.schedules) {
      if (target == (which_.target == TargetKind::Cuda ? "cuda" : "cpu")) schedule_ = schedule;
    }
    end = End::RefusedLower;
    const Target target{which_.target, which_.target == TargetKind::Cuda ? "sm_90" : host_cpu()};
    const language::Schedule scheduled = choose_schedule(kernel_, schedule_, target, {});
    LoweringObserver silent;
    const ir::Kernel loops = lower(kernel_, scheduled, target, {}, Layout::Compact, silent);
    if (which_.target == TargetKind::Cuda) codegen::cuda_text(loops, nullptr);
    const auto interpreted =
        std::make_shared<Artifact>(compile(kernel_, schedule_, {TargetKind::Interpreter, ""}, {}));

    end = End::RefusedCall;
    names_ = names_of(kernel_);
    call_ = draw_call(kernel_, which_.mutation, random_);
    // The interpreter takes what is compact.
    const bool has_strides = which_.mutation == "argument strides";
    const bool compiles = is_compiled_ || has_strides;
    std::shared_ptr<const Artifact> compiled;
    if (compiles && target.kind == TargetKind::Llvm)
      compiled = compile_for_host(kernel_, scheduled, {.strided = has_strides});
    if (compiles && !compiled) {
      const Target host{TargetKind::Llvm, host_cpu()};
      compiled = compile_for_host(kernel_, choose_schedule(kernel_, {}, host, {}),
                                  {.strided = has_strides});
    }
    const BoundCall bound =
        bind_arguments(compiled ? *compiled : *interpreted, names_, call_.slots, call_.sizes);
    check_bound(bound);
    if (!fill_arguments(bound)) {
      end = End::Long;
      return;
    }

    end = End::Stopped;
    const Oracle oracle(kernel_, sizes_of(bound), inputs_);
    Budget budget;
    const bool is_long = oracle.is_too_large() ||
                         !compare(oracle, [&] { return interpret_loops(loops, bound, budget); });
    end = is_long ? End::Long : End::Equal;
    if (is_long) return;
    // As `kiln run --interpret` has it.
    const ir::Kernel plain = ir::parse(interpreted->code);
    const bool ended = compare(oracle, [&] {
      Budget plain_budget;
      return interpret_loops(plain, bound, plain_budget);
    });
    if (ended && !oracle.stops() && has_nan(oracle.outputs())) expect_nan_found(plain, bound);
    if (compiled) compare(oracle, [&] { return run_artifact(compiled, bound, cpu_device()); });
    if (has_stopped_) end = End::Stopped;
  }

  const DrawnCall& call() const { return call_; }

 private:
  using Outputs = std::optional<std::vector<HostTensor>>;  // nothing: the budget is spent

  std::vector<int64_t> sizes_of(const BoundCall& bound) const {
    return {bound.scalars.begin(),
            bound.scalars.begin() + static_cast<ptrdiff_t>(kernel_.names.variables.size())};
  }

  /// The arguments that were accepted are such as the definition speaks of.
  void check_bound(const BoundCall& bound) const {
    const language::Definition& definition = kernel_.definition;
    ASSERT_EQ(call_.slots.size(), definition.parameters.size());
    for (size_t i = 0; i < call_.slots.size(); ++i) {
      const language::TensorId parameter = definition.parameters[i];
      std::vector<int64_t> shape;
      for (const language::ExprId extent : definition.shape_of(parameter))
        shape.push_back(language::evaluate_size(definition, extent, sizes_of(bound)));
      EXPECT_EQ(bound.shapes[i], shape) << "parameter " << i;
      EXPECT_TRUE(std::ranges::none_of(shape, [](int64_t extent) { return extent < 0; }));
      if (!call_.slots[i].given) continue;
      EXPECT_EQ(call_.slots[i].layout.shape, shape) << "argument " << i;
      EXPECT_EQ(call_.slots[i].layout.type, definition.type_of(parameter)) << "argument " << i;
    }
  }

  /// Gives inputs whose shape was changed their elements, and what strides make of inputs.
  bool fill_arguments(const BoundCall& bound) {
    for (size_t i = 0; i < call_.slots.size(); ++i) {
      double reach = 1;
      const std::vector<int64_t>& strides = call_.slots[i].layout.strides;
      for (size_t d = 0; d < bound.shapes[i].size(); ++d) {
        const auto extent = static_cast<double>(bound.shapes[i][d]);
        reach *= std::max(extent, 1.0);
        if (!strides.empty()) reach = std::max(reach, extent * std::fabs(strides[d]));
      }
      if (reach > 1e6) return false;
      HostTensor& tensor = call_.tensors[i];
      if (tensor.shape == bound.shapes[i] && !tensor.bytes.empty()) continue;
      tensor = zeros(tensor.type, bound.shapes[i]);
    }
    const CallInMemory memory(bound, call_.slots, call_.tensors);
    for (size_t i = 0; i < call_.slots.size(); ++i) {
      if (kernel_.definition.is_output(kernel_.definition.parameters[i])) {
        call_.tensors[i].bytes.clear();
      } else {
        inputs_.push_back(memory.contents(i));
      }
    }
    return true;
  }

  Outputs interpret_loops(const ir::Kernel& loops, const BoundCall& bound, Budget& budget) const {
    std::vector<HostTensor> arguments;
    size_t next = 0;
    for (size_t i = 0; i < loops.is_output.size(); ++i) {
      if (loops.is_output[i]) {
        arguments.push_back(zeros(call_.tensors[i].type, bound.shapes[i]));
        std::fill(arguments.back().bytes.begin(), arguments.back().bytes.end(), std::byte{0x5a});
      } else {
        arguments.push_back(inputs_[next++]);
      }
    }
    if (!ir::interpret(loops, sizes_of(bound), arguments, budget)) return std::nullopt;
    std::vector<HostTensor> outputs;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (loops.is_output[i]) outputs.push_back(std::move(arguments[i]));
    }
    return outputs;
  }

  Outputs run_artifact(const std::shared_ptr<const Artifact>& artifact, const BoundCall& bound,
                       Device& device) const {
    const CallInMemory memory(bound, call_.slots, tensors_with(inputs_));
    const std::vector<void*> pointers = memory.pointers();
    device.run(*device.load(artifact), {pointers, &bound, &names_});
    EXPECT_EQ(memory.touched_between_elements(), "");
    std::vector<HostTensor> outputs;
    for (size_t i = 0; i < call_.slots.size(); ++i) {
      if (artifact->parameters[i].is_output) outputs.push_back(memory.contents(i));
    }
    return outputs;
  }

  void expect_nan_found(const ir::Kernel& plain, const BoundCall& bound) const {
    try {
      NanWatch watch;
      interpret_loops(plain, bound, watch);
      ADD_FAILURE() << "an output has a NaN, which the interpreter does not find";
    } catch (const Error& error) {
      EXPECT_TRUE(error.reason() == "NAN" || error.reason() == "INDEX_OUT_OF_RANGE")
          << error.message();
    }
  }

  std::vector<HostTensor> tensors_with(const std::vector<HostTensor>& inputs) const {
    std::vector<HostTensor> tensors = call_.tensors;
    size_t next = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!kernel_.definition.is_output(kernel_.definition.parameters[i]))
        tensors[i] = inputs[next++];
    }
    return tensors;
  }

  /// rfactor takes a reducer of the user's for associative; one that compares is not, of a NaN.
  bool depends_on_order() const {
    return !kernel_.definition.reducers.empty() && has_nan(inputs_) &&
           std::ranges::any_of(schedule_.steps, [](const language::Step& step) {
             return step.kind == language::StepKind::Rfactor;
           });
  }

  /// Whether it came to an end, and there was memory for it.
  template <typename Run>
  bool compare(const Oracle& oracle, const Run& run) {
    try {
      const Outputs outputs = run();
      if (!outputs) return false;
      if (oracle.stops()) {
        EXPECT_TRUE(oracle.rounding_decides_stop())
            << "an index outside of a tensor is not noticed";
      } else if (!depends_on_order()) {
        EXPECT_EQ(oracle.difference(*outputs), "");
      }
    } catch (const Error& error) {
      if (error.reason() != "INDEX_OUT_OF_RANGE") throw;
      has_stopped_ = true;
      EXPECT_TRUE(oracle.stops() || oracle.may_stop() || oracle.rounding_decides_stop())
          << "stopped, though every index is inside: " << error.message();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  const MutatedText& which_;
  Random random_;
  const bool is_compiled_;
  language::Kernel kernel_;
  language::Schedule schedule_;
  KernelNames names_;
  DrawnCall call_;
  std::vector<HostTensor> inputs_;
  bool has_stopped_ = false;
};

/// Without what the system takes to clear memory, which extents in the billions need much of.
double seconds_of_thread() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return static_cast<double>(used.ru_utime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec);
}

/// Whether it reads as a sentence to a user.
bool is_sentence(const std::string& message) {
  return !message.empty() && message.size() < 1000 && message.find('\n') == std::string::npos &&
         message.find("internal error") == std::string::npos &&
         message.find(".cc:") == std::string::npos && message.find("kiln::") == std::string::npos;
}

void check(const std::vector<std::string>& bases, uint64_t seed, bool is_compiled, Tally& tally) {
  const CaseUnderWay drawing(fmt::format("drawing KILN_FUZZ_SEED={}\n", seed));
  const MutatedText which = draw_mutated_text(bases, seed);
  const std::string what =
      fmt::format("to repeat: KILN_FUZZ_SEED={} KILN_FUZZ_ROUNDS=1\nmutated: {}\n{}", seed,
                  which.mutation, which.text);
  const CaseUnderWay under_way(what);
  MutatedCase mutated(which, seed, is_compiled);
  SCOPED_TRACE(what);
  End end = End::Equal;
  std::string reason;
  const double start = seconds_of_thread();
  try {
    mutated.run(end);
    reason = kEnds[static_cast<size_t>(end)];
  } catch (const Error& error) {
    const bool is_refusal = error.kind() == ErrorKind::InvalidArgument ||
                            error.kind() == ErrorKind::Unsupported ||
                            error.kind() == ErrorKind::ResourceExhausted;
    EXPECT_TRUE(is_refusal && is_sentence(error.message()))
        << name_of(error.kind()) << ": " << error.message()
        << fmt::format(" {}", fmt::join(error.notes(), "; ")) << describe(mutated.call());
    reason = error.reason();
    if (fuzz_rounds(2) == 1) std::printf("%s\n", error.what());
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what() << describe(mutated.call());
  }
  EXPECT_LT(seconds_of_thread() - start, 10 * kSecondsOfACase) << "seconds";
  if (::testing::Test::HasFailure()) std::printf("%s\n", describe(mutated.call()).c_str());
  tally.add(which.mutation, end, reason, seed);
}

/// The kernels of the tree and random ones, with one thing changed: each is refused with a
/// sentence, or gives what its definition says, interpreted and compiled.
TEST(Mutation, IsRefusedOrGivesWhatTheDefinitionSays) {
  const std::vector<std::string> bases = kernel_texts(
      {KILN_TEST_KERNELS, KILN_TEST_KERNELS "/classic", KILN_TEST_KERNELS "/../../examples",
       KILN_TEST_KERNELS "/../../compiler/operators"});
  const bool is_long = std::getenv("KILN_LONG") != nullptr;
  const int rounds = fuzz_rounds(is_long ? 50'000 : 2000);
  const uint64_t compiled_share = rounds == 1 || is_long ? 1 : 6;
  Tally tally;
  for_each_seed(fuzz_seed(1), static_cast<uint64_t>(rounds),
                [&](uint64_t seed) { check(bases, seed, seed % compiled_share == 0, tally); });
  tally.print();
  if (rounds < 2000 || HasFailure()) return;
  const auto expect_both = [&](std::string_view mutation) {
    EXPECT_GT(tally.count(mutation,
                          {End::RefusedText, End::RefusedLower, End::RefusedCall, End::Stopped}),
              0)
        << mutation << " is never refused";
    // A call with one argument too few or too many, or of another rank, never fits.
    if (mutation == "argument count" || mutation == "argument rank") return;
    // One axis in 150 fits where another stood, too few for a short run to be sure of one.
    if (mutation == "axis" && rounds < 20'000) return;
    EXPECT_GT(tally.count(mutation, {End::Equal}), 0) << mutation << " is never accepted";
  };
  for (const MutationKind kind : mutation_kinds())
    expect_both(name_of(kind));
  for (const std::string_view mutation : argument_mutations())
    expect_both(mutation);
}

}  // namespace
}  // namespace kiln::testing
