// Recognises what a tensor core computes, in loops that say the same for one thread: which elements
// a lane of mma.sync has the sums of (PTX ISA, "Matrix Fragments for mma.m16n8k16", "..m16n8k32"),
// its rows and columns as loops, threadIdx.y and threadIdx.x. The loops stay what the kernel means;
// passes and the interpreter know nothing of matrices.
//
// Fragments of the factors are loaded by ldmatrix: each lane gives the address of one row of 16
// bytes, and gets those that the product wants of it. It turns pairs of bytes, of which a lane has
// both then: they are neighbours along the side, so its rows or columns are.
#include "compiler/analysis/matrix_product.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/divisor.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/ir/mutator.h"

namespace kiln::analysis {
namespace {

using namespace ir;

constexpr int64_t kPair = 2;   // rows of a lane, and columns
constexpr int64_t kMost = 16;  // tiles along a side, whose fragments are registers

/// The loops down to the one store, the outermost first; nothing where there is something else.
struct Nest {
  std::vector<const For*> loops;
  const Store* store = nullptr;
};
std::optional<Nest> nest_of(const For& outer) {
  Nest nest;
  const StmtNode* at = &outer;
  while (const For* loop = as<For>(at)) {
    const bool is_plain = loop->loop_kind == LoopKind::Serial && as_const_int(loop->extent);
    if (!is_plain) return std::nullopt;
    nest.loops.push_back(loop);
    at = loop->body.get();
  }
  nest.store = as<Store>(at);
  if (nest.store == nullptr || nest.store->predicate || nest.store->value->type.lanes != 1)
    return std::nullopt;
  return nest;
}

/// A factor, in the type of its sums.
const Load* factor_in(const Expr& expr, DType sums) {
  const Cast* cast = as<Cast>(expr);
  const Call* call = as<Call>(expr);
  const bool is_tensor_float = call != nullptr && call->op == Operator::Tf32;
  const Load* load = cast != nullptr   ? as<Load>(cast->value)
                     : is_tensor_float ? as<Load>(call->args[0])
                                       : nullptr;
  if (load == nullptr || load->predicate || expr->type != Type{sums, 1}) return nullptr;
  const bool fits = load->buffer->scope == Scope::Shared && load->indices.size() == 1;
  return fits ? load : nullptr;
}

/// c = c + a*b
struct Factors {
  const Load* a = nullptr;
  const Load* b = nullptr;
};
std::optional<Factors> factors_of(const Store& store) {
  const Binary* sum = as<Binary>(store.value);
  if (sum == nullptr || sum->op != Operator::Add) return std::nullopt;
  const Load* place = as<Load>(sum->a);
  const Binary* product = as<Binary>(sum->b);
  const bool is_sum = place != nullptr && !place->predicate && place->buffer == store.buffer &&
                      equal_trees(place->indices[0], store.indices[0]) && product != nullptr &&
                      product->op == Operator::Mul;
  if (!is_sum) return std::nullopt;
  const DType sums = store.buffer->type;
  const Factors found{factor_in(product->a, sums), factor_in(product->b, sums)};
  if (found.a == nullptr || found.b == nullptr) return std::nullopt;
  return found;
}

bool is_multiple(int64_t value, int64_t of) { return value % of == 0; }

/// One index by the loops of the nest and the lanes; nothing where it is not linear in them.
class Strides {
 public:
  explicit Strides(Expr index) : index_(std::move(index)) {}
  std::optional<int64_t> operator[](const VarRef& var) const { return stride_of(index_, var); }
  Expr without(const std::vector<VarRef>& vars) const {
    Substitution zero;
    for (const VarRef& var : vars)
      zero[var] = index(0);
    return simplify(substitute(index_, zero));
  }

