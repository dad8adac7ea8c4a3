// Emits products of tiles with the instructions of a matrix unit (Intel AMX): tiles of the sums
// stay in its registers while the steps pass, each of which loads a tile of a factor and multiplies
// it by all tiles of the other one.
//
//   32 x 32 sums, 64 groups of steps, 16 at once     0 1    4    6 7     (numbers of tiles)
//                                                    2 3    5
//                                                    sums   A    B
//
//   100 groups, of which the last four are less      0 1    4    5    6    7
//                                                    2 3    A    B    of the last groups
//
// How many rows and bytes a tile has is set for all of them at once, which takes as long as ten
// products of tiles and forgets what they hold. So a function sets it once, for the first product
// that it comes to; others set it, and set it back.
#include "compiler/codegen/llvm_tiles.h"

#include <algorithm>

#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm_function.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {

using analysis::TileProduct;
using analysis::TileSteps;
using llvm::Value;

namespace {

/// The first product of a function: not in parallel loops, which are functions of their own.
class FirstProduct : public ir::Visitor {
 public:
  explicit FirstProduct(bool in_parallel) : in_parallel_(in_parallel) {}
  std::optional<TileShape> shape;

 private:
  using Visitor::visit;
  void visit(const ir::For& loop) override {
    if (in_parallel_ || loop.loop_kind != ir::LoopKind::Parallel) Visitor::visit(loop);
  }
  void visit(const ir::MultiplyTiles& node) override {
    if (shape) return;
    if (const auto product = analysis::tile_product(node)) shape = TileShape::of(*product);
  }
  const bool in_parallel_;
};

llvm::Intrinsic::ID product_of(DType a, DType b) {
  if (a == DType::BFloat16) return llvm::Intrinsic::x86_tdpbf16ps;
  if (a == DType::Float16) return llvm::Intrinsic::x86_tdpfp16ps;
  if (a == DType::Int8)
    return b == DType::Int8 ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbsud;
  return b == DType::Int8 ? llvm::Intrinsic::x86_tdpbusd : llvm::Intrinsic::x86_tdpbuud;
}

}  // namespace

TileShape TileShape::of(const TileProduct& product) {
  const int64_t groups = product.steps.back().extent;
  const int64_t each = analysis::groups_at_once(groups);
  return {product.row_count, product.column_count, each, groups % each};
}

TileSettings TileShape::settings() const {
  constexpr size_t kRowBytes = 16;
  constexpr size_t kRows = 48;
  constexpr int64_t kGroupBytes = 4;
  TileSettings settings{};
  settings[0] = 1;
  const auto set = [&](int64_t tile, int64_t rows_of_tile, int64_t elements) {
    settings[kRowBytes + 2 * static_cast<size_t>(tile)] =
        static_cast<uint8_t>(elements * kGroupBytes);
    settings[kRows + static_cast<size_t>(tile)] = static_cast<uint8_t>(rows_of_tile);
  };
  for (int64_t i = 0; i < row_tiles(); ++i) {
    const int64_t tall = std::min(analysis::kTileRows, rows - i * analysis::kTileRows);
    for (int64_t j = 0; j < column_tiles(); ++j) {
      const int64_t wide = std::min(analysis::kTileColumns, columns - j * analysis::kTileColumns);
      set(sums(i, j), tall, wide);
      set(a(i, false), tall, groups);
      set(b(j, false), groups, wide);
      if (rest == 0) continue;
      set(a(i, true), tall, rest);
      set(b(j, true), rest, wide);
    }
  }
  return settings;
}

/// Emits one product, whose shape is set.
class TileEmitter {
 public:
  TileEmitter(llvm::IRBuilderBase& builder, ExprEmitter& expr, const TileProduct& product)
      : product(product),
        shape(TileShape::of(product)),
        b_(builder),
        sums_(expr.address_of(product.sums->buffer, product.sums->indices[0])),
        a_(expr.address_of(product.a->buffer, product.a->indices[0])),
        b_factor_(expr.address_of(product.b->buffer, product.b->indices[0])),
        element_bytes_(size_of(product.a->buffer->type)) {}

  const TileProduct& product;
  const TileShape shape;

