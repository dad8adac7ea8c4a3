// Draws reductions of rows, also such whose bounds are data or depend on other axes, and which may
// be empty.
#include <algorithm>

#include <fmt/format.h>

#include "tests/support/random_row.h"
#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

using Indices = std::vector<std::string>;

}  // namespace

Term reduced(Random& random, const std::string& range, const Term& element, int extent,
             bool may_be_empty) {
  const bool is_bool = element.type() == DType::Bool;
  if (!is_bool && random.chance(0.5)) {
    const Term each = summand(element, extent);
    return {fmt::format("sum[{}]({})", range, each.text), sum_of(each.values, extent)};
  }
  if (!is_bool && element.values.whole && random.chance(0.15)) {
    const Term each = is_float(element.type()) ? within(element, 1) : element;
    return computed(fmt::format("prod[{}]({})", range, each.text), each.type(),
                    is_float(each.type()) ? 1 : exact_limit(each.type()));
  }
  const bool first = random.chance(0.5);
  const char* name = is_bool ? (first ? "any" : "all") : (first ? "min" : "max");
  return {fmt::format("{}[{}]({})", name, range, element.text),
          extreme_of(element.values, may_be_empty ? 0 : extent)};
}

namespace {

/// The bounds of r below `extent`, which are data or depend on the first axis on the left.
std::string ragged_range(KernelWriter& writer, const Row& row) {
  Random& random = writer.random;
  const std::string end = row.extent.text();
  if (row.shape.empty() || random.chance(0.3)) {
    return fmt::format("{} <= r < {}", random.between(0, std::min(3, row.extent.value)), end);
  }
  const std::string& axis = row.axes[0];
  const int last = row.extent.value;
  const auto length = [&] {
    const DrawnTensor lengths = writer.add_index_input({row.shape[0]}, -1, last);
    return cast_to(DType::Int64, KernelWriter::read(lengths, {axis})).text;
  };
  switch (random.below(5)) {
    case 0: return fmt::format("r < min({} + 1, {})", axis, end);
    case 1: return fmt::format("min({}, {}) <= r < {}", axis, end, end);
    case 2:
      return random.chance(0.5) ? fmt::format("r < {}", length())
                                : fmt::format("r < min(max({}, 0), {})", length(), end);
    case 3: return fmt::format("max({}, 0) <= r < {}", length(), end);
    default: {
      const DrawnTensor ends =
          writer.add_index_input({row.shape[0]}, 0, last, DrawnInput::Fill::Sorted);
      const auto at = [&](const std::string& index) {
        return cast_to(DType::Int64, KernelWriter::read(ends, {index})).text;
      };
      return fmt::format("{} <= r < {}", at(fmt::format("max({} - 1, 0)", axis)), at(axis));
    }
  }
}

}  // namespace

Row row_of(KernelWriter& writer, const DrawnTensor& source, const std::string& index) {
  const int dimension = writer.random.below(static_cast<int>(source.rank()));
  Row row{source.shape, {}, source.shape[dimension], {}};
  row.shape.erase(row.shape.begin() + dimension);
  row.axes = KernelWriter::axes_of(row.shape.size());
  Indices indices = row.axes;
  indices.insert(indices.begin() + dimension, index);
  row.element = KernelWriter::read(source, indices);
  return row;
}

bool add_row_reduction(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0 || (source.rank() == 1 && writer.random.chance(0.6))) return false;
  const Row row = row_of(writer, source);
  writer.add_compute(row.shape, row.axes,
                     reduced(writer.random, fmt::format("r < {}", row.extent.text()), row.element,
                             row.extent.value, false));
  return true;
}

bool add_ragged_reduction(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0) return false;
  const Row row = row_of(writer, source);
  const std::string range = ragged_range(writer, row);
  writer.add_compute(row.shape, row.axes,
                     reduced(writer.random, range, row.element, row.extent.value, true));
  return true;
}

bool add_two_results(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() < 2) return false;
  const Row row = row_of(writer, source);
  const std::string range = fmt::format("r < {}", row.extent.text());
  std::string names;
  std::string bodies;
  for (int result = 0; result < 2; ++result) {
    const Term body = reduced(writer.random, range, row.element, row.extent.value, false);
    const DrawnTensor tensor{writer.new_name(), row.shape, body.values};
    names += (result == 0 ? "" : ", ") + KernelWriter::access(tensor, row.axes);
    bodies += (result == 0 ? "" : ", ") + body.text;
    writer.declare(tensor);
    writer.make_output(tensor);
  }
  writer.add_lines(fmt::format("  {} = {}\n", names, bodies));
  return true;
}

bool add_product(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0 || source.rank() > 2) return false;
  const DrawnExtent inner = source.shape.back();
  std::vector<const DrawnTensor*> partners;
  for (const DrawnTensor& tensor : writer.tensors()) {
    const size_t rank = source.rank() + tensor.rank();
    const bool has_inner = std::count(tensor.shape.begin(), tensor.shape.end(), inner) > 0;
    const bool fits = tensor.values.whole || is_float(source.type());
    if (rank >= 2 && rank <= 5 && tensor.rank() <= 2 && has_inner && fits)
      partners.push_back(&tensor);
  }
  if (partners.empty()) return false;
  const DrawnTensor partner = *writer.random.pick(partners);
  std::vector<DrawnExtent> shape = {source.shape.begin(), source.shape.end() - 1};
  Indices left = KernelWriter::axes_of(shape.size());
  left.emplace_back("r");
  Indices right;
  bool used = false;
  for (const DrawnExtent& extent : partner.shape) {
    if (extent == inner && !used) {
      right.emplace_back("r");
      used = true;
    } else {
      shape.push_back(extent);
      right.push_back(KernelWriter::axes_of(3)[shape.size() - 1]);
    }
  }
  const Term a = KernelWriter::read(source, left);
  const Term b = cast_to(source.type(), KernelWriter::read(partner, right));
  const Term each = summand(a, b, inner.value);
  const bool is_bool = source.type() == DType::Bool;
  writer.add_compute(
      shape, KernelWriter::axes_of(shape.size()),
      {fmt::format("{}[r < {}]({})", is_bool ? "any" : "sum", inner.text(), each.text),
       sum_of(each.values, inner.value)});
  return true;
}

}  // namespace kiln::testing
