// Decides which outputs are stored past the caches. A cached store reads the line it writes first,
// and evicts what is needed sooner; but the next kernel finds what it has stored in L3, if that has
// place for it and for what was read meanwhile.
//
// us on one core of a Zen 4 with 32 MiB of L3, stored plainly and past the caches:
//
//   output of             8 MiB       16 MiB       24 MiB       64 MiB
//   X * 2                 243, 311    873, 616     1537, 936    5357, 2720
//   X + Y                 472, 336    1472, 876    2603, 1570   7728, 5492
//   x[i] * y[j]           91, 307     208, 604     519, 900     2270, 2466
#include "compiler/analysis/nontemporal.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"

namespace kiln::analysis {
namespace {

using namespace ir;

// Five eighths of an L3 of 32 MiB, whose rest is for what others keep there.
constexpr int64_t kNearBytes = int64_t{20} << 20;
// So much is in no L3 that a core may have for itself.
constexpr int64_t kFarBytes = int64_t{64} << 20;
// More than that is a product that may not be one any more.
constexpr int64_t kMostBytes = int64_t{1} << 48;

/// Of all elements; what has no number that is as large is large enough.
Expr bytes_of(const Buffer& buffer) {
  int64_t known = size_of(buffer.type);
  Expr open = ir::index(1);
  for (const Expr& extent : extents_in_memory(buffer)) {
    const std::optional<int64_t> value = as_const_int(extent);
    if (!value) {
      open = open * extent;
    } else if (__builtin_mul_overflow(known, std::max<int64_t>(*value, 0), &known)) {
      known = kMostBytes;
    }
  }
  return open * ir::index(std::min(known, kMostBytes));
}

}  // namespace

Expr is_nontemporal(const Kernel& kernel, const Buffer& output) {
  Expr read = ir::index(0);
  Expr stored = ir::index(0);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    Expr& sum = kernel.is_output[i] ? stored : read;
    sum = sum + bytes_of(*kernel.parameters[i]);
  }
  const Expr own = bytes_of(output);
  // Where little is read beside what is stored nothing is displaced.
  const Expr displaces =
      logical_and(less_equal(own, read * 2), less_equal(ir::index(kNearBytes), read + stored));
  Expr result = logical_and(less_equal(ir::index(kNontemporalBytes), own),
                            logical_or(displaces, less_equal(ir::index(kFarBytes), own)));
  if (output.shape.size() > 1) {
    const Expr row = output.shape.back() * size_of(output.type);
    result = logical_and(result, equal(floormod(row, ir::index(kNontemporalRow)), ir::index(0)));
  }
  return simplify(result);
}

bool stay_near(const Kernel& kernel) {
  Expr all = ir::index(0);
  for (const BufferRef& buffer : kernel.parameters)
    all = all + bytes_of(*buffer);
  return is_const(simplify(less(all, ir::index(kNearBytes))), 1);
}

bool may_be_nontemporal(const Kernel& kernel, const Buffer& output) {
  return !is_const(is_nontemporal(kernel, output), 0);
}

}  // namespace kiln::analysis
