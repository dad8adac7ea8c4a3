// Makes the loops of each mark `tensorize` the intrinsic that it names.
//
//   tensorize x86.dot.u8s8s32 {
//     for j in 0..16 { for k in 0..4 { C[j] = C[j] + int32(A[k])*int32(B[j, k]) } }
//   }
//     ->
//   for j in 0..16 vectorize { C[j] = dot(C[j], A[ramp(0, 1, 4)], B[j, ramp(0, 1, 4)]) }
//
// x86.fma.f32 unrolls the rows and vectorises the columns. Refuses other loops, saying in what
// they differ. Tiles that the end of an axis cuts off run as plain loops, with a note; so does all
// for arguments of any stride. Stands after partition_loops, which frees the full tiles of guards,
// and before the sums get registers.
//
// Matches the loops of a mark against what an intrinsic computes: the form of the sum, the types,
// and how far apart neighbours lie along each loop. A loop nest that differs is refused by name, as
// TVM's tensorize does, since the user has asked for the intrinsic. A dot product becomes a node of
// its own; x86.fma.f32 needs none, only loops in the form that accumulate_in_registers looks for.
#include <algorithm>
#include <optional>

#include "compiler/analysis/multiply_add.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/row_along.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::distance, analysis::load_in, analysis::MultiplyAdd, analysis::multiply_add_of;
using language::TensorIntrinsic;

constexpr int64_t kColumns = 16;  // float32 or int32 values of a vector of 64 bytes

/// The loops down to the one store of a statement, outermost first.
struct Tile {
  std::vector<const For*> loops;
  const Store* store = nullptr;
  bool is_cut = false;  // there is a guard: not all iterations run
};

/// Guards are looked through: what an end cuts is no mistake of the user, and runs as plain loops.
std::optional<Tile> tile_of(const Stmt& body) {
  Tile tile;
  const StmtNode* at = body.get();
  while (true) {
    if (const auto* loop = as<For>(at)) {
      tile.loops.push_back(loop);
      at = loop->body.get();
    } else if (const auto* guard = as<If>(at); guard != nullptr && !guard->else_body) {
      tile.is_cut = true;
      at = guard->then_body.get();
    } else {
      tile.store = as<Store>(at);
      if (tile.store == nullptr || tile.store->predicate) return std::nullopt;
      return tile;
    }
  }
}

/// Makes the loops of one mark the intrinsic, or says in what they differ.
class MakeIntrinsic {
 public:
  MakeIntrinsic(TensorIntrinsic intrinsic, const Tile& tile)
      : row_(language::row_of(intrinsic)), tile_(tile), store_(*tile.store) {}

  Stmt operator()() const {
    switch (row_.kind) {
      case TensorIntrinsic::DotU8S8: return dot(4, DType::Int32);
      case TensorIntrinsic::DotBf16: return dot(2, DType::Float32);
      case TensorIntrinsic::FmaF32: return fma();
    }
    KILN_CHECK(false);
  }