 private:
  const Expr index_;
};

/// Offsets of all tiles along some loops: of the first loop slowest.
std::vector<int64_t> offsets(const std::vector<const For*>& loops, const Strides& strides) {
  std::vector<int64_t> all = {0};
  for (const For* loop : loops) {
    std::vector<int64_t> next;
    for (const int64_t so_far : all) {
      for (int64_t i = 0; i < *as_const_int(loop->extent); ++i)
        next.push_back(so_far + i * *strides[loop->var]);
    }
    all = std::move(next);
  }
  return all;
}

class Matcher {
 public:
  Matcher(const Nest& nest, const Factors& factors, VarRef x, VarRef y)
      : nest_(nest), factors_(factors), x_(std::move(x)), y_(std::move(y)) {
    inner_ = {x_, y_};
    for (const For* loop : nest.loops)
      inner_.push_back(loop->var);
  }

  std::optional<MatrixProduct> match() {
    if (is_linear(factors_.b->indices[0]) && is_linear(factors_.a->indices[0]) &&
        *Strides(factors_.b->indices[0])[y_] != 0)
      std::swap(factors_.a, factors_.b);
    const Strides a(factors_.a->indices[0]);
    const Strides b(factors_.b->indices[0]);
    const Strides sums(nest_.store->indices[0]);
    if (!is_linear(factors_.a->indices[0]) || !is_linear(factors_.b->indices[0]) ||
        !is_linear(nest_.store->indices[0]) || !sort_loops(a, b, sums))
      return std::nullopt;
    const auto rows = factor_of(*factors_.a, a, y_, neighbours_of(a, 1), row_tiles_);
    const auto columns = factor_of(*factors_.b, b, x_, neighbours_of(b, kPair), column_tiles_);
    if (!rows || !columns || !are_pairs(*columns)) return std::nullopt;
    MatrixProduct product{.rows = *rows,
                          .columns = *columns,
                          .sums = nest_.store->buffer,
                          .row_places = offsets(row_tiles_, sums),
                          .column_places = offsets(column_tiles_, sums),
                          .lower = *sums[lower_->var],
                          .neighbour = *sums[neighbour_->var]};
    const std::optional<int64_t> first = as_const_int(sums.without(inner_));
    if (!first || product.row_places.size() > kMost || product.column_places.size() > kMost)
      return std::nullopt;
    for (int64_t& place : product.row_places)
      place += *first;
    return product;
  }

 private:
  bool is_linear(const Expr& index) const {
    const Strides strides(index);
    return std::ranges::all_of(inner_, [&](const VarRef& var) { return strides[var].has_value(); });
  }

  /// Elements of a lane that lie side by side: `plain` ones, or each of them twice where lanes take
  /// pairs of turned bytes apart.
  int64_t neighbours_of(const Strides& strides, int64_t plain) const {
    const bool are_turned =
        size_of(factors_.a->buffer->type) == 1 && *strides[nest_.loops[0]->var] != 1;
    return are_turned ? 2 * plain : plain;
  }

  /// Which loops are the two rows and the two columns of a lane, and which go over tiles.
  bool sort_loops(const Strides& a, const Strides& b, const Strides& sums) {
    const VarRef& k = nest_.loops[0]->var;
    const bool fits = *a[x_] == 0 && *a[y_] != 0 && *b[y_] == 0 && *b[x_] != 0 && *sums[x_] == 0 &&
                      *sums[y_] == 0 && *sums[k] == 0 && *a[k] != 0 && *b[k] != 0;
    if (!fits) return false;
    const int64_t to_lower = neighbours_of(a, 1) == 1 ? kMatrixRowsAtOnce * *a[y_] : *a[y_] / kPair;
    for (size_t i = 1; i < nest_.loops.size(); ++i) {
      const For* loop = nest_.loops[i];
      const int64_t of_a = *a[loop->var];
      const int64_t of_b = *b[loop->var];
      if ((of_a == 0) == (of_b == 0)) return false;
      const bool is_two = is_const(loop->extent, 2);
      if (of_a != 0 && is_two && lower_ == nullptr && of_a == to_lower) {
        lower_ = loop;
      } else if (of_b != 0 && is_two && neighbour_ == nullptr && of_b * kPair == *b[x_]) {
        neighbour_ = loop;
      } else {
        (of_a != 0 ? row_tiles_ : column_tiles_).push_back(loop);
      }
    }
    return lower_ != nullptr && neighbour_ != nullptr;
  }

