#pragma once

#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// Elements side by side that a loop goes through.
struct Row {
  ir::BufferRef buffer;
  ir::Expr first;
  int64_t lanes;
};

/// What a loop reads and stores in vectors, and how much it computes.
class ReadStreams : public ir::Visitor {
 public:
  explicit ReadStreams(const ir::For& loop);

  std::vector<Row> rows;              // it loads
  std::vector<Row> stores;            // it stores
  std::vector<const ir::For*> loops;  // right inside of it
  int64_t work = 0;                   // of one iteration, in elements; a function is many

  /// The rows that are stored to buffers that it loads too.
  std::vector<Row> stored_and_loaded() const;
  /// A function of each element: enough that other elements come meanwhile.
  static constexpr int64_t kFunction = 16;

 private:
  using Visitor::visit;
  void visit(const ir::For& loop) override;
  void visit(const ir::Load& load) override;
  void visit(const ir::Store& store) override;
  void visit(const ir::Binary& node) override;
  void visit(const ir::Call& node) override;
  int depth_ = 0;
};

}  // namespace kiln::passes
