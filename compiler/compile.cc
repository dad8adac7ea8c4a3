// A kernel's way to an artifact: loops for compact arguments and, if asked for, for strided ones,
// and code for both from the backend of the target. For the interpreter the loops are the code.
#include "compiler/compile.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/ranges.h>

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/backends.h"
#include "compiler/codegen/cpu_code.h"
#include "compiler/executable_id.h"
#include "compiler/ir/mutator.h"
#include "compiler/loops_artifact.h"
#include "compiler/report.h"
#include "compiler/requirements.h"
#include "compiler/tile_block.h"
#include "compiler/tile_code.h"
#include "runtime/core/called.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

/// To be raised when code changes in a way that the id of the executable does not show.
constexpr int kCodeVersion = 1;

/// The kernel with its sizes as constants; they stay its sizes, which calls give as before.
language::Kernel with_sizes(language::Kernel kernel, const std::vector<int64_t>& sizes) {
  KILN_CHECK(sizes.size() == kernel.definition.variables.size());
  for (language::Expression& expression : kernel.definition.expressions) {
    const auto* use = std::get_if<language::VariableUse>(&expression.node);
    if (use != nullptr) expression.node = language::IntegerConstant{sizes[use->variable]};
  }
  return kernel;
}

/// Sums of floats whose lanes are added up in an order that follows from how a loop is divided.
class FindsReorderedSums : public ir::Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::VectorReduce& node) override {
    found = found || (node.reassociate && is_float(node.start->type.element));
    Visitor::visit(node);
  }
};

/// A variant for known sizes has the bits of the kernel itself. Where the sizes say how a loop over
/// lanes ends, its sum would have others.
void refuse_other_order(const ir::Kernel& loops) {
  FindsReorderedSums walk;
  walk(loops.body);
  if (!walk.found) return;
  fail(ErrorKind::Unsupported, "VARIANT_ORDER",
       "there are no variants of {} for known sizes: they would add up floats in another order",
       loops.name);
}

Artifact compile_kernel(const language::Kernel& kernel, const language::Schedule& schedule,
                        const Target& target, const CompileOptions& options) {
  const Backend* backend = find_backend(target);
  if (backend == nullptr) return compile_loops(kernel, schedule, target, options);
  backend->check_arch(target);
  CountAccesses count;
  LoweringObserver silent;
  const ir::Kernel compact = lower(kernel, schedule, target, options, Layout::Compact, count);
  if (!options.sizes.empty()) refuse_other_order(compact);
  std::optional<ir::Kernel> strided;
  if (options.strided) {
    strided = lower(kernel, schedule, target, options, Layout::Strided, silent);
  }
  Artifact artifact =
      backend->make_artifact(compact, strided ? &*strided : nullptr, target, options);
  CompileOptions with_block = options;
  with_block.block = tile_block_of(schedule);
  backend->add_code(kernel, compact, target, with_block, artifact);
  artifact.requirements = size_requirements(kernel.definition, compact.sizes);
  artifact.report = report_of(compact, artifact, count.accesses);
  return artifact;
}

[[noreturn]] void fail_source(std::string_view what, const Target& target, const Backend* backend) {
  std::vector<std::string_view> known = {"lowered"};
  if (backend != nullptr)
    known.insert(known.end(), backend->sources.begin(), backend->sources.end());
  const std::string last(known.back());
  known.pop_back();
  fail(ErrorKind::InvalidArgument, "SOURCE", "there is no source {} of a kernel for {}; there {}",
       what, name_of(target.kind),
       known.empty() ? fmt::format("is {}", last)
                     : fmt::format("are {} and {}", fmt::join(known, ", "), last));
}

}  // namespace

Artifact compile(const language::Kernel& kernel, const language::Schedule& schedule,
                 const Target& target, const CompileOptions& options) {
  const auto compile_it = [&] {
    if (options.sizes.empty()) return compile_kernel(kernel, schedule, target, options);
    return compile_kernel(with_sizes(kernel, options.sizes), schedule, target, options);
  };
  if (kernel.names.kernel == kUnnamedKernel) return compile_it();
  return annotate("in kernel " + kernel.names.kernel, compile_it);
}

std::string source_of(const language::Kernel& kernel, const language::Schedule& schedule,
                      const Target& target, const CompileOptions& options, std::string_view what) {
  if (what == "lowered") return lowered_text(kernel, schedule, target, options, "");
  const Backend* backend = find_backend(target);
  const bool is_report = what == "report";
  const bool is_aligned = what == "aligned" && backend != nullptr;
  if (!is_report && !is_aligned &&
      (backend == nullptr || std::ranges::find(backend->sources, what) == backend->sources.end())) {
    fail_source(what, target, backend);
  }
  if (what == "tile") return tile_text(kernel, options);
  LoweringObserver silent;
  ir::Kernel lowered = backend != nullptr
                           ? lower(kernel, schedule, target, options, Layout::Compact, silent)
                           : plain_loops(kernel, schedule, target, options, silent);
  if (is_aligned) return backend->aligned(lowered, target, options);
  if (!is_report) return backend->source(lowered, target, options, what);
  if (backend != nullptr) backend->add_notes(schedule, target, options, lowered);
  std::string machine;
  if (target.traits().has_vectors) {
    machine = autoschedule::text_of(
        autoschedule::machine_of(target.arch.empty() ? host_cpu() : target.arch));
  }
  return named_report_of(kernel, schedule, lowered, machine);
}

std::string compiler_build_id() {
  return fmt::format("{}-llvm{}-{}", executable_id(), codegen::llvm_version(), kCodeVersion);
}

}  // namespace kiln
