// The sequence of programs that computes or copies factors and multiplies what they leave.
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
#include "runtime/core/error.h"

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
                                 std::vector<StoredStage> stored, std::vector<FactorCopy> copies)
    : parameters_(std::move(parameters)),
      read_(std::move(read)),
      stored_(std::move(stored)),
      copies_(std::move(copies)) {}

bool ContractionForm::has_even_rows() const {
  return std::ranges::any_of(parameters_,
                             [](const Parameter& each) { return each.row_multiple > 0; });
}

Sequence ContractionForm::sequence(const BlockShape& shape) const {
  Sequence sequence = alone(contraction(read_, shape));
  sequence.tensors = parameters_;
  sequence.given = static_cast<uint32_t>(parameters_.size());
  Sequence::Step product = std::move(sequence.steps.back());
  sequence.steps.clear();
  for (size_t i = 0; i < parameters_.size(); ++i)
    product.program.parameters[i].row_multiple = parameters_[i].row_multiple;
  for (size_t i = 0; i < stored_.size(); ++i) {
    Parameter& read = product.program.parameters[parameters_.size() + i];
    read.row_multiple = kRowBytes / size_of(read.type);
    Sequence::Step step{stored_[i].program, stored_[i].inputs};
    step.program.parameters.back().row_multiple = read.row_multiple;
    for (size_t input = 0; input < step.tensors.size(); ++input)
      step.program.parameters[input].row_multiple = parameters_[step.tensors[input]].row_multiple;
    step.tensors.push_back(static_cast<uint32_t>(sequence.tensors.size()));
    sequence.tensors.push_back(read);
    sequence.steps.push_back(std::move(step));
  }
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

namespace {

/// Finds the ways.
class FormWriter {
 public:
  FormWriter(const Kernel& kernel, std::string_view arch)
      : plain_(with_joined_axes(without_ones(kernel))),
        parameters_(parameters_of(kernel)),
        even_(even_parameters(kernel, plain_)),
        arch_(arch) {}

  std::vector<ContractionForm> run() {
    add_all(plain_, {});
    try {
      const StoredFactors factors = stored_factors(plain_);
      if (!factors.stages.empty()) add_all(factors.rest, factors.stages);
    } catch (const Error& error) {
      if (error.reason() != "TILE_FORM") throw;
    }
    return std::move(forms_);
  }

 private:
  void add_all(const Kernel& kernel, const std::vector<StoredStage>& stored) {
    std::vector<FactorCopy> copies = factor_copies(kernel, arch_);
    const auto is_stored = [&](const FactorCopy& copy) {
      return copy.parameter >= parameters_.size();
    };
    // It is stored with rows that begin at multiples already.
    std::erase_if(copies, [&](const FactorCopy& copy) {
      return is_stored(copy) && std::ranges::is_sorted(copy.order);
    });
    if (std::ranges::any_of(copies, is_stored)) return;
    std::vector<FactorCopy> kept = copies;  // where rows are even
    std::erase_if(kept, [](const FactorCopy& copy) { return copy.is_spared; });
    add(parameters_, kernel, stored, {});
    if (even_ != parameters_) add(even_, kernel, stored, {});
    if (even_ != parameters_ && !kept.empty()) add(even_, kernel, stored, kept);
    if (!copies.empty()) add(parameters_, kernel, stored, copies);
  }
  void add(const std::vector<Parameter>& parameters, const Kernel& kernel,
           const std::vector<StoredStage>& stored, const std::vector<FactorCopy>& copies) {
    forms_.emplace_back(parameters, with_copies(kernel, copies), stored, copies);
  }

  const Kernel plain_;
  const std::vector<Parameter> parameters_;
  const std::vector<Parameter> even_;
  const std::string_view arch_;
  std::vector<ContractionForm> forms_;
};

}  // namespace

std::vector<ContractionForm> contraction_forms(const Kernel& kernel, std::string_view arch) {
  return FormWriter(kernel, arch).run();
}

}  // namespace kiln::tile
