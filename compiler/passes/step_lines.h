#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/mutator.h"

namespace kiln::passes {

/// The elements that a loop goes along, from `first` on up or down: a row, a column, or of another
/// dimension.
struct Line {
  ir::BufferRef buffer;
  std::vector<ir::Expr> indices;  // that of the dimension is none
  size_t dimension = 0;
  ir::Expr first;
  int64_t direction = 1;  // or -1

  bool is_row() const { return dimension + 1 == indices.size(); }
  /// The element of a step.
  std::vector<ir::Expr> at(const ir::Expr& step) const;
};

/// A line, where one index alone moves, by one from step to step.
std::optional<Line> line_of(const ir::BufferRef& buffer, const std::vector<ir::Expr>& indices,
                            const ir::VarRef& step);

bool is_same_element(const Line& a, const Line& b);

/// How many elements of a line of the result are stored at once.
int64_t per_vector(const Line& result);

/// What a step reads: its own result of the step before, and lines of other tensors.
class ReadLines : public ir::Visitor {
 public:
  ReadLines(const Line& result, ir::VarRef step) : result_(result), step_(std::move(step)) {}

  /// Whether a step reads the one before, and of the result nothing else.
  bool is_recurrence() const { return reads_last_ && !reads_more_; }
  std::vector<Line> lines;

 private:
  using ir::Visitor::visit;
  void visit(const ir::Load& load) override;
  void visit(const ir::Call& call) override;
  bool may_be_held(const Line& line) const;

  const Line& result_;
  const ir::VarRef step_;
  bool reads_last_ = false;
  bool reads_more_ = false;
};

}  // namespace kiln::passes
