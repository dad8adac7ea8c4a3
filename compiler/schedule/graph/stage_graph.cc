// The definition as one list of stages, in this order: expressions by id become trees, reductions
// inside of larger expressions get stages, inits and bases that are written in place get copies
// where others use them, every stage gets its axes as loops, and scans find their cells.
#include "compiler/schedule/graph/stage_graph.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/schedule/graph/expressions.h"
#include "compiler/schedule/graph/hidden_reductions.h"
#include "compiler/schedule/graph/initial_steps.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scan_cells.h"
#include "compiler/schedule/graph/scatters.h"

namespace kiln::schedule {
namespace {

constexpr StageId kNoStage = ~StageId{0};

/// The records of stages, axes and sizes as the definition has them.
class Records {
 public:
  explicit Records(const language::Kernel& kernel)
      : definition_(kernel.definition),
        names_(kernel.names),
        graph_{.kernel = &kernel, .state = {kernel.definition, kernel.names}} {}

  StageGraph make() {
    add_variables();
    refuse_large_bodies();
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      Stage stage;
      stage.name = names_.stages[id];
      stage.origin = id;
      std::visit([&](const auto& node) { fill(stage, id, node); }, definition_.stages[id]);
      graph_.stages.push_back(std::move(stage));
    }
    return std::move(graph_);
  }

 private:
  void add_variables() {
    for (const std::string& name : names_.variables)
      graph_.sizes.push_back(ir::Var::make(name));
    std::vector<ir::VarRef> values;
    for (const std::string& name : names_.axes)
      values.push_back(ir::Var::make(name));
    expressions_ = expressions_of(definition_, graph_.sizes, values, names_.reducers);
    for (size_t i = 0; i < definition_.axes.size(); ++i) {
      const language::Axis& axis = definition_.axes[i];
      graph_.axes.push_back(Axis{.name = names_.axes[i],
                                 .kind = axis.kind,
                                 .stage = kNoStage,
                                 .value = values[i],
                                 .minimum = expressions_[axis.minimum],
                                 .extent = expressions_[axis.extent]});
    }
  }

  /// Expressions share their parts; passes walk trees. So a body must be small as a tree.
  void refuse_large_bodies() const {
    constexpr int64_t kLimit = 100'000;
    std::vector<int64_t> size;
    for (const language::Expression& expression : definition_.expressions) {
      int64_t nodes = 1;
      const auto add = [&](language::ExprId id) { nodes = std::min(kLimit + 1, nodes + size[id]); };
      if (const auto* operation = std::get_if<language::Operation>(&expression.node)) {
        for (const language::ExprId id : operation->operands)
          add(id);
      } else if (const auto* cast = std::get_if<language::CastTo>(&expression.node)) {
        add(cast->operand);
      } else if (const auto* read = std::get_if<language::Read>(&expression.node)) {
        for (const language::ExprId id : read->indices)
          add(id);
      } else if (const auto* reduction = std::get_if<language::Reduction>(&expression.node)) {
        for (const language::ExprId id : language::parts_of(*reduction))
          add(id);
        if (!reduction->combiner) {
          for (const language::ExprId id : definition_.reducers[reduction->reducer].results)
            add(id);
        }
      }
      size.push_back(nodes);
    }
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      for (const language::ExprId body : language::bodies_of(definition_.stages[id])) {
        if (size[body] <= kLimit) continue;
        at_stage(graph_, id, [&] {
          fail(ErrorKind::ResourceExhausted, "EXPRESSION_SIZE",
               "the expression of {} has more than {} nodes when its shared parts are written out; "
               "make stages of the shared parts",
               names_.stages[id], kLimit);
        });
      }
    }
  }

  void add_outputs(Stage& stage, StageId id, size_t count) {
    for (uint32_t output = 0; output < count; ++output) {
      stage.types.push_back(definition_.type_of({id, output}));
      std::vector<ir::Expr> shape;
      for (const language::ExprId extent : definition_.shape_of({id, output})) {
        shape.push_back(expressions_[extent]);
      }
      stage.shapes.push_back(std::move(shape));
    }
  }

  void fill(Stage& stage, StageId id, const language::Placeholder&) {
    stage.kind = Stage::Kind::Placeholder;
    add_outputs(stage, id, 1);
  }

  void fill(Stage& stage, StageId id, const language::Compute& compute) {
    stage.kind = Stage::Kind::Compute;
    add_outputs(stage, id, compute.bodies.size());
    stage.data.assign(compute.axes.begin(), compute.axes.end());
    for (const AxisId axis : stage.data)
      graph_.axes[axis].stage = id;
    for (const language::ExprId body : compute.bodies)
      stage.bodies.push_back(expressions_[body]);
  }

  void fill(Stage& stage, StageId id, const language::Scan& scan) {
    stage.kind = Stage::Kind::Scan;
    add_outputs(stage, id, scan.update.size());
    stage.as_scan.time = scan.axis;
    stage.time_dimension = static_cast<int>(scan.dimension);
    stage.as_scan.is_reverse = scan.reverse;
    graph_.axes[scan.axis].stage = id;
    stage.as_scan.init = scan.init;
    stage.as_scan.update = scan.update;
    stage.as_scan.state = scan.state;
    stage.loops.leaves = {stage.as_scan.time};
  }

