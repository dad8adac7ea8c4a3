// A thread of a GPU computes one by one, but moves up to 16 bytes at once (CUDA C++ programming
// guide, device memory accesses): a loop over neighbours first loads what it reads side by side,
// computes in registers, and stores side by side.
//
//   for v in 0..4 vectorize { B[t*4 + v] = exp(A[t*4 + v]) }
//     ->
//   allocate A.vector: float32[4] scope(local)  allocate B.vector: float32[4] scope(local)
//   A.vector[ramp(0, 1, 4)] = A[ramp(t*4, 1, 4)]
//   for v in 0..4 unroll { B.vector[v] = exp(A.vector[v]) }
//   B[ramp(t*4, 1, 4)] = B.vector[ramp(0, 1, 4)]
//
// Memory that a kernel is given is aligned to more than a vector; that an index is, its factors
// say. A guard is the same for all neighbours where its bound is a multiple of them, too, and so is
// a quotient (lane_quotients.h).
#include "compiler/passes/vector_accesses.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/divisor.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/lane_quotients.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kMostRegisters = 64;  // that a loop over registers alone is written out for

/// Of a divisor, which is 0 for what is always 0.
bool is_multiple(int64_t divisor, int64_t of) { return divisor % of == 0; }

/// What a loop loads and stores, and whether that is all that it does.
class Accesses : public Visitor {
 public:
  std::vector<const Load*> loads;
  std::vector<const Load*> surely;  // those that happen for each neighbour
  std::vector<const Store*> stores;
  bool is_plain = true;  // without loops, guards and lanes

 private:
  using Visitor::visit;
  // Neighbours may differ in whether they load, and one that does not may be outside.
  void visit(const Call& call) override {
    const bool is_choice = call.op == Operator::Select || call.op == Operator::IfThenElse;
    choices_ += is_choice ? 1 : 0;
    Visitor::visit(call);
    choices_ -= is_choice ? 1 : 0;
  }
  void visit(const Binary& node) override {
    const bool is_choice = node.op == Operator::And || node.op == Operator::Or;
    choices_ += is_choice ? 1 : 0;
    Visitor::visit(node);
    choices_ -= is_choice ? 1 : 0;
  }
  void visit(const Load& load) override {
    if (load.predicate || load.type.lanes != 1) is_plain = false;
    loads.push_back(&load);
    if (choices_ == 0) surely.push_back(&load);
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    if (store.predicate || store.value->type.lanes != 1) is_plain = false;
    stores.push_back(&store);
    Visitor::visit(store);
  }
  void visit(const For&) override { is_plain = false; }
  void visit(const If&) override { is_plain = false; }
  void visit(const Allocate&) override { is_plain = false; }
  void visit(const Check&) override { is_plain = false; }
  void visit(const Barrier&) override { is_plain = false; }
  void visit(const Atomic&) override { is_plain = false; }
  void visit(const Shuffle&) override { is_plain = false; }
  void visit(const Background&) override { is_plain = false; }
  void visit(const Await&) override { is_plain = false; }

  int choices_ = 0;  // around
};

/// One place of a loop that moves as a vector, and what its elements are called meanwhile.
struct Vector {
  BufferRef buffer;
  Expr base;
  BufferRef elements;
  bool is_loaded = false;
  bool is_stored = false;
};

class VectorAccesses {
 public:
  VectorAccesses(const For& loop, int64_t lanes, bool is_background)
      : loop_(loop), lanes_(lanes), is_background_(is_background) {}

  /// Neighbours from `start` on. Null where nothing is a vector.
  Stmt neighbours(const Stmt& body, const Expr& start) {
    start_ = start;
    Stmt inner = body;
    std::vector<std::pair<Expr, bool>> guards;  // and whether they are likely
    while (const If* guard = as<If>(inner)) {
      const std::optional<Expr> same = same_for_all(guard->condition);
      if (!same || guard->else_body) return nullptr;
      guards.emplace_back(*same, guard->likely);
      inner = guard->then_body;
    }
    Stmt moved = moved_as_vectors(inner);
    for (auto guard = guards.rbegin(); moved && guard != guards.rend(); ++guard)
      moved = If::make(guard->first, moved, nullptr, guard->second);
    return moved;
  }

 private:
  Expr at_start(const Expr& expr) const { return substitute(expr, {{loop_.var, start_}}); }

