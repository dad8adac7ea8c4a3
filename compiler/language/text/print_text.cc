// Prints a canonical kernel as a file that parses to the same definition. A scan whose parts have
// the names and shapes that a scan block would give them prints as one, else as a call with its
// parts.
//
//   S.init, S.update, S.state, S = scan(..)  ->  scan t { S[0, i] = ..;  S[t, i] = .. }
#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "compiler/language/describe.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text.h"
#include "compiler/language/text/text_names.h"
#include "compiler/language/wire/canonical.h"

namespace kiln::language {
namespace {

class KernelPrinter {
 public:
  explicit KernelPrinter(const Kernel& kernel)
      : definition_(kernel.definition), names_(printable_names(kernel)), inside_(names_) {}

  std::string print(const std::vector<std::pair<std::string, Schedule>>& schedules) {
    find_blocks();
    print_header();
    print_sizes();
    for (ReducerId id = 0; id < definition_.reducers.size(); ++id)
      print_reducer(id);
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      if (!in_block_[id]) print_stage(id);
    }
    for (const auto& [target, schedule] : schedules) {
      print_schedule(target, schedule);
    }
    return out_ + "}\n";
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(2 * static_cast<size_t>(depth_), ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  std::string text(ExprId expr, DType expected) const {
    return text_of(definition_, inside_, expr,
                   {.typed = true, .expected = expected, .max_bytes = size_t{1} << 30});
  }

  std::string name(TensorId tensor) const { return names_.tensor_name(definition_, tensor); }

  std::string type_text(TensorId tensor) const {
    std::vector<std::string> shape;
    for (const ExprId extent : definition_.shape_of(tensor)) {
      shape.push_back(text(extent, DType::Int64));
    }
    return fmt::format("{}[{}]", definition_.type_of(tensor), fmt::join(shape, ", "));
  }

  bool is_parameter(TensorId tensor) const {
    return std::find(definition_.parameters.begin(), definition_.parameters.end(), tensor) !=
           definition_.parameters.end();
  }

  void print_header() {
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    bool inputs_first = true;
    for (const TensorId parameter : definition_.parameters) {
      const bool is_output = definition_.is_output(parameter);
      inputs_first = inputs_first && (is_output || outputs.empty());
      (is_output ? outputs : inputs)
          .push_back(fmt::format("{}: {}", name(parameter), type_text(parameter)));
    }
    if (inputs_first) {
      line("kernel {}({}) -> ({}) {{", names_.kernel, fmt::join(inputs, ", "),
           fmt::join(outputs, ", "));
    } else {
      std::vector<std::string> all;
      for (const TensorId parameter : definition_.parameters) {
        all.push_back(fmt::format("{}{}: {}", definition_.is_output(parameter) ? "out " : "",
                                  name(parameter), type_text(parameter)));
      }
      line("kernel {}({}) {{", names_.kernel, fmt::join(all, ", "));
    }
    ++depth_;
  }

  /// Sizes that the header does not declare, or that may be negative.
  void print_sizes() {
    std::vector<bool> declared(definition_.variables.size());
    for (const TensorId parameter : definition_.parameters) {
      for (const ExprId extent : definition_.shape_of(parameter)) {
        mark_sizes(extent, declared);
      }
    }
    for (VariableId id = 0; id < definition_.variables.size(); ++id) {
      const bool nonnegative = definition_.variables[id].nonnegative;
      if (!nonnegative) line("var {}", names_.variables[id]);
      if (nonnegative && !declared[id]) line("size {}", names_.variables[id]);
    }
  }

  /// reducer argmax((i: int64, v: float32), (j, w)) = ... identity ...
  void print_reducer(ReducerId id) {
    const Reducer& reducer = definition_.reducers[id];
    const SourceMap::ReducerNames& names = names_.reducers[id];
    const size_t values = reducer.types.size();
    std::vector<std::string> left;
    std::vector<std::string> results;
    std::vector<std::string> identities;
    for (size_t i = 0; i < values; ++i) {
      left.push_back(fmt::format("{}: {}", names.parameters[i], reducer.types[i]));
      results.push_back(text_of(definition_, names_, reducer.results[i],
                                {.typed = true,
                                 .expected = reducer.types[i],
                                 .parameters = names.parameters,
                                 .max_bytes = size_t{1} << 30}));
      identities.push_back(text(reducer.identities[i], reducer.types[i]));
    }
    const std::span right = std::span(names.parameters).subspan(values);
    const std::string_view open = values > 1 ? "(" : "";
    const std::string_view close = values > 1 ? ")" : "";
    line("reducer {}({}{}{}, {}{}{}) = {} identity {}", names.name, open, fmt::join(left, ", "),
         close, open, fmt::join(right, ", "), close, fmt::join(results, ", "),
         fmt::join(identities, ", "));
  }

  void mark_sizes(ExprId expr, std::vector<bool>& declared) const {
    const auto& node = definition_.expressions[expr].node;
    if (const auto* use = std::get_if<VariableUse>(&node)) declared[use->variable] = true;
    if (const auto* cast = std::get_if<CastTo>(&node)) mark_sizes(cast->operand, declared);
    if (const auto* operation = std::get_if<Operation>(&node)) {
      for (const ExprId operand : operation->operands) {
        mark_sizes(operand, declared);
      }
    }
  }

  std::vector<TensorId> outputs_of(StageId id) const {
    std::vector<TensorId> outputs;
    for (uint32_t i = 0; i < output_count(definition_.stages[id]); ++i) {
      outputs.push_back({id, i});
    }
    return outputs;
  }

  void declare_outputs(StageId id) {
    for (const TensorId output : outputs_of(id)) {
      if (!is_parameter(output)) line("{}: {}", name(output), type_text(output));
    }
  }

  void print_stage(StageId id) {
    if (std::holds_alternative<Placeholder>(definition_.stages[id])) {
      const TensorId tensor = {id, 0};
      if (!is_parameter(tensor)) line("{}: state {}", name(tensor), type_text(tensor));
      return;
    }
    declare_outputs(id);
    if (const auto* scan = std::get_if<Scan>(&definition_.stages[id])) {
      if (block_[id]) {
        print_block(id, *scan);
      } else {
        print_scan_call(id, *scan);
      }
    } else if (const auto* scatter = std::get_if<Scatter>(&definition_.stages[id])) {
      print_scatter(id, *scatter);
    } else {
      print_assignment(id, {});
    }
  }

  std::vector<std::string> axis_names(const Compute& compute) const {
    std::vector<std::string> names;
    for (const AxisId axis : compute.axes) {
      names.push_back(names_.axes[axis]);
    }
    return names;
  }

  /// `steps`: what stands for the axis of time on the left, where that is not its name.
  void print_assignment(StageId id, std::string steps, size_t time = 0) {
    const auto& compute = std::get<Compute>(definition_.stages[id]);
    std::vector<std::string> axes = axis_names(compute);
    if (!steps.empty()) axes[time] = std::move(steps);
    std::vector<std::string> left;
    std::vector<std::string> right;
    for (const TensorId output : outputs_of(id)) {
      left.push_back(
          fmt::format("{}[{}]", inside_.tensor_name(definition_, output), fmt::join(axes, ", ")));
      const ExprId body = compute.bodies[output.output];
      right.push_back(text(body, definition_.expressions[body].type));
    }
    const Reduction* whole = definition_.whole_reduction(compute);
    if (whole != nullptr && definition_.values_of(*whole) > 1) {
      right = {text_of(definition_, inside_, compute.bodies[0],
                       {.typed = true, .whole_tuple = true, .max_bytes = size_t{1} << 30})};
    }
    line("{} = {}", fmt::join(left, ", "), fmt::join(right, ", "));
  }

  std::string tuple(const std::vector<TensorId>& tensors) const {
    std::vector<std::string> names;
    for (const TensorId tensor : tensors) {
      names.push_back(name(tensor));
    }
    if (names.size() == 1) return names[0];
    return fmt::format("({})", fmt::join(names, ", "));
  }

  std::string default_axis_name(StageId id) const { return name({id, 0}) + ".idx"; }

  void print_scan_call(StageId id, const Scan& scan) {
    std::vector<std::string> names;
    for (const TensorId output : outputs_of(id)) {
      names.push_back(name(output));
    }
    const std::string& axis = names_.axes[scan.axis];
    std::string options = axis == default_axis_name(id) ? "" : ", axis=" + axis;
    if (scan.dimension > 0) options += fmt::format(", dimension={}", scan.dimension);
    if (scan.reverse) options += ", reverse";
    line("{} = scan({}, {}, {}{})", fmt::join(names, ", "), tuple(scan.init), tuple(scan.update),
         tuple(scan.state), options);
  }

  void print_scatter(StageId id, const Scatter& scatter) {
    std::vector<std::string> ranges;
    for (const AxisId axis : scatter.axes) {
      ranges.push_back(fmt::format("{} < {}", names_.axes[axis],
                                   text(definition_.axes[axis].extent, DType::Int64)));
    }
    std::vector<std::string> arguments = {name(scatter.base)};
    for (const ExprId index : scatter.indices) {
      arguments.push_back(text(index, DType::Int64));
    }
    arguments.push_back(text(scatter.update, definition_.type_of(scatter.base)));
    const std::string combiner =
        scatter.combiner ? fmt::format("_{}", row_of(*scatter.combiner).spelling) : "";
    line("{} = scatter{}[{}]({})", name({id, 0}), combiner, fmt::join(ranges, ", "),
         fmt::join(arguments, ", "));
  }

  // Scans whose parts have the names that a scan block gives them print as one.

  void find_blocks() {
    block_.resize(definition_.stages.size());
    in_block_.resize(definition_.stages.size());
    const std::vector<int> cells = cells_of(definition_);
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      const auto* scan = std::get_if<Scan>(&definition_.stages[id]);
      if (scan == nullptr || !fits_block(id, *scan)) continue;
      block_[id] = true;
      for (StageId part = 0; part < id; ++part) {
        if (cells[part] == static_cast<int>(id)) in_block_[part] = true;
      }
      for (size_t i = 0; i < scan->state.size(); ++i) {
        const std::string output = name({id, static_cast<uint32_t>(i)});
        in_block_[scan->init[i].stage] = true;
        for (const TensorId part : {scan->init[i], scan->update[i], scan->state[i]}) {
          // Inside the block all parts bear the name of the result, told apart by their indices.
          inside_.stages[part.stage] = output;
        }
      }
      for (StageId part = 0; part < id; ++part) {
        if (cells[part] == static_cast<int>(id)) cell_[id].push_back(part);
      }
    }
  }

