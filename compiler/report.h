#pragma once

#include <string>

#include "compiler/ir/kernel.h"
#include "compiler/language/step.h"
#include "compiler/lower.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// Counts the accesses that build_loops makes, for the report.
class CountAccesses : public LoweringObserver {
 public:
  void after(std::string_view pass, ir::Kernel& kernel) override;
  int64_t accesses = 0;
};

/// The report of a kernel as JSON: `guards` (accesses checked while it runs), `proved` (all
/// others), `launches`, `schedule` (the steps that ran, stages and axes by number), `notes`,
/// `kernels`. What the artifact's report says already stays.
std::string report_of(const ir::Kernel& kernel, const language::Schedule& schedule,
                      const Artifact& artifact, int64_t accesses);

}  // namespace kiln
