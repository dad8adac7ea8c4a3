// Reverse mode over a definition: stages from the last to the first. When a stage's turn comes, all
// that read it have given their contributions to its adjoint, which is computed then and passed on
// through its body.
//
//   P = A*B, Y = tanh(P + b)     Y_head -> P_grad = Y_head*(1 - Y*Y) -> A_grad, B_grad, b_grad
//
// Griewank and Walther, Evaluating Derivatives, 2008, chapter 3.
#include "compiler/autodiff/differentiate.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/autodiff/copies.h"
#include "compiler/autodiff/differentiator.h"
#include "compiler/autodiff/invariance.h"
#include "compiler/autodiff/lift.h"
#include "compiler/autodiff/scan.h"
#include "compiler/language/check/linear.h"
#include "compiler/language/check/time_dimensions.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::autodiff {

using namespace language;

Differentiator::Differentiator(const Kernel& kernel, const GradientRequest& request)
    : b_(kernel),
      request_(request),
      original_stages_(static_cast<StageId>(kernel.definition.stages.size())),
      seeds_(b_),
      active_(b_, {}) {}

Gradient Differentiator::run() {
  find_cells();
  check_request();
  find_active();
  add_heads();
  for (StageId stage = original_stages_; stage-- > 0;) {
    if (scan_of_[stage] == -1) visit(stage);
  }
  Gradient result;
  std::set<TensorId> taken(heads_.begin(), heads_.end());
  for (const TensorId input : request_.inputs)
    result.gradients.push_back(gradient_of(input, taken));
  result.heads = heads_;
  std::vector<TensorId>& parameters = b_.kernel().definition.parameters;
  std::erase_if(parameters, [&](TensorId parameter) {
    return !std::holds_alternative<Placeholder>(b_.definition().stages[parameter.stage]);
  });
  parameters.insert(parameters.end(), heads_.begin(), heads_.end());
  parameters.insert(parameters.end(), result.gradients.begin(), result.gradients.end());
  inline_copied(b_, original_stages_, parameters);
  result.kernel = b_.kernel();
  return result;
}

void Differentiator::check_request() {
  const auto refuse = [&](std::string_view reason, std::string_view what) {
    fail(ErrorKind::InvalidArgument, std::string(reason), "{} {}", called(b_.names().kernel), what);
  };
  if (request_.outputs.empty()) {
    refuse("GRADIENT_TYPE", "computes no floating tensor, so there is nothing to differentiate");
  }
  if (request_.inputs.empty()) {
    refuse("GRADIENT_TYPE", "takes no floating tensor to differentiate with respect to");
  }
  if (request_.identity && (request_.outputs.size() != 1 || request_.leading != 0)) {
    refuse("GRADIENT_HEAD", "has a Jacobian of one output at a time; give heads for several");
  }
  constexpr uint32_t kMostLeading = 16;
  if (request_.leading > kMostLeading) {
    fail(ErrorKind::ResourceExhausted, "LIMIT", "heads have {} leading dimensions; the limit is {}",
         request_.leading, kMostLeading);
  }
  const auto check = [&](TensorId tensor, std::string_view what) {
    const std::string name = b_.names().tensor_name(b_.definition(), tensor);
    const DType type = b_.definition().type_of(tensor);
    if (!is_float(type)) {
      fail(ErrorKind::InvalidArgument, "GRADIENT_TYPE",
           "{} is {}, so there is no gradient {} it; only floating tensors have one", name, type,
           what);
    }
    const int scan = scan_of_[tensor.stage];
    if (scan < 0) return;
    fail(ErrorKind::InvalidArgument, "GRADIENT_CELL",
         "{} is inside of scan {}, so there is no gradient {} it; take one of {} or of what it "
         "reads",
         name, b_.names().stages[static_cast<size_t>(scan)], what,
         b_.names().stages[static_cast<size_t>(scan)]);
  };
  for (const TensorId output : request_.outputs)
    check(output, "of");
  for (const TensorId input : request_.inputs)
    check(input, "with respect to");
}

