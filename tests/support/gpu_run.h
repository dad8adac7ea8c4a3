#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/kernel.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/lower.h"
#include "runtime/core/error.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/random.h"

namespace kiln::testing {

/// The loops of a kernel for CUDA, by its `schedule cuda` if it has one; what no step touches is
/// scheduled automatically.
inline ir::Kernel gpu_loops(const language::TextKernel& text, const CompileOptions& options = {},
                            std::string_view arch = "sm_90") {
  language::Schedule steps;
  for (const auto& [target, schedule] : text.schedules) {
    if (target == "cuda") steps = schedule;
  }
  const Target target{TargetKind::Cuda, std::string(arch)};
  LoweringObserver silent;
  return lower(text.kernel, choose_schedule(text.kernel, steps, target, options), target, options,
               Layout::Compact, silent);
}

/// The loops of a kernel of one stage by the automatic schedule of this name.
inline ir::Kernel gpu_loops_by(const language::TextKernel& text, std::string_view sketch,
                               std::string_view arch = "sm_90") {
  const Target target{TargetKind::Cuda, std::string(arch)};
  const SketchSpace space(text.kernel, {}, target, {});
  const std::vector<autoschedule::Sketch>& sketches = space.stages().at(0).sketches;
  const auto found = std::ranges::find(sketches, sketch, &autoschedule::Sketch::name);
  KILN_CHECK(found != sketches.end());
  const auto number = static_cast<uint32_t>(found - sketches.begin());
  LoweringObserver silent;
  return lower(text.kernel, space.schedule({{{number, found->preferred()}}}), target, {},
               Layout::Compact, silent);
}

/// Runs the loops in the interpreter, which looks for threads that do not wait for each other, and
/// compares with what the definition says. Empty, or the difference.
inline std::string gpu_difference(const language::TextKernel& text, const ir::Kernel& loops,
                                  const std::vector<int64_t>& sizes) {
  Random random(1);
  const std::vector<HostTensor> inputs = random_inputs(text.kernel, sizes, random);
  const std::vector<HostTensor> expected =
      language::evaluate(text.kernel.definition, text.kernel.names, sizes, inputs);
  const std::vector<double> errors(expected.size(), 1e-4);
  return difference(interpret_loops(loops, sizes, inputs, expected, true), expected, errors);
}

}  // namespace kiln::testing
