// Collects the text of a random kernel, and draws what its stages are made of: types, extents,
// sources, literals, inputs and which tensors are outputs.
#include "tests/support/kernel_writer.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::testing {
namespace {

struct DrawnType {
  DType type;
  int weight;
};

constexpr DrawnType kTypes[] = {
    {DType::Float32, 8}, {DType::Float64, 3}, {DType::Float16, 1}, {DType::BFloat16, 1},
    {DType::Int32, 4},   {DType::Int64, 3},   {DType::Int16, 1},   {DType::Int8, 1},
    {DType::UInt8, 1},   {DType::UInt16, 1},  {DType::UInt32, 1},  {DType::UInt64, 1},
};

const std::vector<std::string> kAxes = {"i", "j", "l"};
// Around the numbers of lanes of vectors: below, equal, and one more.
const std::vector<int> kExtents = {1, 2, 3, 5, 7, 8, 12, 16, 17, 31, 33};

std::string declaration(const DrawnTensor& tensor) {
  std::vector<std::string> shape;
  for (const DrawnExtent& extent : tensor.shape)
    shape.push_back(extent.text());
  return fmt::format("{}: {}[{}]", tensor.name, tensor.type(), fmt::join(shape, ", "));
}

}  // namespace

std::string DrawnExtent::text() const {
  if (variable.empty()) return std::to_string(offset);
  return offset == 0 ? variable : fmt::format("{} - {}", variable, offset);
}

DrawnExtent DrawnExtent::less(int by) const {
  return {variable, variable.empty() ? offset - by : offset + by, value - by};
}

KernelWriter::KernelWriter(Random& source) : random(source), type_(random_type()) {
  // Rough values have bounds of error instead of equal bits; narrow types would have bounds too
  // wide.
  is_rough_ = (type_ == DType::Float32 || type_ == DType::Float64) && random.chance(0.3);
  for (const char* name : {"n", "m", "k"}) {
    // Empty tensors now and then, but seldom: they hide everything else.
    const int value = random.chance(0.02) ? 0 : random.pick(kExtents);
    if (random.chance(0.5)) {
      extents_.push_back({name, 0, value});
      sizes_[name] = value;
    } else {
      extents_.push_back({"", value, value});
    }
  }
}

std::string KernelWriter::new_name() { return fmt::format("T{}", counter_++); }

DType KernelWriter::random_type() {
  int total = 0;
  for (const DrawnType& row : kTypes)
    total += row.weight;
  int drawn = random.below(total);
  for (const DrawnType& row : kTypes) {
    drawn -= row.weight;
    if (drawn < 0) return row.type;
  }
  return DType::Float32;
}

Term KernelWriter::literal(DType type) { return literal_of(type, random.between(-3, 3)); }

std::vector<std::string> KernelWriter::axes_of(size_t count) {
  return {kAxes.begin(), kAxes.begin() + static_cast<long>(count)};
}

std::string KernelWriter::access(const DrawnTensor& tensor,
                                 const std::vector<std::string>& indices) {
  return fmt::format("{}[{}]", tensor.name, fmt::join(indices, ", "));
}

Term KernelWriter::read(const DrawnTensor& tensor, const std::vector<std::string>& indices) {
  return {access(tensor, indices), tensor.values};
}

Term KernelWriter::read_over(const std::vector<std::string>& axes,
                             const std::vector<DrawnExtent>& shape, DType type) {
  std::vector<Term> candidates;
  for (const DrawnTensor& tensor : tensors_) {
    // A little less than a whole number is another integer.
    if (!tensor.values.whole && !is_float(type)) continue;
    std::vector<std::string> indices;
    for (const DrawnExtent& extent : tensor.shape) {
      std::vector<int> fitting;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == extent) fitting.push_back(static_cast<int>(d));
      }
      if (fitting.empty()) break;
      indices.push_back(axes[random.pick(fitting)]);
    }
    if (indices.size() == tensor.rank()) candidates.push_back(read(tensor, indices));
  }
  return candidates.empty() ? literal(type) : cast_to(type, random.pick(candidates));
}