/// What is in a cell is read by nothing outside but its scan.
void Differentiator::find_cells() {
  const std::vector<int> times = time_dimensions(b_.definition());
  scan_of_.assign(original_stages_, -1);
  for (StageId id = original_stages_; id-- > 0;) {
    const auto* scan = std::get_if<Scan>(&b_.definition().stages[id]);
    if (scan == nullptr) continue;
    std::vector<StageId> open;
    for (const auto* list : {&scan->state, &scan->update}) {
      for (const TensorId tensor : *list)
        open.push_back(tensor.stage);
    }
    while (!open.empty()) {
      const StageId inside = open.back();
      open.pop_back();
      if (times[inside] < 0 || scan_of_[inside] != -1) continue;
      scan_of_[inside] = static_cast<int>(id);
      for (const ExprId body : bodies_of(b_.definition().stages[inside])) {
        for (const TensorId read : b_.reads(body))
          open.push_back(read.stage);
      }
    }
  }
}

void Differentiator::find_active() {
  std::set<TensorId> cancelled = find_cancelled(b_, request_.outputs);
  for (const TensorId input : request_.inputs) {
    active_.add(input);
    cancelled.erase(input);
  }
  const auto& stages = b_.definition().stages;
  // States depend on updates, which stand behind them: what a round finds of them, the next uses.
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    active_.forget_expressions();
    const auto mark = [&](TensorId tensor) {
      if (active_.is_active(tensor) || cancelled.contains(tensor)) return;
      if (!is_float(b_.definition().type_of(tensor))) return;
      active_.add(tensor);
      is_changed = true;
    };
    for (StageId id = 0; id < original_stages_; ++id) {
      if (const auto* compute = std::get_if<Compute>(&stages[id])) {
        for (uint32_t i = 0; i < compute->bodies.size(); ++i) {
          if (active_.is_active(compute->bodies[i])) mark({id, i});
        }
      } else if (const auto* scatter = std::get_if<Scatter>(&stages[id])) {
        if (active_.is_active(scatter->base) || active_.is_active(scatter->update)) mark({id, 0});
      } else if (const auto* scan = std::get_if<Scan>(&stages[id])) {
        for (uint32_t s = 0; s < scan->state.size(); ++s) {
          if (!active_.is_active(scan->init[s]) && !active_.is_active(scan->update[s])) continue;
          mark({id, s});
          mark(scan->state[s]);
        }
      }
    }
  }
}

void Differentiator::add_heads() {
  Builder& b = b_;
  std::vector<ExprId> extents;
  if (request_.identity) {
    for (const ExprId extent : b.definition().shape_of(request_.outputs[0]))
      extents.push_back(b.tidied(extent));
  }
  for (uint32_t d = 0; d < request_.leading; ++d) {
    b.kernel().definition.variables.push_back({.nonnegative = true});
    b.kernel().names.variables.push_back(fmt::format("q{}", d));
    extents.push_back(b.size(static_cast<VariableId>(b.definition().variables.size() - 1)));
  }
  for (size_t d = 0; d < extents.size(); ++d)
    seeds_.leading.push_back(b.data_axis(extents[d], fmt::format("q{}", d)));
  for (const TensorId output : request_.outputs) {
    Contribution head{.tensor = output, .loops = b.data_axes(output)};
    head.indices = b.uses(head.loops);
    const DType type = b.definition().type_of(output);
    if (request_.identity) {
      head.value = b.number(type, 1);
      for (size_t d = 0; d < head.loops.size(); ++d)
        head.diagonal.emplace_back(head.loops[d], seeds_.leading[d]);
    } else {
      Placeholder placeholder{type, extents};
      for (const ExprId extent : b.definition().shape_of(output))
        placeholder.shape.push_back(b.tidied(extent));
      heads_.push_back({b.new_stage(placeholder, name_of(output) + "_head", output.stage), 0});
      std::vector<ExprId> indices = b.uses(seeds_.leading);
      indices.insert(indices.end(), head.indices.begin(), head.indices.end());
      head.value = b.read(heads_.back(), indices);
    }
    given_[output].push_back(std::move(head));
  }
}

void Differentiator::give(std::vector<Contribution> contributions) {
  for (Contribution& contribution : contributions)
    given_[contribution.tensor].push_back(std::move(contribution));
}

