#include "compiler/lower.h"

#include <algorithm>
#include <functional>
#include <span>

#include <fmt/ranges.h>

#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/language/text/suggest.h"
#include "compiler/passes/passes.h"
#include "compiler/schedule/emit/build_loops.h"
#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

enum class Serves { All, Llvm, Cuda };

struct Pass {
  std::string_view name;
  ir::Kernel (*run)(ir::Kernel, const PassContext&);
  Serves serves;
};

/// The compiler's table of contents: what happens to the loops of a kernel, in order. The contract
/// of each pass stands in passes.h.
constexpr Pass kPasses[] = {
    // The arithmetic of bounds inference is noisy; from here on loops read as the user wrote them.
    {"simplify", passes::simplify, Serves::All},
    // The last point where a loop is still what bind() made it.
    {"validate_threads", passes::validate_threads, Serves::Cuda},
    // Before partition_loops, which then frees full blocks of their guards on the CPU too.
    {"bind_to_cores", passes::bind_to_cores, Serves::Llvm},
    // Before partition_loops, which divides what is one nest here.
    {"carry_states", passes::carry_states, Serves::Llvm},
    // Before partition_loops, which has nothing to cut there then.
    {"shift_last_tiles", passes::shift_last_tiles, Serves::Llvm},
    {"partition_loops", passes::partition_loops, Serves::All},
    // After partition_loops: a guard is simple in the loops' own variables, not in the fused one.
    {"collapse_parallel", passes::collapse_parallel, Serves::All},
    // These two while indices are per dimension, where accesses are easily told apart.
    {"validate_vectors", passes::validate_vectors, Serves::Llvm},
    {"insert_barriers", passes::insert_barriers, Serves::Cuda},
    {"keep_strided_plain", passes::keep_strided_plain, Serves::Llvm},
    // Of full tiles, so after partition_loops.
    {"tensorize", passes::tensorize, Serves::Llvm},
    // After partition_loops, since full tiles are what it is for; before the accumulators get a
    // place.
    {"accumulate_in_registers", passes::accumulate_in_registers, Serves::Llvm},
    // While indices are per dimension.
    {"lay_out_lanes", passes::lay_out_lanes, Serves::Llvm},
    // After all that makes a loop parallel or serial: a buffer in a parallel loop is one a thread.
    {"plan_storage", passes::plan_storage, Serves::All},
    {"flatten_storage", passes::flatten_storage, Serves::All},
    // Wants whole loops (before unroll_loops) and indices in elements (after flatten_storage).
    {"vectorize_loops", passes::vectorize_loops, Serves::All},
    {"accumulate_in_lanes", passes::accumulate_in_lanes, Serves::Llvm},
    {"unroll_loops", passes::unroll_loops, Serves::All},
    // Folds the indices the passes since the first simplify leave behind.
    {"simplify", passes::simplify, Serves::All},
    {"hoist_invariants", passes::hoist_invariants, Serves::All},
    // After hoist_invariants, which knows loops by what their bodies begin with.
    {"fetch_ahead", passes::fetch_ahead, Serves::Llvm},
    {"bypass_caches", passes::bypass_caches, Serves::Llvm},
    {"split_host_device", passes::split_host_device, Serves::Cuda},
    {"check_launch", passes::check_launch, Serves::Cuda},
};

constexpr std::string_view kFirst = "build_loops";

struct NamedPass {
  std::string name;  // with :1, :2 where it stands twice
  const Pass* pass;
};

std::vector<NamedPass> passes_of(TargetKind target) {
  const Serves only = target == TargetKind::Cuda ? Serves::Cuda : Serves::Llvm;
  const auto serves = [&](const Pass& pass) {
    return pass.serves == Serves::All || pass.serves == only;
  };
  std::vector<NamedPass> result;
  for (const Pass& pass : kPasses) {
    if (!serves(pass)) continue;
    const auto is_same = [&](const Pass& other) {
      return serves(other) && other.name == pass.name;
    };
    std::string name(pass.name);
    if (std::ranges::count_if(kPasses, is_same) > 1) {
      name += fmt::format(":{}", std::ranges::count_if(std::span(kPasses, &pass + 1), is_same));
    }
    result.push_back({std::move(name), &pass});
  }
  return result;
}

