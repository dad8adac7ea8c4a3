// Draws reductions inside expressions: beside other terms, in branches, two in one expression, and
// one in the source of another.
//
//   T[i] = max(sum[r < n](A[i, r] * B[i, r]), C[i])
#include <fmt/format.h>

#include "tests/support/random_row.h"
#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

/// A reduction over `index` of one dimension of the source, times a column of something that
/// fits, now and then.
Term inside(KernelWriter& writer, const DrawnTensor& source, const Row& row,
            const std::string& index) {
  const std::string range = fmt::format("{} < {}", index, row.extent.text());
  if (source.type() == DType::Bool || writer.random.chance(0.5)) {
    return reduced(writer.random, range, row.element, row.extent.value, false);
  }
  std::vector<std::string> axes = row.axes;
  std::vector<DrawnExtent> shape = row.shape;
  axes.push_back(index);
  shape.push_back(row.extent);
  const Term factor = writer.read_over(axes, shape, source.type());
  const Term each = summand(row.element, factor, row.extent.value);
  return {fmt::format("sum[{}]({})", range, each.text), sum_of(each.values, row.extent.value)};
}

Term mixed(Random& random, const Term& a, const Term& b) {
  switch (random.below(4)) {
    case 0: return add(a, b);
    case 1: return subtract(a, b);
    case 2: return smaller(a, b);
    default: return larger(b, a);
  }
}

/// The reduction where a condition holds that says nothing of what is read.
Term in_branch(KernelWriter& writer, const Row& row, const Term& reduction) {
  if (row.axes.empty()) return reduction;
  const Term other = writer.literal(reduction.type());
  return {fmt::format("if_then_else({} < {}, {}, {})", writer.random.pick(row.axes),
                      writer.random.between(0, 4), reduction.text, other.text),
          larger(reduction, other).values};
}

}  // namespace

bool add_inner_reduction(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0) return false;
  const Row row = row_of(writer, source);
  Term body = inside(writer, source, row, "r");
  if (writer.random.chance(0.2)) body = in_branch(writer, row, body);
  if (writer.random.chance(0.3)) {
    Row other = row;
    other.element = writer.read_over({"s"}, {row.extent}, source.type());
    body = mixed(writer.random, body, cast_to(body.type(), inside(writer, source, other, "s")));
  }
  body = mixed(writer.random, body, writer.read_over(row.axes, row.shape, body.type()));
  writer.add_compute(row.shape, row.axes, body);
  return true;
}

bool add_nested_reduction(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0) return false;
  Row row = row_of(writer, source);
  const Term inner = writer.read_over({"s"}, {row.extent}, source.type());
  const Term extreme = reduced(writer.random, fmt::format("s < {}", row.extent.text()), inner,
                               row.extent.value, false);
  row.element = mixed(writer.random, row.element, cast_to(source.type(), extreme));
  writer.add_compute(row.shape, row.axes,
                     reduced(writer.random, fmt::format("r < {}", row.extent.text()), row.element,
                             row.extent.value, false));
  return true;
}

}  // namespace kiln::testing