  /// Tiles of sums from memory, or zero.
  void begin(bool with_zero) const {
    for_each_sum([&](Value* tile, Value* address) {
      if (with_zero) {
        b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {tile});
      } else {
        b_.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {tile, address, sums_row()});
      }
    });
  }

  void end() const {
    for_each_sum([&](Value* tile, Value* address) {
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {}, {tile, address, sums_row()});
    });
  }

  /// One step, so many elements behind the first one of each factor. Where the tiles of a factor
  /// share one, it is loaded again; the order of the columns turns round from row to row, so that
  /// the one in between is not.
  void multiply(bool is_rest, Value* a_elements, Value* b_elements) const {
    Value* const a = behind(a_, a_elements);
    Value* const b = behind(b_factor_, b_elements);
    int64_t loaded_b = -1;  // the tile of columns that the shared one holds
    for (int64_t i = 0; i < shape.row_tiles(); ++i) {
      load(shape.a(i, is_rest), a, i * analysis::kTileRows * product.a_row, product.a_row);
      for (int64_t n = 0; n < shape.column_tiles(); ++n) {
        const int64_t j = i % 2 == 0 ? n : shape.column_tiles() - 1 - n;
        const bool is_there = shape.shares_factors() ? loaded_b == j : i > 0;
        if (!is_there) {
          load(shape.b(j, is_rest), b, j * analysis::kTileColumns * product.group_size,
               product.steps.back().b);
        }
        loaded_b = j;
        b_.CreateIntrinsic(
            product_of(product.a->buffer->type, product.b->buffer->type), {},
            {number(shape.sums(i, j)), number(shape.a(i, is_rest)), number(shape.b(j, is_rest))});
      }
    }
  }

 private:
  template <typename Visit>
  void for_each_sum(Visit&& visit) const {
    for (int64_t i = 0; i < shape.row_tiles(); ++i) {
      for (int64_t j = 0; j < shape.column_tiles(); ++j) {
        const int64_t elements =
            i * analysis::kTileRows * product.sums_row + j * analysis::kTileColumns;
        visit(number(shape.sums(i, j)), at(sums_, elements * size_of(DType::Int32)));
      }
    }
  }

  /// From so many elements on, with so many from row to row.
  void load(int64_t tile, Value* base, int64_t elements, int64_t row) const {
    b_.CreateIntrinsic(
        llvm::Intrinsic::x86_tileloadd64, {},
        {number(tile), at(base, elements * element_bytes_), bytes(row * element_bytes_)});
  }

  Value* sums_row() const { return bytes(product.sums_row * size_of(DType::Int32)); }
  Value* number(int64_t tile) const { return b_.getInt8(static_cast<uint8_t>(tile)); }
  Value* bytes(int64_t count) const { return b_.getInt64(static_cast<uint64_t>(count)); }
  Value* at(Value* base, int64_t count) const {
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), base, bytes(count));
  }
  Value* behind(Value* base, Value* elements) const {
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), base,
                                b_.CreateMul(elements, bytes(element_bytes_), "", true, true));
  }

  llvm::IRBuilderBase& b_;
  Value* const sums_;
  Value* const a_;
  Value* const b_factor_;
  const int64_t element_bytes_;
};

/// The settings for the first product of the function, before anything of it runs.
void FunctionEmitter::begin_tiles(const ir::Stmt& body) {
  FirstProduct first(in_parallel_);
  first(body);
  if (!first.shape) return;
  tiles_ = std::make_shared<const TileShape>(*first.shape);
  set_tiles(*tiles_);
}

/// Whoever runs on this core next has no tiles to keep.
void FunctionEmitter::end_tiles() {
  if (tiles_) b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void FunctionEmitter::set_tiles(const TileShape& shape) {
  const TileSettings settings = shape.settings();
  llvm::Constant* const bytes =
      llvm::ConstantDataArray::get(b_.getContext(), llvm::ArrayRef<uint8_t>(settings));
  auto* const memory = new llvm::GlobalVariable(shared_.module, bytes->getType(), true,
                                                llvm::GlobalValue::PrivateLinkage, bytes, "tiles");
  memory->setAlignment(llvm::Align(settings.size()));
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {memory});
}

void FunctionEmitter::emit(const ir::MultiplyTiles& node) {
  const std::optional<TileProduct> found = analysis::tile_product(node);
  if (!found) return emit(node.body);
  const TileProduct& product = *found;
  for (const ir::For* loop : {product.rows, product.columns, product.group})
    expr_.bind(loop->var, b_.getInt64(0), true);
  for (const TileSteps& steps : product.steps)
    expr_.bind(steps.loop->var, b_.getInt64(0), true);
  const TileEmitter tiles(b_, expr_, product);
  const bool is_other = !tiles_ || *tiles_ != tiles.shape;
  if (is_other) set_tiles(tiles.shape);
  tiles.begin(product.begins_with_zero);
  emit_steps(tiles, 0, b_.getInt64(0), b_.getInt64(0));
  tiles.end();
  if (is_other && tiles_) set_tiles(*tiles_);
  expr_.known().forget_loads();
}

/// The loops over steps from `depth` on.
void FunctionEmitter::emit_steps(const TileEmitter& tiles, size_t depth, Value* a_elements,
                                 Value* b_elements) {
  const TileSteps& steps = tiles.product.steps[depth];
  const auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
  const auto behind = [&](Value* before, Value* step, int64_t elements) {
    return b_.CreateAdd(before, b_.CreateMul(step, number(elements), "", true, true), "", true,
                        true);
  };
  const bool is_last = depth + 1 == tiles.product.steps.size();
  const int64_t each = is_last ? tiles.shape.groups : 1;
  const LoopBlocks blocks =
      open_loop(steps.loop->var->name, {number(0), number(steps.extent / each), false});
  Value* const a = behind(a_elements, blocks.counter, each * steps.a);
  Value* const b = behind(b_elements, blocks.counter, each * steps.b);
  if (is_last) {
    tiles.multiply(false, a, b);
  } else {
    emit_steps(tiles, depth + 1, a, b);
  }
  close_loop(blocks, b_.CreateAdd(blocks.counter, number(1), "", true, true),
             number(steps.extent / each));
  if (!is_last || tiles.shape.rest == 0) return;
  Value* const first = number(steps.extent - tiles.shape.rest);
  tiles.multiply(true, behind(a_elements, first, steps.a), behind(b_elements, first, steps.b));
}

}  // namespace kiln::codegen
