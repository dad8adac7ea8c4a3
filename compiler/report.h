#pragma once

#include <string>

#include "compiler/ir/kernel.h"
#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/lower.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// Counts the accesses that build_loops makes, for the report.
class CountAccesses : public LoweringObserver {
 public:
  void after(std::string_view pass, ir::Kernel& kernel) override;
  int64_t accesses = 0;
};

/// What an artifact says of itself, as JSON: `guards` (accesses checked while it runs), `proved`
/// (all others), `launches`, `kernels`, `code_bytes`. Nothing in it is anybody's name, since an
/// artifact serves everybody who defined the same. What the artifact's report says already stays.
std::string report_of(const ir::Kernel& kernel, const Artifact& artifact, int64_t accesses);

/// The part of a report that is in the caller's names, as JSON: `schedule` (the steps that ran, as
/// a kernel file has them), `notes`, and `machine`, which the steps are chosen for; on a GPU none.
std::string named_report_of(const language::Kernel& definition, const language::Schedule& schedule,
                            const ir::Kernel& kernel, std::string_view machine);

}  // namespace kiln
