// Multiplies bytes of one kind as bytes of two, which is what CPUs have instructions for.
//
//   allocate C.acc: int32[2, 16] .. { load C.acc
//     for q in 0..l { for i in 0..2 unroll { for j in 0..16 vectorize {
//       C.acc[i, j] = dot(C.acc[i, j], A[i, q, ramp(0, 1, 4)], B[q, j, ramp(0, 1, 4)]) } } }
//     store C.acc }
//     ->
//   the same with uint8(A[..]) ^ broadcast(128, 4) in the place of A[..], beside it
//   for j in 0..16 vectorize { C.acc.moved[j] = dot(C.acc.moved[j], 128, B[q, j, ..]) }
//   and before C.acc is stored, C.acc.moved taken off each row
//
// Only where rows of an accumulator tile share their columns.
//
// CPUs multiply unsigned bytes by signed ones. Where both factors are of one kind, `a` becomes the
// other by turning its sign bit over, which moves it by 128 (-128 where it was unsigned): then 128
// times the sum of the `b`s is taken off. Code generation can do that for each sum; here, once for
// all rows of an accumulator tile, which share the columns. oneDNN calls this compensation.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/short_integers.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int kBytes = 4;  // that an instruction multiplies for one sum
constexpr int64_t kSignBit = 0x80;

/// The update of a tile: loops over the reduction, in them those over its elements.
struct Update {
  std::vector<const For*> reduction;
  std::vector<const For*> rows;
  const For* columns = nullptr;
  const Store* store = nullptr;
  const Dot* sum = nullptr;
};

bool uses(const std::vector<Expr>& indices, const VarRef& var) {
  return std::ranges::any_of(indices, [&](const Expr& index) { return uses_var(index, var); });
}

/// Nothing where it is another statement, or products that the CPU has an instruction for as they
/// are, or where rows do not share their columns.
std::optional<Update> update_of(const Stmt& stmt, const BufferRef& tile) {
  std::vector<const For*> loops;
  const StmtNode* at = stmt.get();
  while (const auto* loop = as<For>(at)) {
    loops.push_back(loop);
    at = loop->body.get();
  }
  const auto* store = as<Store>(at);
  const auto* sum = store != nullptr ? as<Dot>(store->value) : nullptr;
  if (sum == nullptr || !(store->buffer == tile) || store->predicate || loops.size() < 2) {
    return std::nullopt;
  }
  const DType type = sum->a->type.element;
  if (!is_byte(type) || sum->b->type.element != type || sum->group() != kBytes) return std::nullopt;
  Update update{.store = store, .sum = sum};
  update.columns = loops.back();
  loops.pop_back();
  if (update.columns->loop_kind != LoopKind::Vectorized || uses_var(sum->a, update.columns->var)) {
    return std::nullopt;
  }
  for (const For* loop : loops) {
    const bool is_row = uses(store->indices, loop->var);
    if ((!is_row && !update.rows.empty()) || (is_row && uses_var(sum->b, loop->var))) {
      return std::nullopt;
    }
    (is_row ? update.rows : update.reduction).push_back(loop);
  }
  return update.rows.empty() || update.reduction.empty() ? std::nullopt : std::optional(update);
}

Stmt in_loops(const std::vector<const For*>& loops, Stmt body) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    body = For::make((*loop)->var, (*loop)->extent, (*loop)->loop_kind, (*loop)->thread, body);
  return body;
}

class TurnSignsOnce : public Mutator {
  using Mutator::visit;

  /// A tile as accumulate_in_registers leaves it: loaded, updated, stored.
  Stmt visit(const Allocate& allocate) override {
    const auto* block = as<Block>(allocate.body);
    if (block == nullptr || block->body.size() != 3) return Mutator::visit(allocate);
    const std::optional<Update> update = update_of(block->body[1], allocate.buffer);
    if (!update) return Mutator::visit(allocate);
    const BufferRef moved = Buffer::make(allocate.buffer->name + ".moved", DType::Int32,
                                         {update->columns->extent}, Scope::Local);
    return Allocate::make(
        allocate.buffer,
        Block::make(
            {block->body[0],
             Allocate::make(moved, Block::make({start_of(*update, moved), turned(*update, moved),
                                                taken_off(*update, moved)})),
             block->body[2]}));
  }

  /// A loop over the columns with a variable of its own.
  template <typename Body>
  static Stmt over_columns(const Update& update, Body&& body) {
    const VarRef column = Var::make(update.columns->var->name);
    return For::make(column, update.columns->extent, LoopKind::Vectorized, body(column));
  }

  static Stmt start_of(const Update& update, const BufferRef& moved) {
    return over_columns(update, [&](const VarRef& j) {
      return Store::make(moved, {j}, IntImm::make(Type{DType::Int32}, 0));
    });
  }

  /// The update with factors of the other kind, and beside it the sums of what they are moved by.
  static Stmt turned(const Update& update, const BufferRef& moved) {
    const Dot& sum = *update.sum;
    const bool was_signed = sum.a->type.element == DType::Int8;
    const DType other = was_signed ? DType::UInt8 : DType::Int8;
    const auto sign_bits = [&](DType type) {
      const int64_t value = type == DType::Int8 ? -kSignBit : kSignBit;
      return Broadcast::make(IntImm::make(Type{type}, value), kBytes);
    };
    const Expr a =
        Binary::make(Operator::BitXor, Cast::make({other, kBytes}, sum.a), sign_bits(other));
    const Stmt rows =
        in_loops(update.rows,
                 For::make(update.columns->var, update.columns->extent, update.columns->loop_kind,
                           Store::make(update.store->buffer, update.store->indices,
                                       Dot::make(sum.start, a, sum.b))));
    const Stmt columns = over_columns(update, [&](const VarRef& j) {
      const Expr b = substitute(sum.b, {{update.columns->var, j}});
      return Store::make(moved, {j}, Dot::make(Load::make(moved, {j}), sign_bits(other), b));
    });
    return in_loops(update.reduction, Block::make({columns, rows}));
  }

  static Stmt taken_off(const Update& update, const BufferRef& moved) {
    const Store& store = *update.store;
    const Expr rest = Binary::make(Operator::Sub, Load::make(store.buffer, store.indices),
                                   Load::make(moved, {update.columns->var}));
    const Stmt columns =
        For::make(update.columns->var, update.columns->extent, LoopKind::Vectorized,
                  Store::make(store.buffer, store.indices, rest));
    return fresh_copy(in_loops(update.rows, columns));
  }
};

}  // namespace

ir::Kernel turn_signs_once(ir::Kernel kernel, const PassContext&) {
  kernel.body = TurnSignsOnce()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
