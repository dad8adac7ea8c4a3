// The sequence of programs that copies factors and multiplies the copies.
//
//   C[i, j] = sum[k < 4091](A[i, k] * B[k, j])
//     ->  A_copy[i, k] = A[i, k], whose rows begin 4096 elements apart; B_copy likewise
//         C[i, j] = sum[k](A_copy[i, k] * B_copy[k, j])
#include "compiler/tile/contraction_form.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "compiler/tile/contraction.h"
#include "compiler/tile/copy_program.h"
#include "compiler/tile/joined_axes.h"
#include "compiler/tile/program_writer.h"
#include "compiler/tile/without_ones.h"

namespace kiln::tile {

using namespace language;

namespace {

template <typename T>
std::vector<T> ordered(const std::vector<T>& items, const std::vector<uint32_t>& order) {
  std::vector<T> result;
  for (const uint32_t d : order)
    result.push_back(items[d]);
  return result;
}

/// The kernel that reads the copies in the place of its factors.
Kernel with_copies(Kernel kernel, const std::vector<FactorCopy>& copies) {
  for (const FactorCopy& copy : copies) {
    const TensorId tensor = kernel.definition.parameters[copy.parameter];
    auto& placeholder = std::get<Placeholder>(kernel.definition.stages[tensor.stage]);
    placeholder.shape = ordered(placeholder.shape, copy.order);
    for (Expression& expression : kernel.definition.expressions) {
      auto* read = std::get_if<Read>(&expression.node);
      if (read != nullptr && read->tensor == tensor)
        read->indices = ordered(read->indices, copy.order);
    }
  }
  return kernel;
}

/// Whether the call says how long its rows are, of which there are several.
bool has_open_matrix(const Parameter& parameter) {
  return parameter.has_open_rows() && parameter.shape.size() > 1;
}

/// Those of a kernel, whose open rows begin at multiples of 16 bytes; `plain` is what it is
/// without dimensions of 1.
std::vector<Parameter> even_parameters(const Kernel& kernel, const Kernel& plain) {
  std::vector<Parameter> parameters = parameters_of(kernel);
  const std::vector<Parameter> read = parameters_of(plain);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (has_open_matrix(parameters[i]) && has_open_matrix(read[i]))
      parameters[i].row_multiple = kRowBytes / size_of(parameters[i].type);
  return parameters;
}

}  // namespace

ContractionForm::ContractionForm(std::vector<Parameter> parameters, Kernel read,
                                 std::vector<FactorCopy> copies)
    : parameters_(std::move(parameters)), read_(std::move(read)), copies_(std::move(copies)) {}

bool ContractionForm::has_even_rows() const {
  return std::ranges::any_of(parameters_,
                             [](const Parameter& each) { return each.row_multiple > 0; });
}

Sequence ContractionForm::sequence(const BlockShape& shape) const {
  Sequence sequence = alone(contraction(read_, shape));
  sequence.tensors = parameters_;
  Sequence::Step product = std::move(sequence.steps.back());
  sequence.steps.clear();
  for (size_t i = 0; i < parameters_.size(); ++i)
    product.program.parameters[i].row_multiple = parameters_[i].row_multiple;
  for (const FactorCopy& copy : copies_) {
    Parameter& read = product.program.parameters[copy.parameter];
    Parameter given = read;
    for (size_t d = 0; d < copy.order.size(); ++d)
      given.shape[copy.order[d]] = read.shape[d];
    read.name += "_copy";
    read.row_multiple = copy.row_multiple;
    const auto number = static_cast<uint32_t>(sequence.tensors.size());
    product.tensors[copy.parameter] = number;
    sequence.tensors.push_back(read);
    const std::string name = fmt::format("{}_copies_{}", product.program.name, given.name);
    sequence.steps.push_back({copy_program(name, product.program.sizes, given, read, copy.order),
                              {copy.parameter, number},
                              copy.is_spared});
  }
  sequence.steps.push_back(std::move(product));
  verify(sequence);
  return sequence;
}

std::vector<ContractionForm> contraction_forms(const Kernel& kernel, std::string_view arch) {
  const Kernel plain = with_joined_axes(without_ones(kernel));
  const std::vector<Parameter> parameters = parameters_of(kernel);
  const std::vector<Parameter> even = even_parameters(kernel, plain);
  std::vector<FactorCopy> copies = factor_copies(plain, arch);
  std::vector<FactorCopy> kept = copies;  // where rows are even
  std::erase_if(kept, [](const FactorCopy& copy) { return copy.is_spared; });

  std::vector<ContractionForm> forms = {ContractionForm(parameters, plain, {})};
  if (even != parameters) forms.emplace_back(even, plain, std::vector<FactorCopy>{});
  if (even != parameters && !kept.empty()) forms.emplace_back(even, with_copies(plain, kept), kept);
  if (!copies.empty())
    forms.emplace_back(parameters, with_copies(plain, copies), std::move(copies));
  return forms;
}

}  // namespace kiln::tile
