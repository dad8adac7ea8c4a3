// What each stage of a kernel costs: counted from the definition, and measured by running the stage
// as a kernel of its own. Stages that share loops have no time of their own inside the whole, so
// the whole is the last row, and what sharing saved is the difference. The roof is that of S.
// Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", 2009,
// with both its lines measured by Kiln's own kernels.
#include "client/cli/measure_parts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "client/cpp/parts.h"

namespace kiln::cli {
namespace {

using GivenSizes = std::map<std::string, std::int64_t>;

constexpr double kMostBytes = 256e6;
constexpr double kMostOperations = 1e10;
constexpr std::int64_t kLargestTaken = 1024;
constexpr double kSeconds = 0.05;  // of one measurement
constexpr unsigned kMeasurements = 3;

struct Total {
  double operations = 0;
  double bytes = 0;
};

Total total_of(const std::vector<detail::DefinitionPart>& parts) {
  Total total;
  for (const detail::DefinitionPart& part : parts) {
    total.operations += part.operations;
    total.bytes += part.bytes_read + part.bytes_written;
  }
  return total;
}

/// The bytes of the parameters: what the whole has to move.
double parameter_bytes(const Definition& definition, const GivenSizes& sizes) {
  const std::vector<std::vector<std::int64_t>> shapes = detail::shapes_of(definition, sizes);
  const std::vector<Parameter> parameters = definition.parameters();
  double bytes = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto each = static_cast<double>(size_of(parameters[i].type));
    for (const std::int64_t extent : shapes[i])
      each *= static_cast<double>(extent);
    bytes += each;
  }
  return bytes;
}

Array made_up(DType type, const std::vector<std::int64_t>& shape) {
  Array array(shape, type, SourceLocation::none());
  std::uint32_t state = 1;
  const auto next = [&state] {
    state = state * 1664525U + 1013904223U;
    return 0.5 + static_cast<double>(state >> 8) / static_cast<double>(1U << 25);
  };
  if (type == float32) {
    for (float& value : array.values<float>())
      value = static_cast<float>(next());
  } else if (type == float64) {
    for (double& value : array.values<double>())
      value = next();
  }
  return array;
}

}  // namespace

std::vector<Argument> made_up_inputs(const Definition& definition, const GivenSizes& sizes) {
  const std::vector<std::vector<std::int64_t>> shapes = detail::shapes_of(definition, sizes);
  const std::vector<Parameter> parameters = definition.parameters();
  std::vector<Argument> inputs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].output) inputs.emplace_back(made_up(parameters[i].type, shapes[i]));
  }
  return inputs;
}

double PartCost::least(const Roof& roof) const {
  return std::max(operations / roof.operations, bytes / roof.bytes);
}

std::string PartCost::bound(const Roof& roof) const {
  return operations / roof.operations > bytes / roof.bytes ? "operations" : "bytes";
}

GivenSizes with_sizes_taken(const Definition& definition, GivenSizes given) {
  for (std::int64_t taken = kLargestTaken; taken >= 1; taken /= 2) {
    GivenSizes sizes = given;
    for (const std::string& name : definition.sizes())
      sizes.emplace(name, taken);
    const Total total = total_of(detail::parts_of(definition, sizes));
    const bool fits = total.bytes <= kMostBytes && total.operations <= kMostOperations;
    if (fits || taken == 1 || sizes.size() == given.size()) return sizes;
  }
  return given;
}

GivenSizes sizes_of_inputs(const Definition& definition, const std::vector<Argument>& inputs) {
  const std::vector<std::string> known = definition.sizes();
  GivenSizes sizes;
  std::size_t at = 0;
  for (const Parameter& parameter : definition.parameters()) {
    if (parameter.output || at >= inputs.size()) continue;
    const auto& shape = std::visit(
        [](const auto& array) -> const auto& { return array.shape(); }, inputs[at++]);
    for (std::size_t d = 0; d < std::min(shape.size(), parameter.shape.size()); ++d) {
      if (std::find(known.begin(), known.end(), parameter.shape[d]) != known.end())
        sizes.emplace(parameter.shape[d], shape[d]);
    }
  }
  return sizes;
}

double PartMeasure::seconds(const Kernel& kernel, const Definition& definition,
                            const std::vector<Argument>& inputs) const {
  const std::vector<Argument> arguments =
      inputs.empty() ? made_up_inputs(definition, call_.sizes) : inputs;
  const SourceLocation nowhere = SourceLocation::none();
  const double once = kernel.measure(arguments, 1, 2, call_, nowhere).back();
  const auto repeat =
      static_cast<unsigned>(std::clamp(kSeconds / std::max(once, 1e-7), 1.0, 10'000.0));
  const std::vector<double> all = kernel.measure(arguments, repeat, kMeasurements, call_, nowhere);
  return std::min(once, *std::min_element(all.begin(), all.end()));
}

double PartMeasure::seconds(const Definition& definition,
                            const std::vector<Argument>& inputs) const {
  return seconds(connection_.build(definition, build_, SourceLocation::none()), definition, inputs);
}

Roof PartMeasure::roof(const std::string& dtype) const {
  constexpr double kRows = 768;
  constexpr double kLong = 1 << 23;
  const std::string product = fmt::format(
      "kernel product(A: {0}[n, n], B: {0}[n, n]) -> (C: {0}[n, n]) {{\n"
      "  C[i, j] = sum[k < n](A[i, k]*B[k, j])\n}}\n",
      dtype);
  const std::string triad = fmt::format(
      "kernel triad(A: {0}[n], B: {0}[n]) -> (C: {0}[n]) {{\n"
      "  C[i] = A[i] + B[i]*3.0\n}}\n",
      dtype);
  const auto measured = [this](const std::string& text, double size) {
    PartMeasure with_size = *this;
    with_size.call_.sizes = {{"n", static_cast<std::int64_t>(size)}};
    return with_size.seconds(parse(text, "the roof").front(), {});
  };
  const auto bytes = static_cast<double>(size_of(*find_dtype(dtype)));
  return {.operations = 2 * kRows * kRows * kRows / measured(product, kRows),
          .bytes = 3 * kLong * bytes / measured(triad, kLong)};
}

std::vector<PartCost> parts_unmeasured(const Definition& definition, const GivenSizes& sizes) {
  std::vector<PartCost> costs;
  const std::vector<detail::DefinitionPart> parts = detail::parts_of(definition, sizes);
  if (parts.size() > 1) {
    for (const detail::DefinitionPart& part : parts) {
      costs.push_back({.name = part.name,
                       .operations = part.operations,
                       .bytes = part.bytes_read + part.bytes_written,
                       .seconds = std::nullopt});
    }
  }
  costs.push_back({.name = definition.name(),
                   .operations = total_of(parts).operations,
                   .bytes = parameter_bytes(definition, sizes),
                   .seconds = std::nullopt});
  return costs;
}

std::vector<PartCost> PartMeasure::parts(
    const Definition& definition, const Kernel& compiled, const std::vector<Argument>& inputs,
    const std::function<void(const std::string&)>& tell) const {
  std::vector<PartCost> costs = parts_unmeasured(definition, call_.sizes);
  std::size_t at = 0;
  if (costs.size() > 1) {
    for (const detail::DefinitionPart& part : detail::parts_of(definition, call_.sizes)) {
      tell(part.name);
      costs[at++].seconds = seconds(part.definition, {});
    }
  }
  tell(definition.name());
  costs.back().seconds = seconds(compiled, definition, inputs);
  return costs;
}

}  // namespace kiln::cli
