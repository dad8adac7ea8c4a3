// Writes the sentence for an index that generated code found outside its tensor, in the caller's
// names: what reads or updates, which index, which extent.
#include "runtime/core/fired_check.h"

#include "runtime/core/called.h"
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
  const std::string kernel = called(names);
  const std::string message =
      check.stage == check.tensor
          ? fmt::format(
                "{} of {} updates its element at index {} of dimension {}, but its extent "
                "there is {}",
                name(check.stage), kernel, fired.index, check.dimension, fired.extent)
          : fmt::format("{} of {} reads index {} of dimension {} of {}, but its extent there is {}",
                        name(check.stage), kernel, fired.index, check.dimension, name(check.tensor),
                        fired.extent);
  Error error(ErrorKind::InvalidArgument, "INDEX_OUT_OF_RANGE", message);
  const bool has_line = names != nullptr && check.stage >= 0 &&
                        static_cast<size_t>(check.stage) < names->lines.size();
  if (has_line) error.set_location(names->lines[static_cast<size_t>(check.stage)]);
  throw error;
}

}  // namespace kiln
