// Finds a read under a condition that says no more than which of its indices are inside. The
// condition is negated into one about the indices by linear arithmetic: 1 <= y + r with the index
// y + r - 1 at place p is 0 <= p. What cannot be said so depends on the iteration, not on the
// element, and no copy of the elements would do. What is computed of an element says where it is by
// the element's own indices.
#include "compiler/schedule/steps/padded_read.h"

#include <algorithm>

#include "compiler/analysis/linear.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/computed_value.h"

namespace kiln::schedule {
namespace {

using analysis::Linear;
using analysis::Term;
using ir::Operator;

/// The read of the tensor that a branch is, but for casts.
const ir::TensorRead* read_of(const ir::Expr& branch, TensorId tensor) {
  const ir::Expr inner = without_casts(branch);
  const ir::TensorRead* read = ir::as<ir::TensorRead>(inner);
  const bool is_own = read != nullptr && TensorId{read->stage, read->output} == tensor;
  return is_own ? read : nullptr;
}

class CollectChoices : public ir::Visitor {
 public:
  explicit CollectChoices(TensorId tensor) : tensor_(tensor) {}
  std::vector<ir::Expr> found;  // no two of them equal

 private:
  using Visitor::visit;

  void visit(const ir::Call& call) override {
    Visitor::visit(call);
    const bool chooses = call.op == Operator::IfThenElse || call.op == Operator::Select;
    if (!chooses || (!read_of(call.args[1], tensor_) && !read_of(call.args[2], tensor_))) return;
    const auto is_same = [&](const ir::Expr& other) { return ir::equal_trees(other, &call); };
    if (std::ranges::none_of(found, is_same)) found.push_back(&call);
  }

  const TensorId tensor_;
};

/// Expressions over the axes of a stage in terms of the indices of one read.
class InIndices {
 public:
  InIndices(std::vector<ir::VarRef> axes, const std::vector<ir::Expr>& indices,
            const std::vector<ir::Expr>& places)
      : axes_(std::move(axes)) {
    for (size_t d = 0; d < indices.size(); ++d) {
      Linear index = atoms_.read(indices[d]);
      if (uses_axes(index)) indices_.push_back({index, atoms_.read(places[d])});
    }
  }

  bool uses_axes(const ir::Expr& expr) const {
    return std::ranges::any_of(axes_, [&](const ir::VarRef& a) { return ir::uses_var(expr, a); });
  }

  /// The condition, or null where it is about something else too.
  ir::Expr operator()(const ir::Expr& condition) {
    if (!uses_axes(condition)) return condition;
    if (const ir::Call* call = ir::as<ir::Call>(condition); call && call->op == Operator::Not) {
      const ir::Expr inner = (*this)(call->args[0]);
      return inner ? ir::logical_not(inner) : inner;
    }
    const ir::Binary* binary = ir::as<ir::Binary>(condition);
    if (binary == nullptr) return {};
    if (binary->op == Operator::And || binary->op == Operator::Or) {
      const ir::Expr a = (*this)(binary->a);
      const ir::Expr b = (*this)(binary->b);
      return a && b ? ir::Binary::make(binary->op, a, b) : ir::Expr();
    }
    const bool compares = condition->type == ir::kBoolType && binary->a->type == ir::kIndexType;
    if (!compares) return {};
    return comparison(*binary);
  }

 private:
  struct Index {
    Linear value;
    Linear place;
  };

  bool uses_axes(const Term& term) {
    for (int i = 0; i < term.product.degree(); ++i) {
      if (uses_axes(atoms_.expr(term.product[i]))) return true;
    }
    return false;
  }
  bool uses_axes(const Linear& sum) {
    return std::ranges::any_of(sum.terms, [&](const Term& term) { return uses_axes(term); });
  }

  /// The sum b - a with the indices for what they are made of, and what is negative in it moved to
  /// the other side.
  ir::Expr comparison(const ir::Binary& binary) {
    std::optional<Linear> sum = analysis::add(atoms_.read(binary.b), atoms_.read(binary.a), -1);
    for (const Index& index : indices_) {
      if (!sum) return {};
      const auto own = std::ranges::find_if(index.value.terms,
                                            [&](const Term& term) { return uses_axes(term); });
      const Term* term = sum->find(own->product);
      if (term == nullptr || term->coefficient % own->coefficient != 0) continue;
      const int64_t times = term->coefficient / own->coefficient;
      sum = analysis::add(*sum, index.value, -times);
      if (sum) sum = analysis::add(*sum, index.place, times);
    }
    if (!sum || uses_axes(*sum)) return {};
    Linear left;
    Linear right;
    for (const Term& term : sum->terms)
      (term.coefficient < 0 ? left : right).terms.push_back(term);
    (sum->constant < 0 ? left : right).constant = sum->constant;
    const std::optional<Linear> negated = analysis::scaled(left, -1);
    if (!negated) return {};
    return ir::Binary::make(binary.op, atoms_.write(*negated), atoms_.write(right));
  }

