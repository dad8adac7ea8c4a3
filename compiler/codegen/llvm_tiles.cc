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
// that it comes to and those that there is room for beside it, which are what is left over at the
// ends of axes. Others set it and set it back, around the outermost loop that has no more of the
// first ones.
#include "compiler/codegen/llvm_tiles.h"

#include <algorithm>

#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm_function.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {

using analysis::TileProduct;
using analysis::TileSettings;
using analysis::TileShape;
using analysis::TileSteps;
using llvm::Value;

namespace {

TileShape shape_of(const TileProduct& product) {
  return TileShape::of(product.row_count, product.column_count, product.steps.back().extent);
}

/// The settings for a statement: products in parallel loops are of functions of their own.
class Settings : public ir::Visitor {
 public:
  explicit Settings(bool in_parallel) : in_parallel_(in_parallel) {}
  TileSettings found;
  std::vector<TileShape> shapes;  // of all products
  bool has_room = true;           // for all of them

 private:
  using Visitor::visit;
  void visit(const ir::For& loop) override {
    if (in_parallel_ || loop.loop_kind != ir::LoopKind::Parallel) Visitor::visit(loop);
  }
  void visit(const ir::MultiplyTiles& node) override {
    const auto product = analysis::tile_product(node);
    if (!product) return;
    shapes.push_back(shape_of(*product));
    has_room = found.add(shapes.back()) && has_room;
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

std::array<uint8_t, 64> tile_configuration(const TileSettings& settings) {
  constexpr size_t kRowBytes = 16;
  constexpr size_t kRows = 48;
  std::array<uint8_t, 64> configuration{};
  configuration[0] = 1;
  for (size_t i = 0; i < settings.tiles().size(); ++i) {
    configuration[kRowBytes + 2 * i] = static_cast<uint8_t>(settings.tiles()[i].bytes);
    configuration[kRows + i] = static_cast<uint8_t>(settings.tiles()[i].rows);
  }
  return configuration;
}

/// Emits one product, in tiles that are set for it.
class TileEmitter {
 public:
  TileEmitter(llvm::IRBuilderBase& builder, ExprEmitter& expr, const TileProduct& product,
              std::vector<int64_t> numbers)
      : product(product),
        shape(shape_of(product)),
        numbers_(std::move(numbers)),
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
  void load(size_t tile, Value* base, int64_t elements, int64_t row) const {
    b_.CreateIntrinsic(
        llvm::Intrinsic::x86_tileloadd64, {},
        {number(tile), at(base, elements * element_bytes_), bytes(row * element_bytes_)});
  }

  Value* sums_row() const { return bytes(product.sums_row * size_of(DType::Int32)); }
  Value* number(size_t tile) const { return b_.getInt8(static_cast<uint8_t>(numbers_[tile])); }
  Value* bytes(int64_t count) const { return b_.getInt64(static_cast<uint64_t>(count)); }
  Value* at(Value* base, int64_t count) const {
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), base, bytes(count));
  }
  Value* behind(Value* base, Value* elements) const {
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), base,
                                b_.CreateMul(elements, bytes(element_bytes_), "", true, true));
  }

  const std::vector<int64_t> numbers_;
  llvm::IRBuilderBase& b_;
  Value* const sums_;
  Value* const a_;
  Value* const b_factor_;
  const int64_t element_bytes_;
};

/// The settings for the products of the function, before anything of it runs.
void FunctionEmitter::begin_tiles(const ir::Stmt& body) {
  Settings settings(in_parallel_);
  settings(body);
  if (settings.found.tiles().empty()) return;
  tiles_ = std::make_shared<const TileSettings>(settings.found);
  set_tiles(*tiles_);
}

/// Settings that a loop needs and there are not; none where those of each product are for itself.
std::shared_ptr<const TileSettings> FunctionEmitter::other_tiles_of(const ir::For& loop) const {
  if (!tiles_) return nullptr;
  Settings settings(in_parallel_);
  settings(loop.body);
  const bool needs_others = std::ranges::any_of(
      settings.shapes, [&](const TileShape& shape) { return !tiles_->numbers(shape); });
  if (!needs_others || !settings.has_room) return nullptr;
  return std::make_shared<const TileSettings>(settings.found);
}

/// Whoever runs on this core next has no tiles to keep.
void FunctionEmitter::end_tiles() {
  if (tiles_) b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void FunctionEmitter::set_tiles(const TileSettings& settings) {
  const std::array<uint8_t, 64> configuration = tile_configuration(settings);
  llvm::Constant* const bytes =
      llvm::ConstantDataArray::get(b_.getContext(), llvm::ArrayRef<uint8_t>(configuration));
  auto* const memory = new llvm::GlobalVariable(shared_.module, bytes->getType(), true,
                                                llvm::GlobalValue::PrivateLinkage, bytes, "tiles");
  memory->setAlignment(llvm::Align(configuration.size()));
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
  std::optional<std::vector<int64_t>> numbers;
  if (tiles_) numbers = tiles_->numbers(shape_of(product));
  const bool is_other = !numbers;
  if (is_other) {
    TileSettings own;
    own.add(shape_of(product));
    set_tiles(own);
    numbers = own.numbers(shape_of(product));
  }
  const TileEmitter tiles(b_, expr_, product, *std::move(numbers));
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
