// Decides between a padded last vector and an epilogue of shorter ones: 31 elements are vectors of
// 16, 8, 4, 2 and 1 lanes, or two of 16 of which one lane is padding. Padding wins where the
// epilogue needs two vectors or more. Its lanes load 0 under a mask, so that only arithmetic which
// neither traps nor spreads to other lanes is allowed: +, - and *.
#include "compiler/passes/padded_vectors.h"

#include <bit>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kVectorBytes = 64;  // the widest registers, as accumulator tiles assume them
constexpr int64_t kNarrowest = 4;     // bytes: AVX and AVX2 have masked moves of 4 and 8 alone

class OnlyAddsAndMultiplies : public Visitor {
 public:
  bool holds = true;

 private:
  using Visitor::visit;
  void visit(const Binary& node) override {
    const bool is_plain =
        node.op == Operator::Add || node.op == Operator::Sub || node.op == Operator::Mul;
    holds = holds && is_plain;
    Visitor::visit(node);
  }
  void visit(const Load& load) override { holds = holds && !load.predicate; }
  void visit(const Call&) override { holds = false; }
};

/// The extent with its last vector padded: a short one to the next power of two.
int64_t padded_extent(int64_t extent, int64_t lanes) {
  if (extent < lanes) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  }
  return (extent + lanes - 1) / lanes * lanes;
}

}  // namespace

std::optional<PaddedLoop> padded_loop(const For& loop, const Store& update) {
  const std::optional<int64_t> extent = as_const_int(loop.extent);
  const int64_t bytes = size_of(update.buffer->type);
  if (loop.loop_kind != LoopKind::Vectorized || !extent || bytes < kNarrowest) return std::nullopt;
  const int64_t lanes = kVectorBytes / bytes;
  const int64_t rest = *extent % lanes;
  if (std::popcount(static_cast<uint64_t>(rest)) < 2) return std::nullopt;
  OnlyAddsAndMultiplies walk;
  walk(update.value);
  if (!walk.holds) return std::nullopt;
  return PaddedLoop{&loop, index(padded_extent(*extent, lanes)), less(loop.var, loop.extent)};
}

}  // namespace kiln::passes
