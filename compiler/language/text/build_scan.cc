// Scan blocks and scan calls as scans: what is written of initial steps becomes the init, what of
// the step at hand the update, and reads of the same name the state.
//
//   scan t { S[0, i] = X[0, i];  S[t, i] = S[t - 1, i] + X[t, i] }
//     ->  S.init[_, i], S.state, S.update[t, i] = S.state[t - 1, i] + X[t, i],  S = scan(..)
#include <algorithm>

#include "compiler/language/check/linear.h"
#include "compiler/language/describe.h"
#include "compiler/language/text/build_text.h"

namespace kiln::language::syntax {
namespace {

/// Makes the stage of a scan from its parts, whose first `names` are its results.
class ScanMaker {
 public:
  ScanMaker(StageBuilder& builder, Workspace& work) : builder_(builder), work_(work) {}

  void finish(Scan scan, const std::vector<std::string>& outputs, std::string axis, Place place) {
    const std::vector<ExprId> init = work_.definition.shape_of(scan.init[0]);
    const std::vector<ExprId> update = work_.definition.shape_of(scan.update[0]);
    if (init.empty() || update.empty()) {
      work_.source.refuse(place, "{} has no dimensions, but a scan needs one for time", outputs[0]);
    }
    const size_t time = scan.dimension;
    if (init.size() <= time || update.size() <= time) {
      work_.source.refuse(place, "{} has no dimension {}, which is to be time", outputs[0], time);
    }
    const auto steps = work_.constant(init[time]);
    const auto all = work_.constant(update[time]);
    const ExprId extent =
        steps && all
            ? work_.integer(*all - *steps)
            : work_.add(DType::Int64, Operation{Operator::Sub, {update[time], init[time]}});
    const std::string name = stage_name(outputs);
    if (axis.empty()) axis = outputs.size() == 1 ? name + ".idx" : outputs[0] + ".idx";
    scan.axis = work_.add_axis(AxisKind::Time, axis, init[time], extent);
    const StageId stage = work_.add_stage(std::move(scan), name, place);
    builder_.name_outputs(stage, outputs);
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      NamedTensor& tensor = work_.tensors.find(outputs[i])->second;
      tensor.id = TensorId{stage, i};
      check_declared(work_, outputs[i], place, "scan");
    }
  }

 private:
  StageBuilder& builder_;
  Workspace& work_;
};

/// A scan block: the initial steps, the states, what is computed at each step.
class ScanBlockBuilder {
 public:
  ScanBlockBuilder(StageBuilder& builder, Workspace& work, const Statement& block)
      : builder_(builder), work_(work), block_(block) {}

  void build() {
    collect_inits();
    if (states_.empty()) {
      work_.source.refuse(block_.place, "the scan has no initial step, as in {}",
                          block_.is_reverse ? "S[m - 1, i] = ..." : "S[0, i] = ...");
    }
    Scan scan = {};
    scan.dimension = static_cast<uint32_t>(inits_[states_[0]][0].second.dimension);
    scan.reverse = block_.is_reverse;
    for (const std::string& name : states_) {
      scan.init.push_back({init_of(name, inits_[name]), 0});
    }
    for (const std::string& name : states_) {
      const NamedTensor& tensor = work_.tensors.find(name)->second;
      const StageId state =
          work_.add_stage(Placeholder{tensor.type, tensor.shape}, name + ".state", block_.place);
      scan.state.push_back({state, 0});
      // From here on the name means the state: reads of earlier steps.
      work_.states.emplace(name, TensorId{state, 0});
    }
    work_.time_dimension = scan.dimension;
    for (const Statement& statement : block_.statements) {
      if (statement.kind == Statement::Kind::Declare) continue;
      if (statement.kind != Statement::Kind::Assign) {
        work_.source.refuse(statement.place, "expected an assignment such as S[t, i] = ...");
      }
      if (!initial_rows(statement.assignment)) step_of_scan(statement.assignment);
    }
    for (const std::string& name : states_) {
      const auto update = work_.updates.find(name);
      if (update == work_.updates.end()) {
        work_.source.refuse(inits_[name][0].first->place,
                            "{} has an initial step but no {}[{}] = ...", name, name,
                            left_text(name));
      }
      scan.update.push_back(update->second);
    }
    work_.states.clear();
    work_.updates.clear();
    ScanMaker(builder_, work_).finish(std::move(scan), states_, "", block_.place);
  }

 private:
  /// Which initial steps an index on the left means: `count` of them, in the order in which they
  /// run, from `first` on.
  struct Rows {
    size_t dimension = 0;
    int64_t first = 0;
    int64_t count = 1;
    std::string axis;  // all steps at once, this one of them
  };
  using Init = std::pair<const Assignment*, Rows>;

  const Node& at(int node) const { return work_.tree.nodes[static_cast<size_t>(node)]; }

