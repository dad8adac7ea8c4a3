#include "tests/support/kernel_writer.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::testing {
namespace {

const std::vector<std::string> kTypes = {"float32", "float32", "int32", "float64", "int64"};
const std::vector<std::string> kAxes = {"i", "j", "l"};
const std::vector<int> kExtents = {1, 2, 3, 5, 7, 8, 12, 16, 17, 31, 33};

}  // namespace

std::string DrawnExtent::text() const {
  if (variable.empty()) return std::to_string(offset);
  return offset == 0 ? variable : fmt::format("{} - {}", variable, offset);
}

DrawnExtent DrawnExtent::less(int by) const {
  return {variable, variable.empty() ? offset - by : offset + by, value - by};
}

KernelWriter::KernelWriter(Random& source) : random(source), type_(source.pick(kTypes)) {
  for (const char* name : {"n", "m", "k"}) {
    const int value = random.pick(kExtents);
    if (random.chance(0.5)) {
      extents_.push_back({name, 0, value});
      sizes_[name] = value;
    } else {
      extents_.push_back({"", value, value});
    }
  }
}

std::string KernelWriter::new_name() { return fmt::format("T{}", counter_++); }

std::string KernelWriter::literal() {
  const int value = random.between(-3, 3);
  return is_integral() ? fmt::format("({})", value) : fmt::format("({}.0)", value);
}

std::vector<std::string> KernelWriter::axes_of(size_t count) {
  return {kAxes.begin(), kAxes.begin() + static_cast<long>(count)};
}

std::string KernelWriter::access(const DrawnTensor& tensor,
                                 const std::vector<std::string>& indices) {
  return fmt::format("{}[{}]", tensor.name, fmt::join(indices, ", "));
}

std::string KernelWriter::read_over(const std::vector<std::string>& axes,
                                    const std::vector<DrawnExtent>& shape) {
  std::vector<std::string> candidates;
  for (const DrawnTensor& tensor : tensors_) {
    std::vector<std::string> indices;
    for (const DrawnExtent& extent : tensor.shape) {
      std::vector<int> fitting;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == extent) fitting.push_back(static_cast<int>(d));
      }
      if (fitting.empty()) break;
      indices.push_back(axes[random.pick(fitting)]);
    }
    if (indices.size() == tensor.shape.size()) candidates.push_back(access(tensor, indices));
  }
  return candidates.empty() ? literal() : random.pick(candidates);
}

DrawnTensor KernelWriter::add_input(const std::vector<DrawnExtent>& shape) {
  inputs_.push_back({fmt::format("X{}", inputs_.size()), shape});
  tensors_.push_back(inputs_.back());
  return inputs_.back();
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

std::string KernelWriter::declaration(const DrawnTensor& tensor) const {
  std::vector<std::string> shape;
  for (const DrawnExtent& extent : tensor.shape)
    shape.push_back(extent.text());
  return fmt::format("{}: {}[{}]", tensor.name, type_, fmt::join(shape, ", "));
}

/// The last tensor, those that must be one, and now and then another.
std::vector<std::string> KernelWriter::choose_outputs() {
  std::set<std::string> chosen = forced_outputs_;
  chosen.insert(computed_.back().name);
  if (computed_.size() > 1 && random.chance(0.25)) {
    chosen.insert(computed_[random.below(static_cast<int>(computed_.size()) - 1)].name);
  }
  return {chosen.begin(), chosen.end()};
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
  const std::vector<std::string> outputs = choose_outputs();
  std::vector<std::string> parameters;
  for (const DrawnTensor& input : inputs_)
    parameters.push_back(declaration(input));
  std::vector<std::string> results;
  std::string intermediates;
  for (const DrawnTensor& tensor : declarations_) {
    if (std::count(outputs.begin(), outputs.end(), tensor.name) > 0) {
      results.push_back(declaration(tensor));
    } else {
      intermediates += fmt::format("  {}\n", declaration(tensor));
    }
  }
  drop_unused_sizes(parameters);
  return fmt::format("kernel random({}) -> ({}) {{\n{}{}}}\n", fmt::join(parameters, ", "),
                     fmt::join(results, ", "), intermediates, body_);
}

}  // namespace kiln::testing
