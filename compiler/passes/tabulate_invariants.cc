// Computes once, for all elements of a row, what a loop over rows would compute for each of them.
//
//   for i in 0..m { for j in 0..n vectorize { Y[i, j] = X[i, j] / sqrt(V[j]) } }
//     ->
//   allocate Y.once: float32[n] {
//     for j in 0..n vectorize { Y.once[j] = sqrt(V[j]) }
//     for i in 0..m { for j in 0..n vectorize { Y[i, j] = X[i, j] / Y.once[j] } } }
//
// So normalising along the rows takes a division an element, and not a root as well. Only functions
// and divisions of floats, which take longer than the load that is left, in tables that stay in L1;
// of what no inner loop changes LLVM takes care itself. The bits are those of before.
//
// While indices are per dimension and loops are whole; before buffers get a place.
#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/invariant_tables.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Stores with what is in tables read from these.
class ReadTables : public Mutator {
 public:
  explicit ReadTables(const std::vector<TabulatedStore>& stores) : stores_(stores) {}

 private:
  using Mutator::visit;
  Stmt visit(const Store& store) override {
    const auto found = std::ranges::find(stores_, &store, &TabulatedStore::store);
    if (found == stores_.end()) return &store;
    current_ = &found->tables;
    const Expr value = (*this)(store.value);
    current_ = nullptr;
    return Store::make(store.buffer, store.indices, value, store.predicate);
  }
  Expr visit(const Binary& node) override {
    return read(&node, [&] { return Mutator::visit(node); });
  }
  Expr visit(const Call& node) override {
    return read(&node, [&] { return Mutator::visit(node); });
  }

  template <typename Otherwise>
  Expr read(const Expr& node, const Otherwise& otherwise) {
    if (current_ != nullptr) {
      const auto at = std::ranges::find(*current_, node, &InvariantTable::value);
      if (at != current_->end()) return Load::make(at->buffer, at->indices());
    }
    return otherwise();
  }

  const std::vector<TabulatedStore>& stores_;
  const std::vector<InvariantTable>* current_ = nullptr;
};

/// The loop that fills a table.
Stmt filled(const InvariantTable& table) {
  Stmt body = Store::make(table.buffer, table.indices(), table.value);
  for (const Expr& guard : table.guards)
    body = If::make(guard, body, nullptr, true);
  for (auto loop = table.loops.rbegin(); loop != table.loops.rend(); ++loop) {
    const bool is_vector = (*loop)->loop_kind == LoopKind::Vectorized;
    const LoopKind kind = is_vector ? LoopKind::Vectorized : LoopKind::Serial;
    body = For::make((*loop)->var, (*loop)->extent, kind, body);
  }
  return fresh_copy(body);
}

class TabulateInvariants : public Mutator {
  using Mutator::visit;
  Stmt visit(const For& loop) override {
    const bool has_rows =
        loop.loop_kind == LoopKind::Serial || loop.loop_kind == LoopKind::Parallel;
    const std::vector<TabulatedStore> stores =
        has_rows ? find_invariant_tables(loop) : std::vector<TabulatedStore>();
    if (stores.empty()) return Mutator::visit(loop);
    const Stmt rows = For::make(loop.var, loop.extent, loop.loop_kind, loop.thread,
                                (*this)(ReadTables(stores)(loop.body)));
    std::vector<BufferRef> buffers;
    std::vector<Stmt> body;
    for (const TabulatedStore& each : stores) {
      for (const InvariantTable& table : each.tables) {
        if (std::ranges::find(buffers, table.buffer) != buffers.end()) continue;
        buffers.push_back(table.buffer);
        body.push_back(filled(table));
      }
    }
    body.push_back(rows);
    Stmt result = Block::make(std::move(body));
    for (const BufferRef& buffer : buffers)
      result = Allocate::make(buffer, result);
    return result;
  }
};

}  // namespace

Kernel tabulate_invariants(Kernel kernel, const PassContext&) {
  kernel.body = TabulateInvariants()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