void Differentiator::visit(StageId id) {
  const Stage stage = b_.definition().stages[id];
  if (const auto* compute = std::get_if<Compute>(&stage)) {
    for (uint32_t output = 0; output < compute->bodies.size(); ++output) {
      const TensorId tensor{id, output};
      if (given_.contains(tensor) && active_.is_active(compute->bodies[output]))
        visit(node_of(tensor, *compute));
    }
  } else if (const auto* scatter = std::get_if<Scatter>(&stage)) {
    if (given_.contains({id, 0}) && active_.is_active(TensorId{id, 0})) visit(id, *scatter);
  } else if (const auto* scan = std::get_if<Scan>(&stage)) {
    visit(id, *scan);
  }
}

void Differentiator::visit(StageId id, const Scan& scan) {
  std::map<uint32_t, TensorId> given;
  for (uint32_t s = 0; s < scan.state.size(); ++s) {
    const TensorId output{id, s};
    if (active_.is_active(output) && given_.contains(output)) given[s] = adjoint_of(output).tensor;
  }
  if (given.empty()) return;
  std::vector<StageId> cell;
  for (StageId stage = 0; stage < id; ++stage) {
    const bool is_state = std::holds_alternative<Placeholder>(b_.definition().stages[stage]);
    if (scan_of_[stage] == static_cast<int>(id) && !is_state) cell.push_back(stage);
  }
  ScanAdjoints found = differentiate_scan(b_, seeds_, active_, id, cell, given);
  for (const auto& [output, adjoint] : found.of_output) {
    const TensorId tensor{id, output};
    if (adjoints_.contains(tensor)) from_readers_[tensor] = adjoints_[tensor];
    adjoints_[tensor] = adjoint;
  }
  give(std::move(found.contributions));
  for (const Node& constant : found.constants) {
    if (given_.contains(constant.tensor)) visit(constant);
  }
}

Node Differentiator::node_of(TensorId tensor, const Compute& compute) {
  return {tensor, compute.axes, b_.tidied(compute.bodies[tensor.output]), {}};
}

void Differentiator::visit(const Node& given) {
  Node node = given;
  const std::vector<Node> parts = lift_reductions(b_, node);
  // What is read by what is found to be active first.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (active_.is_active(part->body)) active_.add(part->tensor);
  }
  const bool is_head =
      request_.identity && node.tensor == request_.outputs[0] && given_.at(node.tensor).size() == 1;
  if (is_head) {
    // The identity is not multiplied with: it says which iteration is meant.
    std::vector<Contribution> found = sweep(b_, active_, node, b_.number(b_.type(node.body), 1));
    for (Contribution& contribution : found) {
      for (size_t d = 0; d < node.axes.size(); ++d)
        contribution.diagonal.emplace_back(node.axes[d], seeds_.leading[d]);
    }
    give(std::move(found));
  } else {
    adjoint_of(node.tensor);
    give(sweep(b_, active_, node, seeds_.read(node.tensor, b_.uses(node.axes))));
  }
  for (const Node& part : parts) {
    if (given_.contains(part.tensor) && active_.is_active(part.body)) visit(part);
  }
}

/// What readers call the dimensions of a tensor: k of A[i, k].
std::map<size_t, std::string> Differentiator::names_of_readers(TensorId tensor) const {
  std::map<size_t, std::string> names;
  std::set<std::string> taken;
  const auto given = given_.find(tensor);
  if (given == given_.end()) return names;
  for (const Contribution& contribution : given->second) {
    for (size_t d = 0; d < contribution.indices.size(); ++d) {
      const auto* use = b_.as<AxisUse>(contribution.indices[d]);
      if (use == nullptr || names.contains(d)) continue;
      const std::string& name = b_.names().axes[use->axis];
      if (taken.insert(name).second) names[d] = name;
    }
  }
  return names;
}

AdjointSpec Differentiator::spec_of(TensorId tensor) {
  AdjointSpec spec{.tensor = tensor, .name = name_of(tensor) + "_grad"};
  for (const AxisId axis : seeds_.leading) {
    const Axis bounds = b_.definition().axes[axis];
    spec.leading.push_back(b_.data_axis(bounds.extent, std::string(b_.names().axes[axis])));
  }
  spec.axes = b_.data_axes(tensor, names_of_readers(tensor));
  spec.elements = b_.uses(spec.axes);
  spec.adjoint_of = [this](TensorId other, const std::vector<ExprId>& indices) {
    return read_adjoint(other, indices);
  };
  return spec;
}