  /// The guard as it is for each of the neighbours, where that is the same.
  std::optional<Expr> same_for_all(const Expr& condition) const {
    if (!uses_var(condition, loop_.var)) return condition;
    const Binary* node = as<Binary>(condition);
    if (node == nullptr) return std::nullopt;
    if (node->op == Operator::And) {
      const std::optional<Expr> a = same_for_all(node->a);
      const std::optional<Expr> b = same_for_all(node->b);
      return a && b ? std::optional(logical_and(*a, *b)) : std::nullopt;
    }
    const bool is_less = node->op == Operator::Less &&
                         analysis::stride_of(node->a, loop_.var) == 1 &&
                         !uses_var(node->b, loop_.var);
    if (!is_less || !is_multiple(analysis::divisor_of(at_start(node->a)), lanes_) ||
        !is_multiple(analysis::divisor_of(node->b), lanes_)) {
      return std::nullopt;
    }
    return at_start(condition);
  }

  Stmt moved_as_vectors(const Stmt& body) {
    Accesses found;
    found(body);
    if (!found.is_plain || found.stores.empty()) return nullptr;
    // What is read elsewhere than it is written, or perhaps, must be seen in the loop's order.
    for (const Store* store : found.stores) {
      for (const Load* load : found.loads) {
        const bool is_sure = std::ranges::find(found.surely, load) != found.surely.end();
        const bool is_same = is_sure && equal_trees(load->indices[0], store->indices[0]);
        if (load->buffer == store->buffer && !is_same) return nullptr;
      }
      for (const Store* other : found.stores) {
        if (other != store && other->buffer == store->buffer) return nullptr;
      }
    }
    for (const Load* load : found.surely) {
      if (Vector* vector = vector_at(load->buffer, load->indices[0])) vector->is_loaded = true;
    }
    for (const Store* store : found.stores) {
      if (Vector* vector = vector_at(store->buffer, store->indices[0])) vector->is_stored = true;
    }
    return vectors_.empty() ? nullptr : written(body);
  }

  /// The vector of a place; null where its elements move one by one.
  Vector* vector_at(const BufferRef& buffer, const Expr& index) {
    const bool is_memory = buffer->scope == Scope::Global || buffer->scope == Scope::Shared;
    const int64_t bytes = size_of(buffer->type) * lanes_;
    if (!is_memory || bytes < 4 || bytes > kVectorBytes || buffer->type == DType::Bool)
      return nullptr;
    if (analysis::stride_of(index, loop_.var) != 1) return nullptr;
    const Expr base = at_start(index);
    if (!is_multiple(analysis::divisor_of(base), lanes_)) return nullptr;
    const auto known = std::ranges::find_if(vectors_, [&](const Vector& vector) {
      return vector.buffer == buffer && equal_trees(vector.base, base);
    });
    if (known != vectors_.end()) return &*known;
    BufferRef elements =
        Buffer::make(buffer->name + ".vector", buffer->type, {ir::index(lanes_)}, Scope::Local);
    return &vectors_.emplace_back(Vector{buffer, base, std::move(elements)});
  }

  /// Elements of vectors are those of the local buffers, counted from 0; all else counts from the
  /// first neighbour.
  class InRegisters : public Mutator {
   public:
    InRegisters(const VarRef& var, const Expr& start, const VarRef& neighbour,
                const std::vector<Vector>& vectors)
        : var_(var), start_(start), neighbour_(neighbour), vectors_(vectors) {}

   private:
    using Mutator::visit;
    Expr visit(const Var& node) override {
      return VarRef(&node) == var_ ? start_ + neighbour_ : Mutator::visit(node);
    }
    Element element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
      if (analysis::stride_of(indices[0], var_) == 1) {
        const Expr base = substitute(indices[0], {{var_, start_}});
        for (const Vector& vector : vectors_) {
          if (vector.buffer == buffer && equal_trees(vector.base, base))
            return {vector.elements, {neighbour_}};
        }
      }
      return Mutator::element(buffer, indices);
    }

    const VarRef& var_;
    const Expr& start_;
    const VarRef& neighbour_;
    const std::vector<Vector>& vectors_;
  };

  /// In the background a copy from one vector to another, which needs no registers.
  Stmt copied(const Stmt& body) {
    const Store* store = as<Store>(body);
    const Load* load = store != nullptr ? as<Load>(store->value) : nullptr;
    if (!is_background_ || load == nullptr || vectors_.size() != 2 ||
        store->buffer->type != load->buffer->type)
      return nullptr;
    return Store::make(store->buffer, {ramp(at_start(store->indices[0]))},
                       Load::make(load->buffer, {ramp(at_start(load->indices[0]))}));
  }

  Stmt written(const Stmt& body) {
    if (Stmt copy = copied(body)) return copy;
    const Expr elements = ramp(ir::index(0));
    std::vector<Stmt> parts;
    for (const Vector& vector : vectors_) {
      if (!vector.is_loaded) continue;
      parts.push_back(
          Store::make(vector.elements, {elements}, Load::make(vector.buffer, {ramp(vector.base)})));
    }
    const VarRef neighbour = Var::make(loop_.var->name);
    parts.push_back(For::make(neighbour, ir::index(lanes_), LoopKind::Unrolled,
                              InRegisters(loop_.var, start_, neighbour, vectors_)(body)));
    for (const Vector& vector : vectors_) {
      if (!vector.is_stored) continue;
      parts.push_back(
          Store::make(vector.buffer, {ramp(vector.base)}, Load::make(vector.elements, {elements})));
    }
    Stmt result = Block::make(std::move(parts));
    for (const Vector& vector : vectors_)
      result = Allocate::make(vector.elements, result);
    return result;
  }

  Expr ramp(const Expr& base) const {
    return Ramp::make(base, ir::index(1), static_cast<int>(lanes_));
  }

  const For& loop_;
  const int64_t lanes_;
  const bool is_background_;
  Expr start_;
  std::vector<Vector> vectors_;
};

