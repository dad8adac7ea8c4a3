// Draws stages whose elements are computed one by one: of elements, casts, comparisons, neighbours,
// each with terms that stay exact.
#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

using Indices = std::vector<std::string>;

Term combine(KernelWriter& writer, const Term& a, const Term& b) {
  switch (writer.random.below(7)) {
    case 0: return add(a, b);
    case 1: return subtract(a, b);
    case 2: return multiply(a, writer.literal(a.type()));
    case 3: return smaller(a, b);
    case 4: return larger(a, b);
    case 5: return add(multiply(a, writer.literal(a.type())), b);
    default: return multiply(add(a, b), writer.literal(a.type()));
  }
}

/// What is known of either.
Values either(const Term& a, const Term& b) { return larger(a, b).values; }

Indices shifted(Indices indices, int dimension, int shift) {
  if (shift != 0)
    indices[static_cast<size_t>(dimension)] +=
        fmt::format(" {} {}", shift > 0 ? '+' : '-', std::abs(shift));
  return indices;
}

std::string condition_of_places(Random& random, const Indices& axes, std::string_view sign) {
  const std::string& a = random.pick(axes);
  const std::string& b = random.pick(axes);
  switch (random.below(4)) {
    case 0: return fmt::format("({} {} {})", a, sign, random.between(0, 9));
    case 1: return fmt::format("({} {} {} + {})", a, sign, b, random.between(-2, 2));
    case 2: return fmt::format("(floormod({} + {}, {}) {} 1)", a, b, random.between(2, 4), sign);
    default: return fmt::format("({} * 2 {} {} + 3 && {} != 5)", a, sign, b, b);
  }
}

}  // namespace

bool add_pointwise(KernelWriter& writer, const DrawnTensor& source) {
  std::vector<int> order;
  for (size_t d = 0; d < source.rank(); ++d)
    order.push_back(static_cast<int>(d));
  if (writer.random.chance(0.4)) writer.random.shuffle(order);
  std::vector<DrawnExtent> shape;
  for (const int d : order)
    shape.push_back(source.shape[d]);
  const Indices axes = KernelWriter::axes_of(shape.size());
  Indices indices(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    indices[order[d]] = axes[d];
  writer.add_compute(shape, axes,
                     combine(writer, KernelWriter::read(source, indices),
                             writer.read_over(axes, shape, source.type())));
  return true;
}

bool add_cast(KernelWriter& writer, const DrawnTensor& source) {
  DType type = writer.random_type();
  if (writer.random.chance(0.1))
    type = writer.random.pick(std::vector<DType>{DType::Float8E4M3FN, DType::Float8E5M2});
  if (type == source.type() || (!source.values.whole && !is_float(type))) return false;
  const Indices axes = KernelWriter::axes_of(source.rank());
  const Term value = cast_to(type, KernelWriter::read(source, axes));
  writer.add_compute(source.shape, axes, add(value, writer.literal(type)));
  return true;
}

bool add_comparison(KernelWriter& writer, const DrawnTensor& source) {
  const Indices axes = KernelWriter::axes_of(source.rank());
  const Term a = KernelWriter::read(source, axes);
  const Term b = writer.read_over(axes, source.shape, source.type());
  const bool of_places = source.rank() > 0 && writer.random.chance(0.3);
  // A comparison of what rounding moves may come out either way.
  if (!of_places && !(a.values.whole && b.values.whole)) return false;
  const char* sign = writer.random.pick(std::vector<const char*>{"<", "<=", "==", "!=", ">", ">="});
  const std::string condition = of_places ? condition_of_places(writer.random, axes, sign)
                                          : fmt::format("({} {} {})", a.text, sign, b.text);
  if (writer.random.chance(0.4)) {
    writer.add_compute(source.shape, axes, computed(condition, DType::Bool, 1));
    return true;
  }
  const char* choice = writer.random.chance(0.5) ? "select" : "if_then_else";
  writer.add_compute(
      source.shape, axes,
      {fmt::format("{}({}, {}, {})", choice, condition, b.text, a.text), either(a, b)});
  return true;
}

bool add_stencil(KernelWriter& writer, const DrawnTensor& source) {
  std::vector<int> wide;
  for (size_t d = 0; d < source.rank(); ++d) {
    if (source.shape[d].value >= 2) wide.push_back(static_cast<int>(d));
  }
  if (wide.empty()) return false;
  const int dimension = writer.random.pick(wide);
  std::vector<DrawnExtent> shape = source.shape;
  shape[dimension] = source.shape[dimension].less(2);
  const Indices axes = KernelWriter::axes_of(shape.size());
  Term body = KernelWriter::read(source, axes);
  for (int shift = 1; shift < 3; ++shift) {
    if (shift == 1 && writer.random.chance(0.3)) continue;
    body = add(body, KernelWriter::read(source, shifted(axes, dimension, shift)));
  }
  writer.add_compute(shape, axes, body);
  return true;
}

bool add_padding(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0) return false;
  const int dimension = writer.random.below(static_cast<int>(source.rank()));
  const bool both_sides = writer.random.chance(0.5);
  const Indices axes = KernelWriter::axes_of(source.rank());
  std::string condition = fmt::format("{} >= 1", axes[dimension]);
  if (both_sides) {
    condition +=
        fmt::format(" && {} < {}", axes[dimension], source.shape[dimension].less(1).text());
  }
  const Term inside = KernelWriter::read(source, shifted(axes, dimension, -1));
  const Term outside = writer.literal(source.type());
  writer.add_compute(source.shape, axes,
                     {fmt::format("if_then_else({}, {}, {})", condition, inside.text, outside.text),
                      either(inside, outside)});
  return true;
}

}  // namespace kiln::testing
