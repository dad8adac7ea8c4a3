// Which values of a store do not change from one row of a loop to the next, and may be computed
// before it.
#include "compiler/passes/invariant_tables.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/dtype.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kTableBytes = 8 << 10;  // a quarter of the smallest L1
// Rows from which on a table is worth its own loop.
constexpr int64_t kRows = 4;

bool is_costly(const Expr& expr) {
  if (!is_float(expr->type.element)) return false;
  if (const auto* binary = as<Binary>(expr)) return binary->op == Operator::Div;
  const auto* call = as<Call>(expr);
  return call != nullptr && language::is_function(call->op);
}

/// A store inside of a loop over rows, with what stands between.
struct Place {
  const Store* store;
  std::vector<const For*> loops;
  std::vector<Expr> guards;
};

/// The stores of a statement, and what changes while it runs.
class FindPlaces : public Visitor {
 public:
  std::vector<Place> places;
  std::unordered_set<BufferRef> changing;
  std::unordered_set<VarRef> bound;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    bound.insert(loop.var);
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }
  void visit(const If& node) override {
    guarded(node.condition, node.then_body);
    if (node.else_body) guarded(logical_not(node.condition), node.else_body);
  }
  void visit(const Store& store) override {
    changing.insert(store.buffer);
    if (!is_fixed_) places.push_back({&store, loops_, guards_});
  }
  void visit(const Atomic& node) override { changing.insert(node.buffer); }
  void visit(const Allocate& allocate) override {
    changing.insert(allocate.buffer);
    Visitor::visit(allocate);
  }
  // Their loops say what an instruction does.
  void visit(const Tensorize& node) override { fixed(node.body); }
  void visit(const MultiplyTiles& node) override { fixed(node.body); }

  void guarded(const Expr& condition, const Stmt& body) {
    guards_.push_back(condition);
    (*this)(body);
    guards_.pop_back();
  }
  void fixed(const Stmt& body) {
    const bool before = std::exchange(is_fixed_, true);
    (*this)(body);
    is_fixed_ = before;
  }

  std::vector<const For*> loops_;
  std::vector<Expr> guards_;
  bool is_fixed_ = false;
};

/// What an expression loads.
class FindBuffers : public Visitor {
 public:
  std::unordered_set<BufferRef> buffers;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    buffers.insert(load.buffer);
    Visitor::visit(load);
  }
};

bool uses_any(const Expr& expr, const std::unordered_set<VarRef>& vars) {
  return std::ranges::any_of(vars, [&](const VarRef& var) { return uses_var(expr, var); });
}

/// The values of one store that the rows of a loop share.
class FindTables {
 public:
  FindTables(const For& rows, const FindPlaces& inside, const Place& place)
      : rows_(rows), inside_(inside), place_(place) {}

  std::vector<InvariantTable> found;

  void look_in(const Expr& expr) {
    if (is_costly(expr)) {
      if (std::optional<InvariantTable> table = table_of(expr))
        return found.push_back(*std::move(table));
    }
    const auto* call = as<Call>(expr);
    // Of a choice only one side is computed; the other may have no meaning.
    if (call != nullptr && call->op == Operator::IfThenElse) return look_in(call->args[0]);
    if (as<Load>(expr) != nullptr) return;
    for (const Expr& operand : operands_of(expr))
      look_in(operand);
  }

 private:
  std::optional<InvariantTable> table_of(const Expr& value) const {
    if (uses_var(value, rows_.var)) return std::nullopt;
    FindBuffers loads;
    loads(value);
    const auto changes = [&](const BufferRef& buffer) { return inside_.changing.contains(buffer); };
    if (std::ranges::any_of(loads.buffers, changes)) return std::nullopt;
    InvariantTable table{.value = value, .loops = {}, .guards = {}, .buffer = nullptr};
    std::unordered_set<VarRef> others = inside_.bound;
    int64_t rows = as_const_int(rows_.extent).value_or(kRows);
    int64_t elements = 1;
    std::vector<Expr> shape;
    for (const For* loop : place_.loops) {
      const std::optional<int64_t> extent = as_const_int(loop->extent);
      if (!uses_var(value, loop->var)) {
        rows = std::min(rows * extent.value_or(kRows), kRows);
        continue;
      }
      if (!extent || *extent > kTableBytes) return std::nullopt;
      elements = std::min(elements * *extent, kTableBytes);
      others.erase(loop->var);
      table.loops.push_back(loop);
      shape.push_back(loop->extent);
    }
    const DType type = value->type.element;
    if (rows < kRows || table.loops.empty() || elements * size_of(type) > kTableBytes ||
        uses_any(value, others))
      return std::nullopt;
    others.insert(rows_.var);
    for (const Expr& guard : place_.guards) {
      if (uses_any(guard, others)) return std::nullopt;
      table.guards.push_back(guard);
    }
    table.buffer =
        Buffer::make(place_.store->buffer->name + ".once", type, std::move(shape), Scope::Global);
    return table;
  }

  const For& rows_;
  const FindPlaces& inside_;
  const Place& place_;
};

}  // namespace

std::vector<Expr> InvariantTable::indices() const {
  std::vector<Expr> all;
  for (const For* loop : loops)
    all.push_back(loop->var);
  return all;
}

std::vector<TabulatedStore> find_invariant_tables(const For& rows) {
  FindPlaces inside;
  inside(rows.body);
  std::vector<TabulatedStore> stores;
  const auto buffer_of = [&](const InvariantTable& table) {
    for (const TabulatedStore& other : stores)
      for (const InvariantTable& known : other.tables)
        if (known.loops == table.loops && equal_trees(known.value, table.value))
          return known.buffer;
    return table.buffer;
  };
  for (const Place& place : inside.places) {
    FindTables tables(rows, inside, place);
    tables.look_in(place.store->value);
    if (tables.found.empty()) continue;
    stores.push_back({place.store, {}});
    for (InvariantTable& table : tables.found) {
      table.buffer = buffer_of(table);
      stores.back().tables.push_back(std::move(table));
    }
  }
  return stores;
}

}  // namespace kiln::passes
