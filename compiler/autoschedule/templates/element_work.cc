// Counts what an element of a stage does: operations, as vectors have them, and reads.
//
//   Y[i] = exp(X[i] - M[0])  ->  a subtraction, the instructions of exp, reads of X[i] and M[0]
#include "compiler/autoschedule/templates/element_work.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

using language::Operator;

// A division by a constant: a multiplication of the higher half, and shifts.
constexpr double kDivisionByConstant = 4;

class Counter : public ir::Visitor {
 public:
  Counter(const StageGraph& graph, const Machine& machine, int64_t lanes)
      : graph_(graph), machine_(machine), lanes_(lanes) {}

  ElementWork work;

 private:
  using Visitor::visit;

  void operation(Operator op, const ir::Type& type, double count = 1) {
    // Halves are computed in float32.
    const bool is_float_type = is_float(type.element);
    const int64_t bytes = size_of(type.element);
    const Busy each =
        busy_cycles({.op = op,
                     .lanes = lanes_,
                     .element_bytes = is_float_type ? std::max<int64_t>(bytes, 4) : bytes,
                     .is_float = is_float_type,
                     .count = count},
                    machine_);
    work.busy.multiply_adds += each.multiply_adds;
    work.busy.all += each.all;
    work.busy.chain += each.chain;
  }

  static bool is_product(const ir::Expr& expr) {
    const auto* binary = ir::as<ir::Binary>(schedule::without_casts(expr));
    return binary != nullptr && binary->op == Operator::Mul;
  }

  void visit(const ir::Binary& binary) override {
    const bool adds = binary.op == Operator::Add || binary.op == Operator::Sub;
    const bool is_fused =
        adds && is_float(binary.type.element) && (is_product(binary.a) || is_product(binary.b));
    const bool is_whole = divides_whole(binary.op) && !is_float(binary.type.element);
    if (is_whole && ir::as_const_int(binary.b)) {
      operation(Operator::Mul, binary.type, kDivisionByConstant);
    } else if (!is_fused) {
      operation(binary.op, binary.a->type);
    }
    Visitor::visit(binary);
  }

  void visit(const ir::Call& call) override {
    operation(call.op, call.type);
    Visitor::visit(call);
  }

  void visit(const ir::Cast& cast) override {
    const bool is_wider = size_of(cast.type.element) > size_of(cast.value->type.element);
    operation(Operator::Add, is_wider ? cast.type : cast.value->type);
    Visitor::visit(cast);
  }

  void visit(const ir::Reduce& reduce) override {
    if (reduce.how.combiner) {
      const Operator op = language::row_of(*reduce.how.combiner).op;
      const bool is_fused = op == Operator::Add && is_product(reduce.sources[0]);
      if (!is_fused) operation(op, reduce.type);
    } else {
      for (const ir::Expr& result : reduce.how.reducer->results)
        (*this)(result);
    }
    for (const ir::Expr& source : reduce.sources)
      (*this)(source);
    if (reduce.condition) (*this)(reduce.condition);
  }

  void visit(const ir::TensorRead& read) override {
    for (const ir::Expr& index : read.indices) {
      if (!schedule::has_read(index)) continue;
      operation(Operator::Less, ir::kIndexType, 2);  // whether it is in bounds
      (*this)(index);
    }
    const bool is_kept = graph_[read.stage].part_of.has_value() ||
                         graph_.scan_output_of({read.stage, read.output}).has_value();
    const bool is_known = std::ranges::any_of(work.reads, [&](const ir::TensorRead* other) {
      return ir::equal_trees(ir::Expr(other), ir::Expr(&read));
    });
    if (!is_kept && !is_known) work.reads.push_back(&read);
  }

  const StageGraph& graph_;
  const Machine& machine_;
  const int64_t lanes_;
};

}  // namespace

ElementWork element_work(const StageGraph& graph, const std::vector<ir::Expr>& bodies,
                         const Machine& machine, int64_t lanes) {
  Counter counter(graph, machine, lanes);
  for (const ir::Expr& body : bodies)
    counter(body);
  return std::move(counter.work);
}

}  // namespace kiln::autoschedule
