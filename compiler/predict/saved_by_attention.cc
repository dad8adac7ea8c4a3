// What the scores of an attention take that are stored, and read again.
#include "compiler/predict/saved_by_attention.h"

#include <algorithm>
#include <optional>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/language/check/linear.h"
#include "compiler/tile/thread_attention.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln::predict {
namespace {

bool stores_no_scores(const language::Kernel& kernel, std::string_view arch) {
  try {
    tile::threaded_work(kernel, without_figures(arch));
    return true;
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    return false;
  }
}

/// Bytes of what is no parameter, written once and read once.
double moved_between_stages(const language::Definition& definition) {
  double moved = 0;
  for (language::StageId id = 0; id < definition.stages.size(); ++id) {
    const language::TensorId tensor{id, 0};
    if (std::ranges::count(definition.parameters, tensor) > 0) continue;
    auto bytes = static_cast<double>(size_of(definition.type_of(tensor)));
    for (const language::ExprId extent : definition.shape_of(tensor)) {
      const std::optional<int64_t> known = language::constant_value(definition, extent);
      bytes *= static_cast<double>(known.value_or(1));
    }
    moved += 2 * bytes;
  }
  return moved;
}

}  // namespace

double saved_by_attention(const language::Kernel& kernel, std::string_view arch) {
  if (!stores_no_scores(kernel, arch)) return 0;
  const autoschedule::GpuMachine machine = autoschedule::gpu_machine(arch);
  return moved_between_stages(kernel.definition) /
         (machine.memory_bytes * static_cast<double>(machine.multiprocessors)) /
         (machine.gigahertz * 1e9);
}

}  // namespace kiln::predict