  /// "t, ...", or "..., t, ..."
  std::string left_text(const std::string& name) const {
    const size_t rank = work_.tensors.find(name)->second.shape.size();
    const size_t time = work_.time_dimension;
    return fmt::format("{}{}{}", time > 0 ? "..., " : "", block_.time,
                       time + 1 < rank || rank == 0 || time == 0 ? ", ..." : "");
  }

  void collect_inits() {
    for (const Statement& statement : block_.statements) {
      if (statement.kind == Statement::Kind::Declare) builder_.build(statement);
      if (statement.kind != Statement::Kind::Assign) continue;
      const Assignment& assignment = statement.assignment;
      const std::optional<Rows> rows = initial_rows(assignment);
      if (!rows) continue;
      const std::string name(assignment.names[0]);
      builder_.target(name, assignment.place);
      if (assignment.names.size() > 1) {
        work_.source.refuse(assignment.place, "initial steps are given for one tensor at a time");
      }
      if (!inits_.contains(name)) states_.push_back(name);
      inits_[name].emplace_back(&assignment, *rows);
      const Init& first = inits_[states_[0]][0];
      if (first.second.dimension == rows->dimension) continue;
      work_.source.refuse(assignment.place,
                          "the initial steps of {} stand at dimension {}, but those of {} at "
                          "dimension {}",
                          name, rows->dimension, states_[0], first.second.dimension);
    }
  }

  /// The first index on the left that says which initial steps are meant, if one does.
  std::optional<Rows> initial_rows(const Assignment& assignment) const {
    for (size_t d = 0; d < assignment.indices.size(); ++d) {
      const int index = assignment.indices[d];
      std::optional<Rows> rows =
          block_.is_reverse ? last_rows(assignment, d, index) : first_rows(at(index));
      if (!rows) continue;
      rows->dimension = d;
      return rows;
    }
    return std::nullopt;
  }

  /// 0, 1, ... or t < 2.
  std::optional<Rows> first_rows(const Node& node) const {
    const auto number = [](const Node& literal) {
      const bool is_short = literal.kind == Node::Kind::Integer && literal.text.size() < 10;
      return is_short ? std::stoll(std::string(literal.text)) : -1;
    };
    if (node.kind == Node::Kind::Integer) return Rows{.first = number(node)};
    if (node.kind == Node::Kind::Apply && node.op == Operator::Less &&
        at(node.children[1]).kind == Node::Kind::Integer) {
      return Rows{.count = number(at(node.children[1])),
                  .axis = builder_.axis_name(node.children[0])};
    }
    return std::nullopt;
  }

  /// m - 1, m - 2, ... or m - 2 + j, where m is the extent.
  std::optional<Rows> last_rows(const Assignment& assignment, size_t d, int index) const {
    const Node& node = at(index);
    if (node.kind == Node::Kind::Name && !work_.sizes.contains(node.text)) return std::nullopt;
    const auto tensor = work_.tensors.find(assignment.names[0]);
    if (tensor == work_.tensors.end() || d >= tensor->second.shape.size()) return std::nullopt;
    Rows rows;
    int place = index;
    if (node.kind == Node::Kind::Apply && node.op == Operator::Add) {
      const Node& last = at(node.children[1]);
      if (last.kind == Node::Kind::Name && !work_.sizes.contains(last.text)) {
        rows.axis = std::string(last.text);
        place = node.children[0];
      }
    }
    // The same place may be written in many ways, so it is compared as a size.
    const ExprId first = ExpressionBuilder(work_, {}).index(place);
    const auto from_end =
        constant_difference(work_.definition, tensor->second.shape[d], first).value_or(-1);
    (rows.axis.empty() ? rows.first : rows.count) = from_end - (rows.axis.empty() ? 1 : 0);
    return rows;
  }

  void step_of_scan(const Assignment& assignment) {
    const std::string name(assignment.names[0]);
    const bool has_state =
        std::any_of(assignment.names.begin(), assignment.names.end(),
                    [this](std::string_view each) { return work_.states.contains(each); });
    if (!has_state) return builder_.assign(assignment);
    if (assignment.names.size() > 1) {
      work_.source.refuse(assignment.place,
                          "the state of a scan is computed by itself, not in a tuple");
    }
    if (work_.updates.contains(name)) {
      work_.source.refuse(assignment.place, "{} is computed twice", name);
    }
    check_place_of_time(assignment);
    const StageId stage = builder_.compute(assignment, {name + ".update"}, {});
    work_.updates.emplace(name, TensorId{stage, 0});
  }

  void check_place_of_time(const Assignment& assignment) const {
    for (size_t d = 0; d < assignment.indices.size(); ++d) {
      const Node& node = at(assignment.indices[d]);
      const bool is_time = node.kind == Node::Kind::Name && node.text == block_.time;
      if (!is_time || d == work_.time_dimension) continue;
      work_.source.refuse(node.place,
                          "{} is dimension {} of {}, but its initial steps stand at dimension {}",
                          block_.time, d, assignment.names[0], work_.time_dimension);
    }
  }