  /// Whether the parts have the names a block gives them, and nothing else would be lost.
  bool fits_block(StageId id, const Scan& scan) const {
    if (names_.axes[scan.axis] != default_axis_name(id)) return false;
    for (uint32_t i = 0; i < scan.state.size(); ++i) {
      const std::string output = name({id, i});
      const auto is_called = [&](TensorId tensor, std::string_view suffix) {
        return names_.stages[tensor.stage] == output + std::string(suffix) &&
               output_count(definition_.stages[tensor.stage]) == 1;
      };
      if (!is_called(scan.init[i], ".init") || !is_called(scan.update[i], ".update") ||
          !is_called(scan.state[i], ".state") || !fits_block(scan, i)) {
        return false;
      }
    }
    return true;
  }

  bool fits_block(const Scan& scan, uint32_t i) const {
    const auto* init = std::get_if<Compute>(&definition_.stages[scan.init[i].stage]);
    if (init == nullptr || is_parameter(scan.init[i])) return false;
    if (std::any_of(definition_.stages.begin(), definition_.stages.end(), [&](const Stage& stage) {
          const auto* scatter = std::get_if<Scatter>(&stage);
          return scatter != nullptr && scatter->base.stage == scan.init[i].stage;
        })) {
      return false;
    }
    const std::vector<ExprId> state = definition_.shape_of(scan.state[i]);
    const std::vector<ExprId> first = definition_.shape_of(scan.init[i]);
    if (definition_.shape_of(scan.update[i]) != state) return false;
    for (size_t d = 0; d < state.size(); ++d) {
      if (d != scan.dimension && first[d] != state[d]) return false;
    }
    // The left side of an initial step holds short literals only.
    const auto* steps =
        std::get_if<IntegerConstant>(&definition_.expressions[first[scan.dimension]].node);
    if (steps == nullptr || steps->value > 999'999 || !has_time_in_place(scan, i)) return false;
    return std::none_of(definition_.expressions.begin(), definition_.expressions.end(),
                        [&](const Expression& expression) {
                          const auto* read = std::get_if<Read>(&expression.node);
                          if (read == nullptr) return false;
                          if (read->tensor.stage == scan.init[i].stage) return true;
                          return read->tensor.stage == scan.update[i].stage &&
                                 !std::holds_alternative<AxisUse>(
                                     definition_.expressions[read->indices[scan.dimension]].node);
                        });
  }

  /// Whether no other dimension of an update has the name that time has in the block.
  bool has_time_in_place(const Scan& scan, uint32_t i) const {
    const auto& update = std::get<Compute>(definition_.stages[scan.update[i].stage]);
    for (size_t d = 0; d < update.axes.size(); ++d) {
      if (d != scan.dimension && names_.axes[update.axes[d]] == time_name(scan)) return false;
    }
    return true;
  }

  const std::string& time_name(const Scan& scan) const {
    const auto& update = std::get<Compute>(definition_.stages[scan.update[0].stage]);
    return names_.axes[update.axes[scan.dimension]];
  }

  void print_block(StageId id, const Scan& scan) {
    line("scan {}{} {{", time_name(scan), scan.reverse ? " reverse" : "");
    ++depth_;
    for (size_t i = 0; i < scan.init.size(); ++i) {
      print_assignment(scan.init[i].stage, initial_steps(scan, i), scan.dimension);
    }
    for (const StageId part : cell_[id]) {
      if (!std::holds_alternative<Compute>(definition_.stages[part])) continue;
      const bool is_update =
          std::any_of(scan.update.begin(), scan.update.end(),
                      [part](TensorId update_of) { return update_of.stage == part; });
      if (!is_update) declare_outputs(part);
      print_assignment(part, {});
    }
    --depth_;
    line("}}");
  }

  /// "0" or "t < 2"; in reverse "m - 1" or "m - 2 + t".
  std::string initial_steps(const Scan& scan, size_t i) const {
    const auto& compute = std::get<Compute>(definition_.stages[scan.init[i].stage]);
    const AxisId time = compute.axes[scan.dimension];
    const ExprId extent = definition_.axes[time].extent;
    const int64_t steps = std::get<IntegerConstant>(definition_.expressions[extent].node).value;
    const std::string& axis = names_.axes[time];
    const bool one_row = steps == 1 && axis == "_" && !is_used(time);
    if (!scan.reverse) return one_row ? "0" : fmt::format("{} < {}", axis, steps);
    const ExprId all = definition_.shape_of(scan.state[i])[scan.dimension];
    const auto& node = definition_.expressions[all].node;
    std::string first;
    if (const auto* constant = std::get_if<IntegerConstant>(&node)) {
      first = fmt::format("{}", constant->value - steps);
    } else {
      const std::string extent_text = text(all, DType::Int64);
      first = std::holds_alternative<VariableUse>(node)
                  ? fmt::format("{} - {}", extent_text, steps)
                  : fmt::format("({}) - {}", extent_text, steps);
    }
    return one_row ? first : fmt::format("{} + {}", first, axis);
  }

  bool is_used(AxisId axis) const {
    return std::any_of(definition_.expressions.begin(), definition_.expressions.end(),
                       [axis](const Expression& expression) {
                         const auto* use = std::get_if<AxisUse>(&expression.node);
                         return use != nullptr && use->axis == axis;
                       });
  }

  void print_schedule(const std::string& target, const Schedule& schedule) {
    line("schedule {} {{", target);
    ++depth_;
    for (const std::string& step : kernel_file_text(schedule, definition_, names_)) {
      line("{}", step);
    }
    --depth_;
    line("}}");
  }

  const Definition& definition_;
  SourceMap names_;
  SourceMap inside_;  // the same, but a scan's parts bear the name of its result
  std::string out_;
  int depth_ = 0;
  std::vector<bool> block_;     // by stage: prints as a scan block
  std::vector<bool> in_block_;  // by stage: prints inside one
  std::map<StageId, std::vector<StageId>> cell_;
};

}  // namespace

std::string print_text(const TextKernel& kernel) {
  std::vector<std::pair<std::string, Schedule>> schedules;
  for (const auto& [target, schedule] : kernel.schedules) {
    schedules.emplace_back(target, canonicalize(kernel.kernel, schedule).schedule);
  }
  const CanonicalKernel canonical = canonicalize(kernel.kernel, {});
  return KernelPrinter(canonical.kernel).print(schedules);
}

}  // namespace kiln::language
