#include "runtime/core/fired_check.h"

#include "runtime/core/error.h"

namespace kiln {

void fail_check(const FiredCheck& fired, const Artifact& artifact, const KernelNames* names) {
  const auto number = static_cast<size_t>(fired.check);
  KILN_CHECK(number < artifact.checks.size());
  const RuntimeCheck& check = artifact.checks[number];
  const auto name = [&](int32_t stage) {
    const bool known =
        names != nullptr && stage >= 0 && static_cast<size_t>(stage) < names->stages.size();
    return known ? names->stages[static_cast<size_t>(stage)] : fmt::format("stage {}", stage);
  };
  if (check.stage == check.tensor) {
    fail(ErrorKind::InvalidArgument, "INDEX_OUT_OF_RANGE",
         "{} of {} updates its element at index {} of dimension {}, but its extent there is {}",
         name(check.stage), names != nullptr ? names->kernel : "the kernel", fired.index,
         check.dimension, fired.extent);
  }
  fail(ErrorKind::InvalidArgument, "INDEX_OUT_OF_RANGE",
       "{} of {} reads index {} of dimension {} of {}, but its extent there is {}",
       name(check.stage), names != nullptr ? names->kernel : "the kernel", fired.index,
       check.dimension, name(check.tensor), fired.extent);
}

}  // namespace kiln
