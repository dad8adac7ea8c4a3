// How large a launch is, over the scalars of a call.
#include "compiler/codegen/cuda_launch.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/codegen/artifact_parts.h"
#include "compiler/codegen/cuda_uses.h"
#include "compiler/codegen/size_expr.h"
#include "compiler/ir/build.h"

namespace kiln::codegen {

using namespace ir;

Launch launch_of(const Kernel& kernel, const LaunchNest& nest, std::string entry) {
  const std::vector<VarRef> scalars = scalars_of(kernel);
  const SizeExpr one = SizeExpr::constant(1);
  Launch launch{std::move(entry), {one, one, one}, {one, one, one}};
  launch.shared_bytes = SizeExpr::constant(dynamic_shared_bytes(nest));
  for (const For* axis : nest.axes) {
    const bool is_block = ir::is_block_axis(axis->thread);
    const auto first = is_block ? ThreadAxis::BlockX : ThreadAxis::ThreadX;
    const size_t d = static_cast<size_t>(axis->thread) - static_cast<size_t>(first);
    (is_block ? launch.grid : launch.block)[d] = to_size_expr(axis->extent, scalars);
  }
  return launch;
}

int64_t most_threads(const LaunchNest& nest) {
  int64_t threads = 1;
  for (const For* axis : nest.axes) {
    if (is_block_axis(axis->thread)) continue;
    const std::optional<int64_t> extent = as_const_int(axis->extent);
    threads *= std::max<int64_t>(extent.value_or(kThreadsOfBlock), 1);
  }
  return std::min(threads, kThreadsOfBlock);
}

}  // namespace kiln::codegen