const Adjoint& Differentiator::adjoint_of(TensorId tensor) {
  const auto known = adjoints_.find(tensor);
  if (known != adjoints_.end()) return known->second;
  const TensorId computed = accumulate(b_, seeds_, spec_of(tensor), given_.at(tensor));
  const std::optional<TensorId> copied = as_copy(computed);
  return adjoints_[tensor] = {copied ? *copied : computed};
}

ExprId Differentiator::read_adjoint(TensorId tensor, const std::vector<ExprId>& indices) {
  const Adjoint adjoint = adjoint_of(tensor);
  // A number needs no tensor.
  const auto* compute = std::get_if<Compute>(&b_.definition().stages[adjoint.tensor.stage]);
  if (compute != nullptr && b_.as<FloatConstant>(compute->bodies[0]) != nullptr)
    return compute->bodies[0];
  std::vector<ExprId> all = indices;
  if (adjoint.offset != 0)
    all[adjoint.dimension] = b_.add(all[adjoint.dimension], b_.integer(adjoint.offset));
  return b_.read(adjoint.tensor, all);
}

/// The tensor that a stage copies element by element.
std::optional<TensorId> Differentiator::as_copy(TensorId tensor) const {
  const auto* compute = std::get_if<Compute>(&b_.definition().stages[tensor.stage]);
  const auto* read = compute == nullptr ? nullptr : b_.as<Read>(compute->bodies[tensor.output]);
  if (read == nullptr || read->indices.size() != compute->axes.size()) return std::nullopt;
  const std::vector<ExprId> shape = b_.definition().shape_of(read->tensor);
  for (size_t d = 0; d < compute->axes.size(); ++d) {
    const auto* use = b_.as<AxisUse>(read->indices[d]);
    if (use == nullptr || use->axis != compute->axes[d]) return std::nullopt;
    const ExprId extent = b_.definition().axes[use->axis].extent;
    if (constant_difference(b_.definition(), extent, shape[d]) != 0) return std::nullopt;
  }
  return read->tensor;
}

std::string Differentiator::name_of(TensorId tensor) const {
  std::string name = b_.names().tensor_name(b_.definition(), tensor);
  std::ranges::replace(name, '.', '_');
  return name;
}

/// A tensor of its own, though the adjoint be that of another, or a head, or 0.
TensorId Differentiator::gradient_of(TensorId tensor, std::set<TensorId>& taken) {
  // A scan does not read its own results: its steps read their states.
  if (const auto readers = from_readers_.find(tensor); readers != from_readers_.end())
    adjoints_[tensor] = readers->second;
  if (has_adjoint(tensor)) {
    const Adjoint adjoint = adjoint_of(tensor);
    const bool is_whole = adjoint.offset == 0 && b_.is_computed(adjoint.tensor);
    if (is_whole && taken.insert(adjoint.tensor).second) return adjoint.tensor;
  }
  const AdjointSpec spec = spec_of(tensor);
  std::vector<AxisId> axes = spec.leading;
  axes.insert(axes.end(), spec.axes.begin(), spec.axes.end());
  const ExprId body = has_adjoint(tensor) ? read_adjoint(tensor, b_.uses(axes))
                                          : b_.number(b_.definition().type_of(tensor), 0);
  return b_.compute(axes, body, spec.name, tensor.stage);
}

GradientRequest whole_request(const Kernel& kernel) {
  GradientRequest request;
  for (const TensorId parameter : kernel.definition.parameters) {
    if (!is_float(kernel.definition.type_of(parameter))) continue;
    const bool is_output = kernel.definition.is_output(parameter);
    (is_output ? request.outputs : request.inputs).push_back(parameter);
  }
  return request;
}

Gradient differentiate(const Kernel& kernel, const GradientRequest& request, const Limits& limits) {
  Gradient found = Differentiator(kernel, request).run();
  found = without_dead(found, kernel);
  // What is made here is checked as what a client sends is.
  found.kernel = decode(encode(found.kernel.definition), encode(found.kernel.names), limits);
  return found;
}

}  // namespace kiln::autodiff
