// The schedule that runs without `tune`: of each stage the first sketch with its preferred numbers.
// SketchSpace has the same stages and numbers for `tune`, so a tuned kernel differs from this one
// in choices alone, never in what is computed.
#include "compiler/autoschedule/choose/choose_schedule.h"

#include "compiler/autoschedule/choose/sketch_space.h"

namespace kiln {

language::Schedule choose_schedule(const language::Kernel& kernel,
                                   const language::Schedule& schedule, const Target& target,
                                   const CompileOptions& options) {
  const SketchSpace space(kernel, schedule, target, options);
  return space.schedule(space.preferred());
}

}  // namespace kiln
