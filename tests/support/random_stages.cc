#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

std::string combine(KernelWriter& writer, const std::string& a, const std::string& b) {
  switch (writer.random.below(7)) {
    case 0: return fmt::format("{} + {}", a, b);
    case 1: return fmt::format("{} - {}", a, b);
    case 2: return fmt::format("{} * {}", a, writer.literal());
    case 3: return fmt::format("min({}, {})", a, b);
    case 4: return fmt::format("max({}, {})", a, b);
    case 5: return fmt::format("select({} < {}, {}, {})", a, b, b, a);
    default: return fmt::format("({} + {}) * {}", a, b, writer.literal());
  }
}

}  // namespace

bool add_pointwise(KernelWriter& writer, const DrawnTensor& source) {
  std::vector<int> order;
  for (size_t d = 0; d < source.shape.size(); ++d)
    order.push_back(static_cast<int>(d));
  if (writer.random.chance(0.4)) writer.random.shuffle(order);
  DrawnTensor tensor{writer.new_name(), {}};
  for (const int d : order)
    tensor.shape.push_back(source.shape[d]);
  const std::vector<std::string> axes = KernelWriter::axes_of(tensor.shape.size());
  std::vector<std::string> indices(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    indices[order[d]] = axes[d];
  writer.add_compute(
      tensor, axes,
      combine(writer, KernelWriter::access(source, indices), writer.read_over(axes, tensor.shape)));
  return true;
}

bool add_stencil(KernelWriter& writer, const DrawnTensor& source) {
  std::vector<int> wide;
  for (size_t d = 0; d < source.shape.size(); ++d) {
    if (source.shape[d].value >= 3) wide.push_back(static_cast<int>(d));
  }
  if (wide.empty()) return false;
  const int dimension = writer.random.pick(wide);
  DrawnTensor tensor{writer.new_name(), source.shape};
  tensor.shape[dimension] = source.shape[dimension].less(2);
  const std::vector<std::string> axes = KernelWriter::axes_of(tensor.shape.size());
  std::string body;
  for (int shift = 0; shift < 3; ++shift) {
    if (shift == 1 && writer.random.chance(0.3)) continue;
    std::vector<std::string> indices = axes;
    if (shift > 0) indices[dimension] += fmt::format(" + {}", shift);
    body += (body.empty() ? "" : " + ") + KernelWriter::access(source, indices);
  }
  writer.add_compute(tensor, axes, body);
  return true;
}

bool add_padding(KernelWriter& writer, const DrawnTensor& source) {
  const int dimension = writer.random.below(static_cast<int>(source.shape.size()));
  const bool both_sides = writer.random.chance(0.5);
  const DrawnTensor tensor{writer.new_name(), source.shape};
  const std::vector<std::string> axes = KernelWriter::axes_of(tensor.shape.size());
  std::vector<std::string> indices = axes;
  indices[dimension] += " - 1";
  std::string condition = fmt::format("{} >= 1", axes[dimension]);
  if (both_sides) {
    condition +=
        fmt::format(" && {} < {}", axes[dimension], source.shape[dimension].less(1).text());
  }
  writer.add_compute(tensor, axes,
                     fmt::format("if_then_else({}, {}, {})", condition,
                                 KernelWriter::access(source, indices), writer.literal()));
  return true;
}

}  // namespace kiln::testing
