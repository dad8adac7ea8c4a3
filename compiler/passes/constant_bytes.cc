// The size of a buffer in memory as one number, for those who ask whether it is large; a product
// that overflows is large, so it saturates.
#include "compiler/passes/constant_bytes.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"

namespace kiln::passes {

std::optional<int64_t> constant_bytes(const ir::Buffer& buffer) {
  int64_t bytes = size_of(buffer.type);
  for (const ir::Expr& extent : ir::extents_in_memory(buffer)) {
    const std::optional<int64_t> value = ir::as_const_int(extent);
    if (!value) return std::nullopt;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(*value, 0), &bytes))
      return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

}  // namespace kiln::passes