  StageId init_of(const std::string& name, const std::vector<Init>& rows) {
    const auto& [assignment, first] = rows[0];
    if (!first.axis.empty() && rows.size() > 1) {
      work_.source.refuse(rows[1].first->place, "the initial steps of {} are given twice", name);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const Rows& row = rows[i].second;
      if (row.axis.empty() ? row.first == static_cast<int64_t>(i) : row.count >= 1) continue;
      if (block_.is_reverse) {
        work_.source.refuse(rows[i].first->place,
                            "the initial steps of {} must be its last, from the end on: expected "
                            "the extent less {}",
                            name, i + 1);
      }
      work_.source.refuse(
          rows[i].first->place,
          "the initial steps of {} must be 0, 1, ... in order; expected {}[{}, ...]", name, name,
          i);
    }
    if (rows.size() == 1) {
      const InitialSteps steps{first.dimension, work_.integer(first.count),
                               first.axis.empty() ? "_" : first.axis};
      return builder_.compute(*assignment, {name + ".init"}, steps);
    }
    return init_of_rows(name, rows);
  }

  /// Several rows are one tensor: if_then_else(t == 0, row 0, if_then_else(t == 1, row 1, ...)).
  StageId init_of_rows(const std::string& name, const std::vector<Init>& rows) {
    const Assignment& first = *rows[0].first;
    const size_t time = rows[0].second.dimension;
    const ExprId count = work_.integer(static_cast<int64_t>(rows.size()));
    const LeftSide left = builder_.left_side(first, name + ".init", InitialSteps{time, count, "_"});
    work_.names.axes[left.axes[time]] = std::string(block_.time);
    const DType type = work_.tensors.find(name)->second.type;
    std::vector<ExprId> values;
    for (const auto& [row, which] : rows) {
      LeftSide own = left;
      for (size_t i = 0; i < row->indices.size() && row->indices.size() == own.names.size(); ++i) {
        if (i != time) own.names[i] = builder_.axis_name(row->indices[i]);
      }
      const std::vector<ExprId> value = builder_.bodies(*row, own);
      values.push_back(value[0]);
    }
    // The rows stand in the order of their indices.
    if (block_.is_reverse) std::reverse(values.begin(), values.end());
    ExprId body = values.back();
    for (size_t i = values.size() - 1; i-- > 0;) {
      const ExprId step = work_.add(DType::Int64, AxisUse{left.axes[time]});
      const ExprId row = work_.integer(static_cast<int64_t>(i));
      const ExprId is_row = work_.add(DType::Bool, Operation{Operator::Equal, {step, row}});
      body = work_.add(type, Operation{Operator::IfThenElse, {is_row, values[i], body}});
    }
    return work_.add_stage(Compute{left.axes, {body}}, name + ".init", first.place);
  }

  StageBuilder& builder_;
  Workspace& work_;
  const Statement& block_;
  std::vector<std::string> states_;
  std::map<std::string, std::vector<Init>> inits_;
};

}  // namespace

void check_declared(const Workspace& work, std::string_view name, Place place,
                    std::string_view what) {
  const Definition& definition = work.definition;
  const NamedTensor& tensor = work.tensors.find(name)->second;
  const std::vector<ExprId> shape = definition.shape_of(*tensor.id);
  const DType type = definition.type_of(*tensor.id);
  const bool same =
      std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end(),
                 [&](ExprId a, ExprId b) { return constant_difference(definition, a, b) == 0; });
  if (same && type == tensor.type) return;
  work.source.refuse(place, "{} is declared {} {}, but the {} makes it {} {}", name, tensor.type,
                     shape_text(definition, work.names, tensor.shape), what, type,
                     shape_text(definition, work.names, shape));
}

void build_scan_block(StageBuilder& builder, Workspace& work, const Statement& block) {
  ScanBlockBuilder(builder, work, block).build();
}

void build_scan_call(StageBuilder& builder, Workspace& work, const ScanCall& call) {
  Scan scan = {};
  scan.dimension = call.dimension;
  scan.reverse = call.is_reverse;
  std::vector<TensorId>* lists[] = {&scan.init, &scan.update, &scan.state};
  for (size_t i = 0; i < 3; ++i) {
    for (const std::string_view name : call.lists[i]) {
      const auto found = work.tensors.find(name);
      if (found == work.tensors.end() || !found->second.id) {
        work.source.refuse(call.place, "unknown tensor {} in the scan", name);
      }
      lists[i]->push_back(*found->second.id);
    }
  }
  for (const std::string_view name : call.names) {
    builder.target(name, call.place);
  }
  if (scan.init.size() != call.names.size() || scan.update.size() != call.names.size() ||
      scan.state.size() != call.names.size()) {
    work.source.refuse(call.place,
                       "the scan has {} results, {} init, {} update and {} state; "
                       "their numbers must be the same",
                       call.names.size(), scan.init.size(), scan.update.size(), scan.state.size());
  }
  ScanMaker(builder, work)
      .finish(std::move(scan), {call.names.begin(), call.names.end()}, std::string(call.axis),
              call.place);
}

}  // namespace kiln::language::syntax
