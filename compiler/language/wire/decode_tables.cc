// Decodes axes, stages, reducers and arguments: ids in range, counts within limits, tensors of
// earlier stages only. What expressions mean is not known yet.
#include "compiler/language/wire/decode_parts.h"

namespace kiln::language {
namespace {

class TableDecoder {
 public:
  TableDecoder(const v1::Definition& wire, Checked& checked)
      : wire_(wire), checked_(checked), definition_(checked.kernel.definition) {}

  void decode() {
    for (const v1::Variable& variable : wire_.variables()) {
      definition_.variables.push_back({variable.nonnegative()});
    }
    for (int i = 0; i < wire_.axes_size(); ++i) {
      decode_axis(static_cast<AxisId>(i), wire_.axes(i));
    }
    for (int i = 0; i < wire_.stages_size(); ++i) {
      const auto id = static_cast<StageId>(i);
      at_stage(checked_, id,
               [&] { definition_.stages.push_back(decode_stage(id, wire_.stages(i))); });
    }
    for (int i = 0; i < wire_.reducers_size(); ++i) {
      definition_.reducers.push_back(decode_reducer(
          checked_.kernel.names.reducers[static_cast<size_t>(i)].name, wire_.reducers(i)));
    }
    check_limit("the kernel", "arguments", wire_.parameters_size(), checked_.limits.stages);
    for (const v1::TensorId& parameter : wire_.parameters()) {
      definition_.parameters.push_back(
          tensor(parameter, static_cast<StageId>(definition_.stages.size()), "the argument list"));
    }
  }

 private:
  /// Kind and ids; what the bounds are is looked at when expressions are known.
  void decode_axis(AxisId id, const v1::Axis& axis) {
    if (axis.kind() < v1::AXIS_KIND_DATA || axis.kind() > v1::AXIS_KIND_TIME) {
      malformed("axis {} has the unknown kind {}", checked_.axis(id),
                static_cast<int>(axis.kind()));
    }
    for (const uint32_t bound : {axis.minimum(), axis.extent()}) {
      check_expression(bound, fmt::format("axis {}", checked_.axis(id)));
    }
    definition_.axes.push_back({static_cast<AxisKind>(axis.kind()), axis.minimum(), axis.extent()});
  }

  Stage decode_stage(StageId id, const v1::Stage& stage) {
    switch (stage.kind_case()) {
      case v1::Stage::kPlaceholder: return decode_placeholder(id, stage.placeholder());
      case v1::Stage::kCompute: return decode_compute(id, stage.compute());
      case v1::Stage::kScan: return decode_scan(id, stage.scan());
      case v1::Stage::kScatter: return decode_scatter(id, stage.scatter());
      case v1::Stage::KIND_NOT_SET: break;
    }
    malformed("stage {} is neither a placeholder nor a compute, a scan or a scatter",
              checked_.stage(id));
  }

  /// As many identities and results as values; types of both are checked with the expressions.
  Reducer decode_reducer(const std::string& name, const v1::Reducer& wire) {
    check_limit(name, "values", wire.types_size(), checked_.limits.outputs);
    if (wire.types().empty()) {
      fail(ErrorKind::InvalidArgument, "REDUCER", "reducer {} combines no values", name);
    }
    if (wire.identities_size() != wire.types_size() || wire.results_size() != wire.types_size()) {
      fail(ErrorKind::InvalidArgument, "REDUCER",
           "reducer {} combines {} value{}, but has {} results and {} identities", name,
           wire.types_size(), wire.types_size() == 1 ? "" : "s", wire.results_size(),
           wire.identities_size());
    }
    Reducer reducer;
    for (const int number : wire.types()) {
      const auto type = dtype_from_number(number);
      if (!type) malformed("reducer {} has the unknown type {}", name, number);
      reducer.types.push_back(*type);
    }
    for (const uint32_t identity : wire.identities()) {
      check_expression(identity, name);
      reducer.identities.push_back(identity);
    }
    for (const uint32_t result : wire.results()) {
      check_expression(result, name);
      reducer.results.push_back(result);
    }
    return reducer;
  }

  Placeholder decode_placeholder(StageId id, const v1::Placeholder& wire) {
    const auto type = dtype_from_number(wire.type());
    if (!type) {
      malformed("placeholder {} has the unknown type {}", checked_.stage(id),
                static_cast<int>(wire.type()));
    }
    check_limit(checked_.stage(id), "dimensions", wire.shape_size(), checked_.limits.dimensions);
    Placeholder placeholder = {*type, {}};
    for (const uint32_t extent : wire.shape()) {
      check_expression(extent, checked_.stage(id));
      placeholder.shape.push_back(extent);
    }
    return placeholder;
  }