DrawnInput KernelWriter::input_of(DrawnTensor tensor) {
  const DType type = tensor.type();
  DrawnInput input{std::move(tensor), DrawnInput::Fill::Whole, is_unsigned_int(type) ? 0 : -4, 4};
  if (is_rough_ && is_float(type)) {
    input.fill = DrawnInput::Fill::Real;
    input.tensor.values.whole = false;
  } else if (type == DType::Bool) {
    input.low = 0;
    input.high = 1;
  } else if (random.chance(0.1)) {
    input.fill = DrawnInput::Fill::Wild;
    input.tensor.values.bound =
        is_float(type) ? std::numeric_limits<double>::infinity() : exact_limit(type);
  }
  return input;
}

DrawnTensor KernelWriter::add_input(const std::vector<DrawnExtent>& shape, DType type) {
  const double bound = type == DType::Bool ? 1 : 4;
  inputs_.push_back(
      input_of({fmt::format("X{}", inputs_.size()), shape, {.type = type, .bound = bound}}));
  tensors_.push_back(inputs_.back().tensor);
  return inputs_.back().tensor;
}

DrawnTensor KernelWriter::add_own_input(const std::vector<DrawnExtent>& shape, DType type) {
  const DrawnTensor tensor{fmt::format("X{}", inputs_.size()), shape, {.type = type, .bound = 4}};
  inputs_.push_back({tensor, DrawnInput::Fill::Whole, is_unsigned_int(type) ? 0 : -4, 4});
  return tensor;
}

DrawnTensor KernelWriter::add_index_input(const std::vector<DrawnExtent>& shape, int64_t low,
                                          int64_t high, DrawnInput::Fill fill) {
  const DType type = random.pick(std::vector<DType>{DType::Int64, DType::Int32, DType::Int16,
                                                    low < 0 ? DType::Int8 : DType::UInt8});
  const DrawnTensor tensor{
      fmt::format("X{}", inputs_.size()),
      shape,
      {.type = type, .bound = static_cast<double>(std::max<int64_t>(high, 0))}};
  inputs_.push_back({tensor, fill, low, high});
  return tensor;
}

void KernelWriter::add_compute(const std::vector<DrawnExtent>& shape,
                               const std::vector<std::string>& axes, const Term& body) {
  add_compute({new_name(), shape, body.values}, axes, body.text);
}

void KernelWriter::add_compute(const DrawnTensor& tensor, const std::vector<std::string>& axes,
                               const std::string& body) {
  add_lines(fmt::format("  {} = {}\n", access(tensor, axes), body));
  declare(tensor);
}

void KernelWriter::declare(const DrawnTensor& tensor, bool may_be_read) {
  declarations_.push_back(tensor);
  if (!may_be_read) return;
  tensors_.push_back(tensor);
  computed_.push_back(tensor);
}

/// The last tensor, those that must be one, and now and then another.
std::set<std::string> KernelWriter::choose_outputs() {
  std::set<std::string> chosen = forced_outputs_;
  if (!computed_.empty()) chosen.insert(computed_.back().name);
  if (computed_.size() > 1 && random.chance(0.25)) {
    chosen.insert(computed_[random.below(static_cast<int>(computed_.size()) - 1)].name);
  }
  return chosen;
}

void KernelWriter::drop_unused_sizes(const std::vector<std::string>& parameters) {
  std::erase_if(sizes_, [&](const auto& size) {
    return std::none_of(parameters.begin(), parameters.end(), [&](const std::string& text) {
      return text.find("[" + size.first) != std::string::npos ||
             text.find(", " + size.first) != std::string::npos;
    });
  });
}

std::string KernelWriter::finish() {
  const std::set<std::string> outputs = choose_outputs();
  std::vector<std::string> parameters;
  for (const DrawnInput& input : inputs_)
    parameters.push_back(declaration(input.tensor));
  std::vector<std::string> results;
  std::string intermediates;
  for (const DrawnTensor& tensor : declarations_) {
    if (outputs.contains(tensor.name)) {
      results.push_back(declaration(tensor));
      errors_.push_back(tensor.values.error);
    } else {
      intermediates += fmt::format("  {}\n", declaration(tensor));
    }
  }
  drop_unused_sizes(parameters);
  return fmt::format("kernel random({}) -> ({}) {{\n{}{}}}\n", fmt::join(parameters, ", "),
                     fmt::join(results, ", "), intermediates, body_);
}

}  // namespace kiln::testing