class CountStatements : public ir::Visitor {
 public:
  int64_t count = 0;

 private:
  using Visitor::visit;
#define STMT(T)                            \
  void visit(const ir::T& node) override { \
    ++count;                               \
    Visitor::visit(node);                  \
  }
#include "compiler/ir/nodes.def"
};

void check_size(const ir::Kernel& kernel, const CompileLimits& limits) {
  CountStatements walk;
  walk(kernel.body);
  if (walk.count > limits.statements) {
    fail(ErrorKind::ResourceExhausted, "STATEMENT_LIMIT",
         "{} has {} statements when lowered; the limit is {}; unroll less, or make several kernels "
         "of it",
         called(kernel.name), walk.count, limits.statements);
  }
}

/// About how many instructions the loops become on a CPU with registers of 64 bytes; as many more
/// as LLVM takes the time of.
class EstimateCode : public ir::Visitor {
 public:
  int64_t total() const { return instructions_ + sums_ * loops_ / kLoopsOfASum; }

 private:
  int64_t instructions_ = 0;
  int64_t loops_ = 0;
  int64_t sums_ = 0;  // places that a loop leaves alone while it stores to them
  std::vector<const ir::For*> around_;

  // LLVM keeps such a place in a register, for which it looks at the whole function again.
  static constexpr int64_t kLoopsOfASum = 60;
  static constexpr int64_t kFunction =
      36;  // exp and its like are written out; as long as LLVM takes for them
  static constexpr int64_t kBranch = 8;

  static int64_t registers(const ir::Type& type) {
    return std::max<int64_t>(1, int64_t{type.lanes} * size_of(type.element) / 64);
  }

