// Gradients: what tensors are computed from goes to the service, and what comes back is made anew
// on the same tensors, whose stages have the same numbers in it.
//
//   gradient(Y, {A, B}, G)  ->  stages [A, B, Y, G, A_grad, B_grad] of which A, B, Y and G are
//   there
#include <algorithm>
#include <utility>

#include <kiln/connection.h>

#include "client/cpp/definition_state.h"
#include "client/cpp/encode.h"
#include "client/cpp/fail.h"
#include "client/cpp/instance.h"
#include "client/cpp/link.h"
#include "client/cpp/nodes.h"
#include "client/cpp/sizes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

void check_head(const Tensor& output, const Tensor& head, const SourceLocation& where) {
  if (head.dtype() != output.dtype()) {
    fail_at(where, "GRADIENT_HEAD", "the head {} is {}, but {} is {}; cast it", head.name(),
            name_of(head.dtype()), output.name(), name_of(output.dtype()));
  }
  const Shape own = output.shape();
  const Shape given = head.shape();
  const bool ends_alike =
      given.size() >= own.size() &&
      std::equal(own.begin(), own.end(), given.end() - static_cast<std::ptrdiff_t>(own.size()),
                 [](const Expr& a, const Expr& b) { return is_same_size(a, b); });
  if (ends_alike) return;
  fail_at(where, "GRADIENT_HEAD",
          "the head {} has {} dimensions, of which the last must be the {} of {}", head.name(),
          given.size(), own.size(), output.name());
}

/// Ids of tensors in what was encoded.
v1::TensorId id_in(const EncodedNodes& nodes, const Tensor& tensor) {
  v1::TensorId id;
  const auto at = std::find(nodes.stages.begin(), nodes.stages.end(), tensor.stage());
  id.set_stage(static_cast<std::uint32_t>(at - nodes.stages.begin()));
  id.set_output(tensor.output());
  return id;
}

/// The tensors of the reply: those that were sent are the caller's own.
std::vector<Tensor> tensors_of(const v1::DifferentiateResponse& reply, const EncodedNodes& nodes,
                               const std::optional<Tensor>& head, const SourceLocation& where) {
  const border::WireKernel kernel{reply.definition(), reply.source_map(), {}};
  Binding binding{.kernel = kernel, .where = where};
  std::vector<Expr> sizes = nodes.sizes;
  if (head) {
    const Shape shape = head->shape();
    const std::size_t leading =
        static_cast<std::size_t>(reply.definition().variables_size()) - sizes.size();
    sizes.insert(sizes.end(), shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(leading));
    binding.arguments.emplace(reply.heads(0).stage(), *head);
  }
  for (std::uint32_t v = 0; v < sizes.size(); ++v)
    binding.sizes.emplace(v, sizes[v]);
  for (std::uint32_t id = 0; id < nodes.stages.size(); ++id)
    binding.arguments.emplace(id, Tensor(nodes.stages[id], 0));
  Instance instance(binding);
  for (std::uint32_t id = 0; id < nodes.stages.size(); ++id)
    instance.put(id, nodes.stages[id]);
  std::vector<Tensor> gradients;
  for (const v1::TensorId& gradient : reply.gradients())
    gradients.push_back(instance.tensor(gradient));
  return gradients;
}

}  // namespace
}  // namespace detail

std::vector<Tensor> Connection::gradient(const Tensor& output, const std::vector<Tensor>& inputs,
                                         const std::optional<Tensor>& head,
                                         SourceLocation where) const {
  if (inputs.empty()) {
    detail::fail_at(where, "GRADIENT", "gradient of {} has no inputs; write gradient(Y, {{A, B}})",
                    output.name());
  }
  if (head) detail::check_head(output, *head, where);
  std::vector<Tensor> asked = {output};
  for (const Tensor& input : inputs) {
    if (std::none_of(asked.begin(), asked.end(),
                     [&](const Tensor& other) { return detail::is_same(other, input); })) {
      asked.push_back(input);
    }
  }
  return detail::at_line(where, [&] {
    detail::EncodedNodes nodes;
    border::WireKernel kernel = detail::encode_behind(asked, nullptr, nodes);
    v1::DifferentiateRequest request;
    *request.mutable_definition() = std::move(kernel.definition);
    *request.mutable_source_map() = std::move(kernel.names);
    *request.add_outputs() = detail::id_in(nodes, output);
    for (const Tensor& input : inputs)
      *request.add_inputs() = detail::id_in(nodes, input);
    request.set_identity(!head);
    if (head) {
      request.set_leading(static_cast<std::uint32_t>(head->shape().size() - output.shape().size()));
    }
    v1::DifferentiateResponse reply;
    link_->call(link_->kernels(), &v1::KernelService::Stub::Differentiate, request, reply);
    return detail::tensors_of(reply, nodes, head, where);
  });
}

namespace {

/// The parameters with these names; none when no name is given.
void name_tensors(const border::WireKernel& kernel, bool inputs,
                  const std::vector<std::string>& names,
                  google::protobuf::RepeatedPtrField<v1::TensorId>& out) {
  const std::vector<v1::TensorId> known = detail::parameters_of(kernel.definition, inputs);
  for (const std::string& name : names) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const v1::TensorId& tensor) {
      return detail::name_of(kernel, tensor) == name;
    });
    if (found == known.end()) {
      std::string all;
      for (const v1::TensorId& tensor : known)
        all += (all.empty() ? "" : ", ") + detail::name_of(kernel, tensor);
      detail::fail(ErrorKind::InvalidArgument, "GRADIENT", "{} has no {} {}; it has {}",
                   detail::called(kernel.names.kernel()), inputs ? "input" : "output", name, all);
    }
    *out.Add() = *found;
  }
}

}  // namespace

Definition Connection::differentiate(const Definition& definition,
                                     const std::vector<std::string>& outputs,
                                     const std::vector<std::string>& inputs) const {
  const border::WireKernel& kernel = definition.state()->kernel;
  v1::DifferentiateRequest request;
  *request.mutable_definition() = kernel.definition;
  *request.mutable_source_map() = kernel.names;
  name_tensors(kernel, false, outputs, *request.mutable_outputs());
  name_tensors(kernel, true, inputs, *request.mutable_inputs());
  v1::DifferentiateResponse reply;
  link_->call(link_->kernels(), &v1::KernelService::Stub::Differentiate, request, reply);
  auto state = std::make_shared<detail::DefinitionState>();
  state->kernel = {reply.definition(), reply.source_map(), {}};
  return Definition(std::shared_ptr<const detail::DefinitionState>(std::move(state)));
}

}  // namespace client
}  // namespace kiln
