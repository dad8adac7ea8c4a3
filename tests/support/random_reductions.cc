#include <algorithm>

#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {

bool add_row_reduction(KernelWriter& writer, const DrawnTensor& source) {
  if (source.shape.size() < 2) return false;
  const int dimension = writer.random.below(static_cast<int>(source.shape.size()));
  DrawnTensor tensor{writer.new_name(), source.shape};
  tensor.shape.erase(tensor.shape.begin() + dimension);
  const std::vector<std::string> axes = KernelWriter::axes_of(tensor.shape.size());
  std::vector<std::string> indices = axes;
  indices.insert(indices.begin() + dimension, "r");
  const std::string combiner =
      writer.random.pick(std::vector<std::string>{"sum", "sum", "max", "min"});
  writer.add_compute(tensor, axes,
                     fmt::format("{}[r < {}]({})", combiner, source.shape[dimension].text(),
                                 KernelWriter::access(source, indices)));
  return true;
}

bool add_product(KernelWriter& writer, const DrawnTensor& source) {
  const DrawnExtent inner = source.shape.back();
  std::vector<const DrawnTensor*> partners;
  for (const DrawnTensor& tensor : writer.tensors()) {
    const size_t rank = source.shape.size() + tensor.shape.size() - 2;
    const bool has_inner = std::count(tensor.shape.begin(), tensor.shape.end(), inner) > 0;
    if (rank >= 1 && rank <= 3 && tensor.shape.size() <= 2 && has_inner) {
      partners.push_back(&tensor);
    }
  }
  if (partners.empty() || source.shape.size() > 2) return false;
  const DrawnTensor partner = *writer.random.pick(partners);
  DrawnTensor tensor{writer.new_name(), {source.shape.begin(), source.shape.end() - 1}};
  std::vector<std::string> left = KernelWriter::axes_of(tensor.shape.size());
  left.push_back("r");
  std::vector<std::string> right;
  bool used = false;
  for (const DrawnExtent& extent : partner.shape) {
    if (extent == inner && !used) {
      right.push_back("r");
      used = true;
    } else {
      tensor.shape.push_back(extent);
      right.push_back(KernelWriter::axes_of(3)[tensor.shape.size() - 1]);
    }
  }
  writer.add_compute(
      tensor, KernelWriter::axes_of(tensor.shape.size()),
      fmt::format("sum[r < {}]({} * {})", inner.text(), KernelWriter::access(source, left),
                  KernelWriter::access(partner, right)));
  return true;
}

}  // namespace kiln::testing