  /// Whether all iterations of the loops run that build_loops has made.
  bool is_full() const {
    if (tile_.is_cut || tile_.loops.empty()) return false;
    const bool is_dot = row_.kind != TensorIntrinsic::FmaF32;
    if (is_dot) {
      const int64_t group = row_.kind == TensorIntrinsic::DotU8S8 ? 4 : 2;
      return tile_.loops.size() == 2 && is_const(tile_.loops[0]->extent, kColumns) &&
             is_const(tile_.loops[1]->extent, group);
    }
    return tile_.loops.size() <= 2 &&
           std::ranges::all_of(
               tile_.loops,
               [](const For* loop) { return as_const_int(loop->extent).has_value(); }) &&
           *as_const_int(tile_.loops.back()->extent) % kColumns == 0;
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::Unsupported, "TENSORIZE", "cannot tensorize {} with {}: {}",
         tile_.loops[0]->var->name, row_.spelling,
         fmt::format(format, std::forward<Args>(args)...));
  }

  /// The product of the loops, or a refusal that says what is stored instead.
  MultiplyAdd matched(DType sum) const {
    const std::optional<MultiplyAdd> product = multiply_add_of(store_);
    const Load* const x = product ? load_in(product->x) : nullptr;
    const Load* const y = product ? load_in(product->y) : nullptr;
    if (x == nullptr || y == nullptr) {
      refuse("it is c = c + a*b, but what {} is stored is no sum with a product of two elements",
             store_.buffer->name);
    }
    if (x->buffer == store_.buffer || y->buffer == store_.buffer) {
      refuse("the product reads {}, which the sum is stored to", store_.buffer->name);
    }
    check_types(*x, *y, sum);
    return *product;
  }

  void check_types(const Load& x, const Load& y, DType sum) const {
    const DType a = x.buffer->type;
    const DType b = y.buffer->type;
    bool fits = store_.buffer->type == sum;
    std::string_view wanted;
    switch (row_.kind) {
      case TensorIntrinsic::DotU8S8:
        fits = fits && std::minmax(a, b) == std::minmax(DType::UInt8, DType::Int8);
        wanted = "uint8 by int8 into int32";
        break;
      case TensorIntrinsic::DotBf16:
        fits = fits && a == DType::BFloat16 && b == DType::BFloat16;
        wanted = "bfloat16 by bfloat16 into float32";
        break;
      case TensorIntrinsic::FmaF32:
        fits = fits && a == DType::Float32 && b == DType::Float32;
        wanted = "float32 by float32 into float32";
        break;
    }
    if (fits) return;
    refuse("it multiplies {}, but here it is {} by {} into {}", wanted, a, b, store_.buffer->type);
  }

  /// Refuses unless neighbours along the loop lie one of the wanted distances apart.
  void require(const BufferRef& buffer, const std::vector<Expr>& indices, const VarRef& var,
               std::vector<int64_t> wanted) const {
    const std::optional<int64_t> found = distance(buffer, indices, var);
    if (found && std::ranges::find(wanted, *found) != wanted.end()) return;
    std::string either = fmt::format("{}", wanted[0]);
    for (size_t i = 1; i < wanted.size(); ++i)
      either += fmt::format(" or {}", wanted[i]);
    refuse("neighbours of {} along {} must lie {} element{} apart, but they lie {} apart",
           buffer->name, var->name, either, wanted.back() == 1 ? "" : "s",
           found ? fmt::format("{}", *found) : "no constant number");
  }

  /// for j { for k { c[j] = c[j] + a[k]*b[j, k] } }, k of `group`.
  Stmt dot(int group, DType sum) const {
    const For& columns = *tile_.loops[0];
    const VarRef& j = columns.var;
    const VarRef& k = tile_.loops[1]->var;
    MultiplyAdd product = matched(sum);
    const auto uses_column = [&](const Expr& factor) { return uses_var(factor, j); };
    if (uses_column(product.x)) std::swap(product.x, product.y);
    const Load& a = *load_in(product.x);
    const Load& b = *load_in(product.y);
    require(store_.buffer, store_.indices, j, {1});
    require(store_.buffer, store_.indices, k, {0});
    require(a.buffer, a.indices, j, {0});
    require(a.buffer, a.indices, k, {1});
    require(b.buffer, b.indices, j, {group});
    require(b.buffer, b.indices, k, {1});
    const Expr value = Dot::make(product.place, row_along(a, k, group), row_along(b, k, group));
    return For::make(j, columns.extent, LoopKind::Vectorized,
                     Store::make(store_.buffer, store_.indices, value));
  }

  /// Written out, the rows and columns are what accumulate_in_registers looks for.
  Stmt fma() const {
    const VarRef& j = tile_.loops.back()->var;
    const MultiplyAdd product = matched(DType::Float32);
    require(store_.buffer, store_.indices, j, {1});
    for (const Expr& factor : {product.x, product.y})
      require(load_in(factor)->buffer, load_in(factor)->indices, j, {0, 1});
    Stmt body = tile_.store;
    for (size_t i = tile_.loops.size(); i-- > 0;) {
      const For& loop = *tile_.loops[i];
      const bool is_row = i + 1 < tile_.loops.size();
      body = For::make(loop.var, loop.extent, is_row ? LoopKind::Unrolled : LoopKind::Vectorized,
                       body);
    }
    return body;
  }

  const language::IntrinsicRow& row_;
  const Tile& tile_;
  const Store& store_;
};

class TensorizeLoops : public Mutator {
 public:
  TensorizeLoops(Kernel& kernel, const PassContext& context)
      : kernel_(kernel), is_strided_(context.layout == Layout::Strided) {}

 private:
  using Mutator::visit;

  Stmt visit(const Tensorize& node) override {
    // Nothing is known of the distances of arguments then.
    if (is_strided_) return node.body;
    const std::string_view name = language::row_of(node.intrinsic).spelling;
    const std::optional<Tile> tile = tile_of(node.body);
    if (!tile) {
      const auto* loop = as<For>(node.body);
      fail(ErrorKind::Unsupported, "TENSORIZE",
           "cannot tensorize {} with {}: there is more in it than one sum",
           loop != nullptr ? loop->var->name : "a loop", name);
    }
    const MakeIntrinsic make(node.intrinsic, *tile);
    if (make.is_full()) return make();
    add_note(kernel_, fmt::format("tiles that the end of an axis cuts off are not {}, but run as "
                                  "the loops they are written as",
                                  name));
    return node.body;
  }

  Kernel& kernel_;
  const bool is_strided_;
};

}  // namespace

ir::Kernel tensorize(ir::Kernel kernel, const PassContext& context) {
  TensorizeLoops mutator(kernel, context);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
