#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "compiler/lower.h"
#include "compiler/passes/carry_states.h"
#include "compiler/passes/shift_last_tiles.h"
#include "runtime/core/error.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/mutants.h"
#include "tests/support/seeds_in_threads.h"

namespace kiln::testing {
namespace {

using language::Schedule;

/// One way through the pass table.
struct Way {
  std::string_view name;
  Target target;
  Layout layout;
};

const Way kWays[] = {
    {"llvm", {TargetKind::Llvm, ""}, Layout::Compact},
    {"llvm, strided", {TargetKind::Llvm, ""}, Layout::Strided},
    {"cuda", {TargetKind::Cuda, "sm_90"}, Layout::Compact},
    {"cuda, strided", {TargetKind::Cuda, "sm_90"}, Layout::Strided},
};

/// Whether random kernels as small as here must be seen to be changed by the row of this name.
bool must_change(std::string_view row) {
  const std::string_view pass = row.substr(0, row.find(':'));
  return pass == "build_loops" || pass_named(pass).changes == Changes::Some;
}

constexpr passes::LargeOutputs kAnyOutput = {.bytes = 0, .row_bytes = 1};
constexpr passes::ShiftedTiles kAnyTiles = {.least_parts = 0, .unrolled_alone = false};

/// Interprets the loops after build_loops and after each row of the pass table that changed them,
/// whatever the rows are, and compares with what the definition says.
class CheckEveryPass : public LoweringObserver {
 public:
  /// Empty, or how loops differ from what they should compute.
  using Compare = std::function<std::string(const ir::Kernel&, bool has_barriers)>;
  explicit CheckEveryPass(Compare compare) : compare_(std::move(compare)) {}

  void after(std::string_view pass, ir::Kernel& kernel) override {
    if (::testing::Test::HasFailure()) return;
    // The passes themselves leave tensors as small as here alone.
    if (pass == "carry_states") kernel = passes::carry_states(std::move(kernel), kAnyOutput);
    if (pass == "shift_last_tiles") kernel = passes::shift_last_tiles(std::move(kernel), kAnyTiles);
    const bool is_same = kernel.body == last_ && kernel.workspace.size() == workspace_;
    last_ = kernel.body;
    workspace_ = kernel.workspace.size();
    const bool has_news = pass == "insert_barriers" && !has_barriers_;
    has_barriers_ = has_barriers_ || has_news;
    if (is_same && !has_news) return;
    if (!is_same) changed.emplace_back(pass);
    try {
      ir::verify(kernel);
      EXPECT_EQ(compare_(kernel, has_barriers_), "") << "after " << pass << "\n"
                                                     << ir::print(kernel);
    } catch (const Error& error) {
      ADD_FAILURE() << "after " << pass << ": " << error.message() << "\n" << ir::print(kernel);
    }
  }

  std::vector<std::string> changed;

 private:
  const Compare compare_;
  ir::Stmt last_;
  size_t workspace_ = 0;
  bool has_barriers_ = false;  // from here on threads must wait where they need to
};

/// How often each pass changed something, by target. For use by several threads.
class Changes {
 public:
  void add(const Way& way, const std::vector<std::string>& passes) {
    const std::lock_guard lock(mutex_);
    for (const std::string& pass : passes)
      ++counts_[{way.target.kind, pass}];
  }