  void fill(Stage& stage, StageId id, const language::Scatter& scatter) {
    stage.kind = Stage::Kind::Scatter;
    add_outputs(stage, id, 1);
    stage.data.assign(scatter.axes.begin(), scatter.axes.end());
    for (const AxisId axis : stage.data)
      graph_.axes[axis].stage = id;
    stage.as_scatter.base = scatter.base;
    for (const language::ExprId index : scatter.indices)
      stage.as_scatter.indices.push_back(expressions_[index]);
    stage.bodies = {expressions_[scatter.update]};
    stage.as_scatter.combiner = scatter.combiner;
  }

  const language::Definition& definition_;
  const language::SourceMap& names_;
  StageGraph graph_;
  std::vector<ir::Expr> expressions_;
};

void append_in_order(StageGraph& graph, StageId id, std::vector<bool>& done) {
  if (done[id]) return;
  done[id] = true;
  for (const TensorId input : direct_inputs(graph, graph[id]))
    append_in_order(graph, input.stage, done);
  graph.order.push_back(id);
}

void mark_live(StageGraph& graph, StageId id) {
  if (graph.stages[id].is_live) return;
  graph.stages[id].is_live = true;
  for (const TensorId input : direct_inputs(graph, graph[id]))
    mark_live(graph, input.stage);
}

}  // namespace

std::string StageGraph::tensor_name(TensorId tensor) const {
  const Stage& stage = stages[tensor.stage];
  if (stage.types.size() == 1) return stage.name;
  if (tensor.stage < kernel->definition.stages.size()) {
    return kernel->names.tensor_name(kernel->definition, tensor);
  }
  return fmt::format("{}.v{}", stage.name, tensor.output);
}

bool StageGraph::is_parameter(TensorId tensor) const {
  const std::vector<TensorId>& parameters = kernel->definition.parameters;
  return std::find(parameters.begin(), parameters.end(), tensor) != parameters.end();
}

bool StageGraph::has_parameter(StageId id) const {
  return std::ranges::any_of(kernel->definition.parameters,
                             [&](TensorId parameter) { return parameter.stage == id; });
}

std::optional<ScanOutput> StageGraph::scan_output_of(TensorId tensor) const {
  for (StageId id = 0; id < stages.size(); ++id) {
    const Stage& scan = stages[id];
    for (uint32_t output = 0; output < scan.as_scan.update.size(); ++output) {
      if (scan.as_scan.update[output] == tensor || scan.as_scan.state[output] == tensor ||
          scan.as_scan.init[output] == tensor) {
        return ScanOutput{id, output};
      }
    }
  }
  return std::nullopt;
}

StageGraph build_stage_graph(const language::Kernel& kernel) {
  StageGraph graph = Records(kernel).make();
  drop_initial_steps(graph);
  take_out_reductions(graph);
  copy_shared_scan_inputs(graph);
  place_scatter_bases(graph);
  for (Stage& stage : graph.stages) {
    if (!runs_over_axes(stage)) continue;
    stage.loops.start_with(stage.data);
    stage.loops.leaves.insert(stage.loops.leaves.end(), stage.reduce.begin(), stage.reduce.end());
  }
  std::vector<bool> done(graph.stages.size(), false);
  for (StageId id = 0; id < graph.stages.size(); ++id)
    append_in_order(graph, id, done);
  for (const TensorId parameter : kernel.definition.parameters)
    mark_live(graph, parameter.stage);
  find_scan_cells(graph);
  for (StageId id = 0; id < kernel.definition.stages.size(); ++id)
    graph.stage_of_id.push_back(id);
  for (AxisId id = 0; id < kernel.definition.axes.size(); ++id)
    graph.axis_of_id.push_back(id);
  return graph;
}

StageId root_of(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  if (stage.role.is_init) return stage.role.init_of;
  return stage.attach.kind == Attach::Kind::At ? root_of(graph, stage.attach.stage) : id;
}

bool is_part_of(const StageGraph& graph, StageId part, StageId stage) {
  return part == stage || (part < graph.stages.size() && graph[part].part_of == stage);
}

std::vector<StageId> parts_of(const StageGraph& graph, StageId stage) {
  std::vector<StageId> parts = {stage};
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    if (graph[id].part_of == stage) parts.push_back(id);
  }
  return parts;
}

std::vector<StageId> attached_at(const StageGraph& graph, StageId consumer, AxisId axis) {
  std::vector<StageId> here;
  for (const StageId id : graph.order) {
    const Stage& stage = graph[id];
    if (stage.is_live && stage.attach.kind == Attach::Kind::At && stage.attach.stage == consumer &&
        stage.attach.axis == axis) {
      here.push_back(id);
    }
  }
  return here;
}

SourceLocation location_of(const StageGraph& graph, StageId stage) {
  const language::SourceMap& names = graph.kernel->names;
  const StageId origin = stage < graph.stages.size() ? graph[stage].origin : stage;
  if (origin >= names.stage_lines.size()) return {};
  const auto [file, line] = names.stage_lines[origin];
  return {file < names.files.size() ? names.files[file] : std::string(), static_cast<int>(line)};
}

SourceLocation location_of(const StageGraph& graph, const language::Step& step) {
  const std::vector<std::string>& files = graph.kernel->names.files;
  return {step.file < files.size() ? files[step.file] : std::string(), static_cast<int>(step.line)};
}

}  // namespace kiln::schedule