  using Visitor::visit;
  void visit(const ir::Binary& node) override {
    instructions_ += registers(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Load& node) override {
    instructions_ += registers(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Call& node) override {
    const bool chooses = node.op == ir::Operator::Select || node.op == ir::Operator::IfThenElse;
    instructions_ += registers(node.type) * (chooses ? 1 : kFunction);
    Visitor::visit(node);
  }
  void visit(const ir::Dot& node) override {
    instructions_ += node.group() * registers(node.type);
    Visitor::visit(node);
  }
  void visit(const ir::Store& node) override {
    const auto moves = [&](const ir::For* loop) {
      return std::ranges::any_of(node.indices,
                                 [&](const ir::Expr& index) { return uses_var(index, loop->var); });
    };
    for (size_t i = around_.size(); i > 0 && !moves(around_[i - 1]); --i)
      ++sums_;
    instructions_ += registers(node.value->type);
    Visitor::visit(node);
  }
  void visit(const ir::If& node) override {
    instructions_ += kBranch;
    Visitor::visit(node);
  }
  void visit(const ir::For& node) override {
    instructions_ += kBranch;
    ++loops_;
    around_.push_back(&node);
    Visitor::visit(node);
    around_.pop_back();
  }
};

/// LLVM's time grows with the code; nothing else bounds a nest of unrolled loops and long vectors.
void check_code(const ir::Kernel& kernel, const PassContext& context) {
  if (context.target.kind != TargetKind::Llvm) return;
  EstimateCode walk;
  walk(kernel.body);
  if (walk.total() > context.options.limits.code) {
    fail(ErrorKind::ResourceExhausted, "CODE_LIMIT",
         "{} becomes about {} instructions; the limit is {}; unroll or vectorize less",
         called(kernel.name), walk.total(), context.options.limits.code);
  }
}

/// Bounds what a pass left, and shows it.
void finish(std::string_view pass, ir::Kernel& kernel, const PassContext& context,
            LoweringObserver& observer) {
  check_size(kernel, context.options.limits);
  observer.after(pass, kernel);
}

/// Runs the passes up to the one called `last`; all of them when there is none.
ir::Kernel run_table(std::string_view last, ir::Kernel kernel, const PassContext& context,
                     LoweringObserver& observer) {
  for (const NamedPass& row : passes_of(context.target.kind)) {
    annotate(fmt::format("in pass {}", row.name), [&] {
      kernel = row.pass->run(std::move(kernel), context);
      finish(row.name, kernel, context, observer);
    });
    if (row.name == last) break;
  }
  return kernel;
}

class VerifyEach : public LoweringObserver {
 public:
  void after(std::string_view, ir::Kernel& kernel) override { ir::verify(kernel); }
};

/// Verifies the result alone, which takes as long as a pass. Passes are pure, so that the one that
/// is to blame is found by running them once more.
ir::Kernel run_until(std::string_view last, const ir::Kernel& kernel, const PassContext& context,
                     LoweringObserver& observer) {
  ir::Kernel result = run_table(last, kernel, context, observer);
  try {
    ir::verify(result);
  } catch (const Error&) {
    ir::verify(kernel);
    VerifyEach each;
    run_table(last, kernel, context, each);
    throw;
  }
  return result;
}

ir::Kernel build(const language::Kernel& definition, const language::Schedule& schedule,
                 const PassContext& context, LoweringObserver& observer) {
  // What it refuses names a stage or a step; that it is a pass says no more to the user.
  ir::Kernel kernel = build_loops(definition, schedule, context.target, context.options);
  finish(kFirst, kernel, context, observer);
  return kernel;
}

/// The name as passes_of() has it: "" and "simplify" name one of several.
std::string resolve(std::string_view asked, TargetKind target) {
  if (asked.empty()) return "simplify:1";
  if (asked == kFirst) return std::string(asked);
  const std::vector<NamedPass> passes = passes_of(target);
  const auto found = std::find_if(passes.rbegin(), passes.rend(), [&](const NamedPass& row) {
    return row.name == asked || row.pass->name == asked;
  });
  if (found != passes.rend()) return found->name;

  const std::vector<std::string> names = pass_names(Target{target, ""});
  std::vector<std::string_view> known(names.begin(), names.end());
  for (const NamedPass& row : passes)
    known.push_back(row.pass->name);
  const std::string_view near = language::nearest(asked, known);
  fail(ErrorKind::InvalidArgument, "PASS", "there is no pass {} for {}; {}", asked, name_of(target),
       near.empty() ? fmt::format("its passes are {}", fmt::join(names, ", "))
                    : fmt::format("did you mean {}", near));
}

}  // namespace

ir::Kernel plain_loops(const language::Kernel& kernel, const language::Schedule& schedule,
                       const Target& target, const CompileOptions& options,
                       LoweringObserver& observer) {
  const PassContext context{target, options};
  return run_until(resolve("", target.kind), build(kernel, schedule, context, observer), context,
                   observer);
}

ir::Kernel lower(const language::Kernel& kernel, const language::Schedule& schedule,
                 const Target& target, const CompileOptions& options, Layout layout,
                 LoweringObserver& observer) {
  const PassContext context{target, options, layout};
  ir::Kernel result = run_until("", build(kernel, schedule, context, observer), context, observer);
  check_code(result, context);
  return result;
}

ir::Kernel run_passes(const ir::Kernel& kernel, const Target& target, const CompileOptions& options,
                      Layout layout, LoweringObserver& observer) {
  return run_until("", kernel, PassContext{target, options, layout}, observer);
}

std::vector<std::string> pass_names(const Target& target) {
  std::vector<std::string> names = {std::string(kFirst)};
  for (const NamedPass& row : passes_of(target.kind))
    names.push_back(row.name);
  return names;
}

std::string lowered_text(const language::Kernel& kernel, const language::Schedule& schedule,
                         const Target& target, const CompileOptions& options,
                         std::string_view pass) {
  const std::string last = resolve(pass, target.kind);
  const PassContext context{target, options};
  LoweringObserver observer;
  const ir::Kernel loops = build(kernel, schedule, context, observer);
  ir::Kernel shown = last == kFirst ? loops : run_until(last, loops, context, observer);
  shown.checks.clear();  // a table in numbers, which a person has no use for
  return ir::print(shown);
}

}  // namespace kiln