  void expect_all() const {
    for (const TargetKind kind : {TargetKind::Llvm, TargetKind::Cuda}) {
      for (const std::string& pass : pass_names(Target{kind, ""})) {
        const auto found = counts_.find({kind, pass});
        const int count = found == counts_.end() ? 0 : found->second;
        std::printf("  %-5s %-24s changed the loops %d times\n", std::string(name_of(kind)).c_str(),
                    pass.c_str(), count);
        EXPECT_TRUE(count > 0 || !must_change(pass)) << name_of(kind) << ": " << pass;
      }
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<TargetKind, std::string>, int> counts_;
};

/// Lowers in one way with the steps that the schedule leaves open chosen. Returns whether the
/// kernel was accepted.
bool check_passes(const language::Kernel& kernel, const Schedule& schedule, const Way& way,
                  CheckEveryPass check, Changes& changes) {
  SCOPED_TRACE(way.name);
  try {
    lower(kernel, choose_schedule(kernel, schedule, way.target, {}), way.target, {}, way.layout,
          check);
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::InvalidArgument ||
                error.kind() == ErrorKind::Unsupported ||
                error.kind() == ErrorKind::ResourceExhausted)
        << error.message() << fmt::format(" {}", fmt::join(error.notes(), "; "));
    return false;
  }
  changes.add(way, check.changed);
  return true;
}

TEST(PassFuzz, EveryPassKeepsTheMeaningOfRandomKernels) {
  const uint64_t first = fuzz_seed(100'000);
  const uint64_t rounds = static_cast<uint64_t>(fuzz_rounds(240));
  Changes changes;
  for_each_seed(first, rounds, [&](uint64_t seed) {
    const FuzzCase which = draw_case(seed);
    SCOPED_TRACE(describe(seed, which));
    const Way& way = kWays[seed % std::size(kWays)];
    const auto compare = [&](const ir::Kernel& loops, bool has_barriers) {
      return which.difference_of(loops, has_barriers);
    };
    check_passes(which.kernel, which.schedule, way, CheckEveryPass(compare), changes);
  });
  if (rounds >= 2000 && !HasFailure()) changes.expect_all();
}

/// Small enough for two interpreters; the last size is not divided by any tile.
std::vector<int64_t> sizes_for(const language::Kernel& kernel) {
  const std::vector<int64_t> small = {9, 21, 13, 5};
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < kernel.names.variables.size(); ++i)
    sizes.push_back(small[i % small.size()]);
  return sizes;
}

int64_t elements_of(const language::Kernel& kernel, const std::vector<int64_t>& sizes) {
  int64_t count = 0;
  for (const language::TensorId parameter : kernel.definition.parameters) {
    int64_t elements = 1;
    for (const language::ExprId extent : kernel.definition.shape_of(parameter))
      elements *= language::evaluate_size(kernel.definition, extent, sizes);
    count += elements;
  }
  return count;
}

/// How far rounding may move the outputs of the kernel files, whose inputs are small numbers.
std::vector<double> rounding_of(const std::vector<HostTensor>& outputs) {
  std::vector<double> errors;
  for (const HostTensor& tensor : outputs) {
    double largest = 1;
    for (int64_t i = 0; i < element_count(tensor.shape); ++i)
      largest = std::max(largest, std::abs(language::read_element(tensor, i).floating));
    errors.push_back(largest * (tensor.type == DType::Float64 ? 1e-10 : 1e-5));
  }
  return errors;
}

TEST(PassFuzz, EveryPassKeepsTheMeaningOfTheKernelFiles) {
  constexpr int64_t kTooLarge = 5000;  // elements: more would take the interpreter seconds
  // Tiles of a GPU are filled whatever the sizes are: with a sanitizer, some of what the release
  // build checks is enough.
  const int64_t each = std::max<int64_t>(100 / std::max<int64_t>(fuzz_rounds(100), 1), 1);
  int64_t ways = 0;
  Changes changes;
  int kernels = 0;
  for (const std::string& file : kernel_files()) {
    for (const language::TextKernel& text : language::parse_text(kernel_file(file), file)) {
      const language::Kernel& kernel = text.kernel;
      const std::vector<int64_t> sizes = sizes_for(kernel);
      if (elements_of(kernel, sizes) > kTooLarge) continue;
      SCOPED_TRACE(kernel.names.kernel);
      Random random(7);
      const std::vector<HostTensor> inputs = random_inputs(kernel, sizes, random);
      const auto expected = language::evaluate(kernel.definition, kernel.names, sizes, inputs);
      const auto compare = [&](const ir::Kernel& loops, bool has_barriers) {
        return difference(interpret_loops(loops, sizes, inputs, expected, has_barriers), expected,
                          rounding_of(expected));
      };
      std::vector<Schedule> schedules = {{}};
      for (const auto& [target, schedule] : text.schedules)
        schedules.push_back(schedule);
      for (const Schedule& schedule : schedules) {
        for (const Way& way : kWays) {
          if (ways++ % each == 0)
            check_passes(kernel, schedule, way, CheckEveryPass(compare), changes);
        }
      }
      ++kernels;
    }
  }
  std::printf("  %d kernels\n", kernels);
  EXPECT_GE(kernels, 10);
  if (each == 1) changes.expect_all();
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
bool is_found(const Mutant& mutant, const FuzzCase& which, const Way& way) {
  Sabotage observer(mutant);
  try {
    const ir::Kernel kernel =
        lower(which.kernel, choose_schedule(which.kernel, which.schedule, way.target, {}),
              way.target, {}, way.layout, observer);
    return !which.difference_of(kernel, way.target.traits().has_threads).empty();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Internal;
  }
}

/// The comparison can fail: each of these mistakes of the compiler is found.
TEST(PassFuzz, FindsSeededMistakes) {
  ASSERT_GE(mutants().size(), 20u);
  for (const Mutant& mutant : mutants()) {
    constexpr uint64_t kFirst = 500'000;
    constexpr uint64_t kTries = 5000;
    const Way& way = kWays[mutant.target == TargetKind::Cuda ? 2 : 0];
    uint64_t seed = kFirst;
    while (seed < kFirst + kTries && !is_found(mutant, draw_case(seed), way))
      ++seed;
    EXPECT_LT(seed, kFirst + kTries) << "not found: " << mutant.name;
    std::printf("  found after %4d cases: %s\n", static_cast<int>(seed - kFirst + 1),
                std::string(mutant.name).c_str());
  }
}

}  // namespace
}  // namespace kiln::testing
