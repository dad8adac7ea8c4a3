// The sequence of programs that copies factors and multiplies the copies.
//
//   C[i, j] = sum[k < 4091](A[i, k] * B[k, j])
//     ->  A_copy[i, k] = A[i, k], whose rows begin 4096 elements apart; B_copy likewise
//         C[i, j] = sum[k](A_copy[i, k] * B_copy[k, j])
#include "compiler/tile/contraction_form.h"

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

}  // namespace

ContractionForm::ContractionForm(const Kernel& kernel, Kernel read, std::vector<FactorCopy> copies)
    : parameters_(parameters_of(kernel)), read_(std::move(read)), copies_(std::move(copies)) {}

Sequence ContractionForm::sequence(const BlockShape& shape) const {
  Sequence sequence = alone(contraction(read_, shape));
  sequence.tensors = parameters_;
  Sequence::Step product = std::move(sequence.steps.back());
  sequence.steps.clear();
  for (const FactorCopy& copy : copies_) {
    Parameter& read = product.program.parameters[copy.parameter];
    Parameter given = read;
    for (size_t d = 0; d < copy.order.size(); ++d)
      given.shape[copy.order[d]] = read.shape[d];
    read.name += "_copy";
    read.pitch = copy.pitch;
    const auto number = static_cast<uint32_t>(sequence.tensors.size());
    product.tensors[copy.parameter] = number;
    sequence.tensors.push_back(read);
    const std::string name = fmt::format("{}_copies_{}", product.program.name, given.name);
    sequence.steps.push_back({copy_program(name, product.program.sizes, given, read, copy.order),
                              {copy.parameter, number}});
  }
  sequence.steps.push_back(std::move(product));
  verify(sequence);
  return sequence;
}

std::vector<ContractionForm> contraction_forms(const Kernel& kernel, std::string_view arch) {
  const Kernel plain = with_joined_axes(without_ones(kernel));
  std::vector<ContractionForm> forms = {ContractionForm(kernel, plain, {})};
  std::vector<FactorCopy> copies = factor_copies(plain, arch);
  if (copies.empty()) return forms;
  language::Kernel read = with_copies(plain, copies);
  forms.emplace_back(kernel, std::move(read), std::move(copies));
  return forms;
}

}  // namespace kiln::tile
