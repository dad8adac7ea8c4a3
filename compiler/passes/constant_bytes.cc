// The size of a buffer as one number, for those who ask whether it is large; a product that
// overflows is large, so it saturates.
#include "compiler/passes/constant_bytes.h"

#include <limits>

#include "compiler/ir/build.h"

namespace kiln::passes {

std::optional<int64_t> constant_bytes(const ir::Buffer& buffer) {
  int64_t bytes = size_of(buffer.type);
  for (const ir::Expr& extent : buffer.shape) {
    const std::optional<int64_t> value = ir::as_const_int(extent);
    if (!value) return std::nullopt;
    if (__builtin_mul_overflow(bytes, *value, &bytes)) return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

}  // namespace kiln::passes
