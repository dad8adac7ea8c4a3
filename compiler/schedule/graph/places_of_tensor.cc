// Collects the reads of one tensor, and under what they stand.
//   C[i] = if_then_else(i > 0, A[i - 1], A[0])  ->  two places, in branches
#include "compiler/schedule/graph/places_of_tensor.h"

#include <algorithm>

#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::schedule {
namespace {

class CollectReads : public ir::Visitor {
 public:
  explicit CollectReads(TensorId tensor) : tensor_(tensor) {}
  PlacesOfTensor found;

 private:
  using Visitor::visit;

  void visit(const ir::TensorRead& read) override {
    if (TensorId{read.stage, read.output} == tensor_) {
      found.in_branch = found.in_branch || branches_ > 0;
      found.in_start = found.in_start || starts_ > 0;
      const bool is_known = std::ranges::any_of(
          found.reads, [&](const ir::Expr& other) { return ir::equal_trees(other, &read); });
      if (!is_known) found.reads.push_back(&read);
    }
    Visitor::visit(read);
  }
  void visit(const ir::Call& call) override {
    if (call.op != language::Operator::IfThenElse) return Visitor::visit(call);
    (*this)(call.args[0]);
    ++branches_;
    (*this)(call.args[1]);
    (*this)(call.args[2]);
    --branches_;
  }
  void visit(const ir::Reduce& reduce) override {
    branches_ += reduce.condition ? 1 : 0;
    for (const ir::Expr& source : reduce.sources)
      (*this)(source);
    if (reduce.condition) (*this)(reduce.condition);
    branches_ -= reduce.condition ? 1 : 0;
    ++starts_;
    for (const ir::Expr& start : reduce.init)
      (*this)(start);
    --starts_;
  }

  const TensorId tensor_;
  int branches_ = 0;
  int starts_ = 0;
};

}  // namespace

PlacesOfTensor places_of_tensor(const StageGraph& graph, StageId reader, TensorId tensor) {
  CollectReads walk(tensor);
  for (const ir::Expr& body : graph[reader].bodies)
    walk(body);
  return std::move(walk.found);
}

}  // namespace kiln::schedule
