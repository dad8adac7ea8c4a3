#pragma once

#include <functional>
#include <vector>

#include "compiler/analysis/accesses.h"
#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// The statements of a body in order. Memory lasts from where it begins to the end of them all.
class StatementList {
 public:
  explicit StatementList(const ir::Stmt& body);

  size_t size() const { return items_.size(); }
  /// Null where memory begins.
  const ir::Stmt& operator[](size_t place) const { return items_[place].statement; }

  /// What the statement at a place touches.
  const std::vector<analysis::Access>& accesses(size_t place) const {
    return items_[place].accesses;
  }

  /// Whether any statement became another one.
  bool mutate(const std::function<ir::Stmt(const ir::Stmt&)>& mutate);

  /// Whether two statements could stand side by side: what is between them does not need the first
  /// one, or is not needed by the second one, nor by what is not.
  bool may_meet(size_t first, size_t second) const;
  /// One statement in the place of these two, with what is between them before it or behind.
  void join(size_t first, size_t second, ir::Stmt joined);

  ir::Stmt statement() const;

 private:
  struct Item {
    ir::Stmt statement;    // or
    ir::BufferRef memory;  // of this and all later ones
    std::vector<analysis::Access> accesses = {};
  };

  void add(const ir::Stmt& stmt);
  static Item item_of(ir::Stmt statement);
  /// Whether both may touch an element, and one of them stores to it.
  static bool depend(const Item& a, const Item& b);
  /// Whether what is between goes behind the first one, in order.
  std::vector<bool> needs_first(size_t first, size_t second) const;

  std::vector<Item> items_;
};

}  // namespace kiln::passes