  /// `lane` is the thread along the side, who has `own` neighbours there.
  std::optional<MatrixFactor> factor_of(const Load& load, const Strides& strides,
                                        const VarRef& lane, int64_t own,
                                        const std::vector<const For*>& tiles) const {
    const int64_t along_sum = *strides[nest_.loops[0]->var];
    const int64_t along_lanes = *strides[lane];
    if (!is_multiple(along_lanes, own)) return std::nullopt;
    const int64_t along_side = along_lanes / own;
    MatrixFactor factor{.buffer = load.buffer,
                        .first = strides.without(inner_),
                        .is_transposed = along_sum != 1,
                        .tiles = offsets(tiles, strides)};
    factor.row = factor.is_transposed ? along_sum : along_side;
    const int64_t elements = kMatrixRowBytes / size_of(load.buffer->type);
    // Rows are read at once: they lie side by side and begin at multiples of 16 bytes.
    const bool is_dense = (factor.is_transposed ? along_side : along_sum) == 1;
    const bool is_aligned =
        is_multiple(factor.row, elements) && is_multiple(divisor_of(factor.first), elements);
    // The second column of a pair of bytes is loaded with the first.
    const size_t own_rows = factor.has_turned_bytes() && own > kPair ? 2 : 1;
    for (size_t i = 0; i < factor.tiles.size(); i += own_rows)
      if (!is_multiple(factor.tiles[i], elements)) return std::nullopt;
    return is_dense && is_aligned ? std::optional(factor) : std::nullopt;
  }

  /// Tiles two by two are equally far apart, so that the lanes that load the second one of a pair
  /// find it without asking which. Of turned bytes they are neighbours.
  static bool are_pairs(const MatrixFactor& columns) {
    const std::vector<int64_t>& tiles = columns.tiles;
    if (!is_multiple(static_cast<int64_t>(tiles.size()), 2)) return false;
    const int64_t apart = columns.has_turned_bytes() ? 1 : tiles[1] - tiles[0];
    for (size_t i = 0; i < tiles.size(); i += 2) {
      if (tiles[i + 1] - tiles[i] != apart) return false;
    }
    return true;
  }

  const Nest& nest_;
  Factors factors_;
  const VarRef x_;
  const VarRef y_;
  std::vector<VarRef> inner_;  // lanes and loops
  const For* lower_ = nullptr;
  const For* neighbour_ = nullptr;
  std::vector<const For*> row_tiles_;
  std::vector<const For*> column_tiles_;
};

/// The variable of a thread axis with this extent; null where it has another.
VarRef lane_axis(const std::vector<const For*>& axes, ThreadAxis axis, int64_t extent) {
  for (const For* loop : axes) {
    if (loop->thread == axis) return is_const(loop->extent, extent) ? loop->var : VarRef();
  }
  return nullptr;
}

}  // namespace

std::optional<MatrixProduct> find_matrix_product(const For& loop,
                                                 const std::vector<const For*>& axes) {
  const VarRef x = lane_axis(axes, ThreadAxis::ThreadX, 4);
  const VarRef y = lane_axis(axes, ThreadAxis::ThreadY, 8);
  const std::optional<Nest> nest = nest_of(loop);
  if (!x || !y || !nest || nest->store->buffer->scope != Scope::Local) return std::nullopt;
  const std::optional<Factors> factors = factors_of(*nest->store);
  if (!factors) return std::nullopt;
  const DType a = factors->a->buffer->type;
  const DType b = factors->b->buffer->type;
  // Else they would have no cast.
  const bool are_tensor_floats = a == DType::Float32 && b == DType::Float32;
  const auto unit = are_tensor_floats ? tensor_float_unit() : matrix_unit(a, b);
  const bool fits =
      unit && unit->sums == nest->store->buffer->type && is_const(loop.extent, unit->steps);
  return fits ? Matcher(*nest, *factors, x, y).match() : std::nullopt;
}

}  // namespace kiln::analysis