  /// Axes and bodies in range, one body at least.
  Compute decode_compute(StageId id, const v1::Compute& wire) {
    check_limit(checked_.stage(id), "dimensions", wire.axes_size(), checked_.limits.dimensions);
    check_limit(checked_.stage(id), "outputs", wire.bodies_size(), checked_.limits.outputs);
    Compute compute;
    for (const uint32_t axis : wire.axes()) {
      compute.axes.push_back(axis_of(id, axis));
    }
    for (const uint32_t body : wire.bodies()) {
      check_expression(body, checked_.stage(id));
      compute.bodies.push_back(body);
    }
    if (compute.bodies.empty()) malformed("{} computes nothing", checked_.stage(id));
    return compute;
  }

  /// Lists of one length and states that are placeholders; shapes and times are checked later.
  Scan decode_scan(StageId id, const v1::Scan& wire) {
    const std::string& name = checked_.stage(id);
    if (wire.init_size() != wire.state_size() || wire.update_size() != wire.state_size()) {
      fail(ErrorKind::InvalidArgument, "SCAN_LISTS",
           "scan {} has {} init, {} update and {} state; their numbers must be the same", name,
           wire.init_size(), wire.update_size(), wire.state_size());
    }
    if (wire.state_size() == 0) {
      fail(ErrorKind::InvalidArgument, "SCAN_LISTS", "scan {} has no state", name);
    }
    check_limit(name, "outputs", wire.state_size(), checked_.limits.outputs);
    check_limit(name, "inputs", wire.inputs_size(), checked_.limits.stages);
    Scan scan;
    scan.axis = axis_of(id, wire.axis());
    scan.init = tensors(wire.init(), id);
    scan.update = tensors(wire.update(), id);
    scan.state = tensors(wire.state(), id);
    scan.inputs = tensors(wire.inputs(), id);
    scan.dimension = wire.dimension();
    scan.reverse = wire.reverse();
    for (const TensorId state : scan.state) {
      if (!std::holds_alternative<Placeholder>(definition_.stages[state.stage])) {
        fail(ErrorKind::InvalidArgument, "SCAN_STATE",
             "the state of scan {} must be a placeholder, but {} is computed", name,
             checked_.tensor(state));
      }
    }
    return scan;
  }

  /// It combines by one of three operators, or replaces: then the last update stays.
  Scatter decode_scatter(StageId id, const v1::Scatter& wire) {
    const std::string& name = checked_.stage(id);
    check_limit(name, "axes", wire.axes_size(), checked_.limits.dimensions);
    check_limit(name, "dimensions", wire.indices_size(), checked_.limits.dimensions);
    Scatter scatter;
    for (const uint32_t axis : wire.axes()) {
      scatter.axes.push_back(axis_of(id, axis));
    }
    scatter.base = tensor(wire.base(), id, name);
    for (const uint32_t index : wire.indices()) {
      check_expression(index, name);
      scatter.indices.push_back(index);
    }
    check_expression(wire.update(), name);
    scatter.update = wire.update();
    if (wire.combiner().empty()) return scatter;
    scatter.combiner = find_operator(wire.combiner());
    if (scatter.combiner != Operator::Add && scatter.combiner != Operator::Min &&
        scatter.combiner != Operator::Max) {
      fail(ErrorKind::InvalidArgument, "SCATTER_COMBINER",
           "{} combines by {}; a scatter combines by add, min or max, or replaces", name,
           wire.combiner().substr(0, 64));
    }
    return scatter;
  }

  std::vector<TensorId> tensors(const google::protobuf::RepeatedPtrField<v1::TensorId>& wire,
                                StageId reader) {
    std::vector<TensorId> result;
    for (const v1::TensorId& id : wire) {
      result.push_back(tensor(id, reader, checked_.stage(reader)));
    }
    return result;
  }

  /// Only stages before `end` may be named.
  TensorId tensor(const v1::TensorId& id, StageId end, std::string_view user) {
    if (id.stage() >= end) {
      malformed("{} refers to stage {}, but only {} stages stand before it", user, id.stage(), end);
    }
    const uint32_t outputs = output_count(definition_.stages[id.stage()]);
    if (id.output() >= outputs) {
      malformed("{} refers to output {} of {}, which has {}", user, id.output(),
                checked_.stage(id.stage()), outputs);
    }
    return {id.stage(), id.output()};
  }

  AxisId axis_of(StageId stage, uint32_t axis) {
    if (axis >= definition_.axes.size()) {
      malformed("{} refers to axis {}, but there are {}", checked_.stage(stage), axis,
                definition_.axes.size());
    }
    return axis;
  }

  void check_expression(uint32_t id, std::string_view user) {
    if (id >= static_cast<uint32_t>(wire_.expressions_size())) {
      malformed("{} refers to expression {}, but there are {}", user, id, wire_.expressions_size());
    }
  }

  template <typename... Args>
  [[noreturn]] void malformed(fmt::format_string<Args...> format, Args&&... args) {
    fail(ErrorKind::InvalidArgument, "MALFORMED", format, std::forward<Args>(args)...);
  }

  const v1::Definition& wire_;
  Checked& checked_;
  Definition& definition_;
};

}  // namespace

void decode_tables(const v1::Definition& wire, Checked& checked) {
  TableDecoder(wire, checked).decode();
}

}  // namespace kiln::language
