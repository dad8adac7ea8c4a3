// Takes an index apart so that little of it is swizzled anew for each access.
//
//   X[x*512 + y + l*64 + r*8], l < 8 and r < 8 written out, y < 8, S(e) = e ^ e / 512 % 8 * 8
//     ->  S(x*512 + y) ^ r*8, + l*64       one XOR for each r, and l*64 in the instruction
//
// ptxas cannot: it does not know how many threads there are along which axis, so that for all it
// sees a sum may carry into the bits that are exchanged.
#include "compiler/codegen/swizzled_places.h"

#include <algorithm>
#include <bit>

#include "compiler/analysis/linear.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/swizzle.h"

namespace kiln::codegen {
namespace {

using namespace ir;

constexpr uint64_t kAny = ~uint64_t{0};
constexpr uint64_t kLargest = uint64_t{1} << 40;

/// The bits of a number from the lowest that may be set to the highest.
uint64_t bits_between(uint64_t largest, int lowest) {
  if (largest >= kLargest) return kAny;
  const uint64_t below = (uint64_t{1} << std::bit_width(largest)) - 1;
  return lowest >= 64 ? 0 : below & ~((uint64_t{1} << lowest) - 1);
}

class Bits {
 public:
  explicit Bits(const std::vector<LoopAround>& loops) : loops_(loops) {}

  /// Bits that may be set, whatever the variables are; all where nothing is known.
  uint64_t of(const Expr& expr) const {
    if (const auto value = as_const_int(expr))
      return *value < 0 ? kAny : static_cast<uint64_t>(*value);
    if (const Var* var = as<Var>(expr)) return of_variable(var);
    const Binary* node = as<Binary>(expr);
    if (node == nullptr) return kAny;
    const uint64_t a = of(node->a);
    const uint64_t b = of(node->b);
    if (a >= kLargest || b >= kLargest) return kAny;
    const bool is_constant = as_const_int(node->b).has_value();
    switch (node->op) {
      case Operator::Add:
        return (a & b) == 0
                   ? a | b
                   : bits_between(a + b, std::min(std::countr_zero(a), std::countr_zero(b)));
      case Operator::Mul:
        if (is_constant && std::has_single_bit(b)) return a << std::countr_zero(b);
        if (a >= uint64_t{1} << 20 || b >= uint64_t{1} << 20) return kAny;
        return bits_between(a * b, std::countr_zero(a) + std::countr_zero(b));
      case Operator::FloorDiv:
      case Operator::TruncDiv:
        if (!is_constant || b == 0) return kAny;
        return std::has_single_bit(b) ? a >> std::countr_zero(b) : bits_between(a / b, 0);
      case Operator::FloorMod:
      case Operator::TruncMod:
        if (!is_constant || b == 0) return kAny;
        return std::has_single_bit(b) ? a & (b - 1) : bits_between(std::min(a, b - 1), 0);
      case Operator::BitXor:
      case Operator::BitOr: return a | b;
      default: return kAny;
    }
  }

 private:
  uint64_t of_variable(const Var* var) const {
    for (const LoopAround& loop : loops_) {
      if (loop.var.get() != var) continue;
      const std::optional<int64_t> extent = as_const_int(loop.extent);
      if (!extent || *extent < 1) return kAny;
      return bits_between(static_cast<uint64_t>(*extent - 1), 0);
    }
    return kAny;
  }

  const std::vector<LoopAround>& loops_;
};

}  // namespace

SwizzledPlace swizzled_place(const Buffer& buffer, const Expr& element,
                             const std::vector<LoopAround>& loops) {
  const Swizzle swizzle = swizzle_of(buffer);
  analysis::Atoms atoms;
  const analysis::Linear sum = atoms.read(analysis::simplify(element));
  analysis::Linear own;
  analysis::Linear high;
  analysis::Linear constant;
  for (const analysis::Term& term : sum.terms) {
    const Expr factor = term.product.degree() == 1 ? atoms.expr(term.product[0]) : Expr();
    const bool is_written_out = factor && std::ranges::any_of(loops, [&](const LoopAround& loop) {
                                  return loop.is_written_out && Expr(loop.var) == factor;
                                });
    const bool is_high = term.coefficient % swizzle.period() == 0;
    (is_high ? high : is_written_out ? constant : own).terms.push_back(term);
  }
  constant.constant = analysis::floor_mod(sum.constant, swizzle.period());
  SwizzledPlace place{.own = atoms.write(own),
                      .constant = atoms.write(constant),
                      .high = atoms.write(high),
                      .behind = sum.constant - constant.constant};
  const Bits bits(loops);
  if ((bits.of(place.own) & bits.of(place.constant)) != 0) {
    place.own = analysis::simplify(place.own + place.constant);
    place.constant = index(0);
  }
  return place;
}

}  // namespace kiln::codegen