  const std::vector<ir::VarRef> axes_;
  analysis::Atoms atoms_;
  std::vector<Index> indices_;
};

class FindPaddedRead {
 public:
  FindPaddedRead(const StageGraph& graph, StageId reader, TensorId tensor)
      : graph_(graph),
        reader_(reader),
        tensor_(tensor),
        facts_(facts_of_sizes(graph)),
        name_(graph.tensor_name(tensor)) {}

  std::variant<PaddedRead, std::string> operator()() {
    if (graph_[reader_].role.cell_of >= 0 || graph_[tensor_.stage].role.cell_of >= 0) {
      return fmt::format("{} is computed step by step in a scan",
                         graph_[reader_].role.cell_of >= 0 ? graph_[reader_].name : name_);
    }
    std::vector<std::pair<StageId, ir::Expr>> found;
    for (const StageId part : parts_of(graph_, reader_)) {
      CollectChoices walk(tensor_);
      for (const ir::Expr& body : graph_[part].bodies)
        walk(body);
      for (const ir::Expr& choice : walk.found)
        found.emplace_back(part, choice);
    }
    if (found.empty()) return computed();
    if (found.size() > 1) {
      return fmt::format("{} reads {} under conditions at {} places", graph_[reader_].name, name_,
                         found.size());
    }
    return padded(found[0].first, found[0].second);
  }

 private:
  std::variant<PaddedRead, std::string> padded(StageId part, const ir::Expr& value) {
    const ir::Call& choice = *ir::as<ir::Call>(value);
    const bool reads_first = read_of(choice.args[1], tensor_) != nullptr;
    const ir::TensorRead& read = *read_of(choice.args[reads_first ? 1 : 2], tensor_);
    const ir::Expr& other = choice.args[reads_first ? 2 : 1];

    const auto at = place_of(part, read);
    if (const std::string* why = std::get_if<std::string>(&at)) return *why;
    Place place = std::get<Place>(at);
    PaddedRead& result = place.copy;
    const std::vector<ir::Expr>& places = place.places;
    result.value = value;
    std::vector<ir::VarRef> axes;
    for (const analysis::Facts::Range& range : ranges_of(part))
      axes.push_back(range.var);
    InIndices in_indices(axes, read.indices, places);
    if (in_indices.uses_axes(other) || has_read(other))
      return fmt::format("what stands for {} where the condition fails is no constant", name_);
    const ir::Expr condition = has_read(choice.args[0]) ? ir::Expr() : in_indices(choice.args[0]);
    if (!condition) return fmt::format("the condition is about more than the indices of {}", name_);

    const ir::Expr element =
        replace_reads(choice.args[reads_first ? 1 : 2], [&](const ir::TensorRead& other_read) {
          return ir::TensorRead::make(other_read.type, read.stage, read.output, places);
        });
    const ir::Expr reads_at = reads_first ? condition : ir::logical_not(condition);
    const bool is_asked = choice.op == Operator::IfThenElse;
    if (!is_inside(result, places, is_asked ? reads_at : ir::boolean(true))) {
      return fmt::format("it is not certain that the condition keeps all indices inside of {}",
                         name_);
    }
    const ir::Expr holds = analysis::simplify(condition, facts_in(result));
    result.body = ir::Call::make(Operator::IfThenElse,
                                 reads_first ? std::vector<ir::Expr>{holds, element, other}
                                             : std::vector<ir::Expr>{holds, other, element});
    return result;
  }

  /// What is computed of the tensor's elements, where no condition says which these are.
  std::variant<PaddedRead, std::string> computed() {
    for (const StageId part : parts_of(graph_, reader_)) {
      const std::optional<ComputedValue> found = find_computed_value(graph_, part, tensor_);
      if (!found) continue;
      const auto at = place_of(part, *found->element);
      if (const std::string* why = std::get_if<std::string>(&at)) return *why;
      Place place = std::get<Place>(at);
      PaddedRead& result = place.copy;
      const std::vector<ir::Expr>& places = place.places;
      if (!is_inside(result, places, ir::boolean(true)))
        return fmt::format("it is not certain that all indices are inside of {}", name_);
      result.value = found->value;
      ir::Substitution values;
      for (size_t d = 0; d < places.size(); ++d)
        if (const auto* axis = ir::as<ir::Var>(found->element->indices[d]))
          values[axis] = places[d];
      result.body = replace_reads(found->value, [&](const ir::TensorRead& read) -> ir::Expr {
        const bool is_own = TensorId{read.stage, read.output} == tensor_;
        return is_own ? ir::TensorRead::make(read.type, read.stage, read.output, places)
                      : ir::substitute(ir::Expr(&read), values);
      });
      return result;
    }
    return fmt::format(
        "{} neither reads {} under a condition, with a constant where it fails, nor "
        "computes anything of single elements of it",
        graph_[reader_].name, name_);
  }