/// The widest element of memory that another iteration of the loop has another of.
class WidestElement : public Visitor {
 public:
  explicit WidestElement(const VarRef& var) : var_(var) {}
  int64_t bytes = 0;

 private:
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    const bool is_memory = buffer->scope == Scope::Global || buffer->scope == Scope::Shared;
    const bool moves =
        std::ranges::any_of(indices, [&](const Expr& index) { return uses_var(index, var_); });
    if (is_memory && moves) bytes = std::max<int64_t>(bytes, size_of(buffer->type));
    Visitor::element(buffer, indices);
  }
  const VarRef& var_;
};

Stmt moved(const For& loop, const Stmt& body, int64_t extent, bool is_background) {
  WidestElement widest(loop.var);
  widest(body);
  if (widest.bytes == 0) {
    // Registers have nothing to move, and no index.
    if (extent > kMostRegisters) return nullptr;
    return For::make(loop.var, loop.extent, LoopKind::Unrolled, body);
  }
  const int64_t lanes = std::gcd(extent, kVectorBytes / widest.bytes);
  if (lanes < 2) return nullptr;
  if (lanes == extent) {
    return VectorAccesses(loop, lanes, is_background).neighbours(body, index(0));
  }
  const VarRef part = Var::make(loop.var->name + ".part");
  const Stmt inner =
      VectorAccesses(loop, lanes, is_background).neighbours(body, Expr(part) * lanes);
  if (!inner) return nullptr;
  return For::make(part, index(extent / lanes), LoopKind::Unrolled, inner);
}

bool is_zero(const Expr& expr) {
  const IntImm* whole = as<IntImm>(expr);
  const FloatImm* real = as<FloatImm>(expr);
  return (whole != nullptr && whole->value == 0) ||
         (real != nullptr && real->value == 0 && !std::signbit(real->value));
}

/// A copy in the background that all neighbours have zeros in the place of, or none has: lanes of a
/// load that are not there are 0. Null where it is none.
Stmt copied_or_zero(const Stmt& copy, const Expr& is_there, const Expr& otherwise) {
  const Store* store = as<Store>(copy);
  const Load* load = store != nullptr ? as<Load>(store->value) : nullptr;
  if (load == nullptr || !is_zero(otherwise)) return nullptr;
  return Store::make(
      store->buffer, store->indices,
      Load::make(load->buffer, load->indices, Broadcast::make(is_there, load->type.lanes)));
}

/// Of a choice that all neighbours make alike, as of what padding is around.
Stmt moved_by_choice(const For& loop, const Stmt& body, int64_t extent, bool is_background) {
  const Store* store = as<Store>(body);
  const Call* choice = store != nullptr ? as<Call>(store->value) : nullptr;
  if (choice == nullptr || choice->op != Operator::IfThenElse || store->predicate ||
      uses_var(choice->args[0], loop.var))
    return nullptr;
  WidestElement widest(loop.var);
  widest(body);
  if (widest.bytes == 0) return nullptr;
  std::vector<Stmt> ways;
  bool is_vector = false;
  for (const Expr& value : {choice->args[1], choice->args[2]}) {
    const Stmt one = Store::make(store->buffer, store->indices, value);
    const Stmt vector = moved(loop, one, extent, is_background);
    is_vector = is_vector || vector;
    ways.push_back(vector ? vector : For::make(loop.var, loop.extent, LoopKind::Unrolled, one));
  }
  if (is_background) {
    if (Stmt copy = copied_or_zero(ways[0], choice->args[0], choice->args[2])) return copy;
  }
  return is_vector ? If::make(choice->args[0], ways[0], ways[1]) : nullptr;
}

}  // namespace

Stmt with_vector_accesses(const For& loop, const Stmt& body, int64_t extent, bool is_background) {
  const Stmt apart = out_of_quotients(body, loop.var, extent);
  if (Stmt by_choice = moved_by_choice(loop, apart, extent, is_background)) return by_choice;
  return moved(loop, apart, extent, is_background);
}

}  // namespace kiln::passes
