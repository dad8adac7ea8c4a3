// Marks sums of products that the matrix unit of a core adds a tile at a time.
//
//   for i in 0..32 unroll { for j in 0..32 vectorize { C[i, j] = 0 } }
//   for k in 0..256 { for i in 0..32 unroll { for j in 0..32 vectorize { for t in 0..4 {
//     C[i, j] = C[i, j] + int32(A[i, k*4 + t])*int32(B[k, j, t])
//   } } } }
//     ->
//   multiply_tiles {
//     for i in 0..32 { for j in 0..32 { C[i, j] = 0 } }
//     for k in 0..256 { for i in 0..32 { for j in 0..32 { for t in 0..4 { .. } } } }
//   }
//
// The loops stay what they mean, all of them serial; code is made of the whole. Stands before
// add_in_groups, which takes the same sums in vectors: those that tiles have no room for, and all
// of a CPU without tiles. Arguments of any stride are left to it too, and so are bfloat16 and
// float16 in strict mode, since the instructions round in their own way.
#include "compiler/analysis/tile_product.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/vector_unit.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::TileProduct;

/// The same loops, one iteration after the other.
class MakeSerial : public Mutator {
  using Mutator::visit;
  Stmt visit(const For& loop) override {
    return For::make(loop.var, loop.extent, LoopKind::Serial, (*this)(loop.body));
  }
};

class MultiplyInTiles : public Mutator {
 public:
  MultiplyInTiles(const VectorUnit& unit, bool is_strict) : unit_(unit), is_strict_(is_strict) {}

 private:
  using Mutator::visit;

  /// Sums that begin with zero need not be stored before.
  Stmt visit(const Block& block) override {
    std::vector<Stmt> body;
    for (size_t i = 0; i < block.body.size(); ++i) {
      const auto* next = i + 1 < block.body.size() ? as<For>(block.body[i + 1]) : nullptr;
      const std::optional<TileProduct> product = next != nullptr ? product_in(*next) : std::nullopt;
      if (product && is_zero_before(*product, block.body[i])) {
        body.push_back(
            MultiplyTiles::make(MakeSerial()(Block::make({block.body[i], block.body[i + 1]}))));
        ++i;
      } else {
        body.push_back((*this)(block.body[i]));
      }
    }
    return body == block.body ? Stmt(&block) : Block::make(std::move(body));
  }

  Stmt visit(const For& loop) override {
    if (product_in(loop)) return MultiplyTiles::make(MakeSerial()(Stmt(&loop)));
    return Mutator::visit(loop);
  }

  std::optional<TileProduct> product_in(const For& loop) const {
    std::optional<TileProduct> product = analysis::tile_product(loop);
    const bool serves = product && product->columns->loop_kind == LoopKind::Vectorized &&
                        has_tiles_of(product->a->buffer->type);
    return serves ? product : std::nullopt;
  }

  bool has_tiles_of(DType factor) const {
    if (!is_float(factor)) return unit_.multiplies_tiles_of_bytes;
    if (is_strict_) return false;
    return factor == DType::Float16 ? unit_.multiplies_tiles_of_float16
                                    : unit_.multiplies_tiles_of_halves;
  }

  static bool is_zero_before(const TileProduct& product, const Stmt& before) {
    const Store& sums = *product.sums;
    Stmt start = Store::make(sums.buffer, sums.indices, constant(Type{sums.buffer->type, 1}, 0));
    for (const For* loop : {product.columns, product.rows})
      start = For::make(loop->var, loop->extent, loop->loop_kind, start);
    return equal_trees(before, start);
  }

  const VectorUnit unit_;
  const bool is_strict_;
};

}  // namespace

Kernel multiply_in_tiles(Kernel kernel, const PassContext& context) {
  if (context.layout == Layout::Strided) return kernel;
  MultiplyInTiles mutator(vector_unit_of(context.target.arch), context.options.strict);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