  /// The copy's indices and shape, and where its elements are in the tensor.
  struct Place {
    PaddedRead copy;
    std::vector<ir::Expr> places;
  };
  std::variant<Place, std::string> place_of(StageId part, const ir::TensorRead& read) const {
    const std::vector<analysis::Facts::Range> ranges = ranges_of(part);
    for (const analysis::Facts::Range& range : ranges) {
      if (has_read(range.lower) || has_read(range.upper))
        return fmt::format("data says how often {} runs", range.var->name);
    }
    Place result;
    for (const ir::Expr& index : read.indices) {
      if (has_read(index))
        return fmt::format("which elements of {} it reads depends on data", name_);
      const analysis::Interval bounds = analysis::bounds_of(index, ranges, facts_);
      if (!bounds.min || !bounds.max) {
        return fmt::format("nothing is known of where the index {} of {} begins and ends", index,
                           name_);
      }
      const ir::VarRef axis = ir::Var::make(fmt::format("ax{}", result.places.size()));
      result.copy.axes.push_back(axis);
      result.copy.indices.push_back(analysis::simplify(index - bounds.min, facts_));
      result.copy.shape.push_back(count_of(bounds));
      result.places.push_back(analysis::simplify(ir::Expr(axis) + bounds.min, facts_));
    }
    return result;
  }

  std::vector<analysis::Facts::Range> ranges_of(StageId part) const {
    std::vector<analysis::Facts::Range> ranges;
    for (const std::vector<AxisId>* list : {&graph_[part].data, &graph_[part].reduce}) {
      for (const AxisId id : *list) {
        const Axis& axis = graph_.axes[id];
        ranges.push_back({axis.value, axis.minimum, axis.minimum + axis.extent});
      }
    }
    return ranges;
  }

  /// How many values there are; none where some loop has no iterations.
  ir::Expr count_of(const analysis::Interval& bounds) const {
    const ir::Expr count = analysis::simplify(bounds.max - bounds.min + 1, facts_);
    const bool is_count = analysis::can_prove(ir::less_equal(ir::index(0), count), facts_);
    return is_count ? count : ir::max(count, ir::index(0));
  }

  analysis::Facts facts_in(const PaddedRead& padded) const {
    analysis::Facts facts = facts_;
    for (size_t d = 0; d < padded.axes.size(); ++d)
      facts.push_range(padded.axes[d], ir::index(0), padded.shape[d]);
    return facts;
  }

  /// Whether all that the copy reads is seen to lie inside of the tensor.
  bool is_inside(const PaddedRead& padded, const std::vector<ir::Expr>& places,
                 const ir::Expr& condition) const {
    analysis::Facts facts = facts_in(padded);
    facts.push_condition(condition);
    const std::vector<ir::Expr>& shape = graph_[tensor_.stage].shapes[tensor_.output];
    for (size_t d = 0; d < places.size(); ++d) {
      if (!analysis::can_prove(ir::less_equal(ir::index(0), places[d]), facts)) return false;
      if (!analysis::can_prove(ir::less(places[d], shape[d]), facts)) return false;
    }
    return true;
  }

  const StageGraph& graph_;
  const StageId reader_;
  const TensorId tensor_;
  const analysis::Facts facts_;
  const std::string name_;
};

class ReplaceValue : public ir::Mutator {
 public:
  ReplaceValue(const PaddedRead& padded, StageId copy)
      : padded_(padded), read_(ir::TensorRead::make(padded.value->type, copy, 0, padded.indices)) {}

 private:
  using Mutator::visit;
  ir::Expr visit(const ir::Call& call) override { return replaced(call); }
  ir::Expr visit(const ir::Binary& binary) override { return replaced(binary); }
  ir::Expr visit(const ir::Cast& cast) override { return replaced(cast); }

  template <typename Node>
  ir::Expr replaced(const Node& node) {
    return ir::equal_trees(&node, padded_.value) ? read_ : Mutator::visit(node);
  }

  const PaddedRead& padded_;
  const ir::Expr read_;
};

}  // namespace

std::variant<PaddedRead, std::string> find_padded_read(const StageGraph& graph, StageId reader,
                                                       TensorId tensor) {
  return FindPaddedRead(graph, reader, tensor)();
}

void read_padded(StageGraph& graph, StageId reader, const PaddedRead& padded, StageId copy) {
  for (const StageId part : parts_of(graph, reader)) {
    for (ir::Expr& body : graph.stages[part].bodies)
      body = ReplaceValue(padded, copy)(body);
  }
}

}  // namespace kiln::schedule
