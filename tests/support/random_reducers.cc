// Draws reducers of the user's own (places of extremes, pairs of sums) and conditions of
// reductions.
#include <algorithm>

#include <fmt/format.h>

#include "tests/support/random_row.h"
#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

/// A row, with a condition that may be what keeps its elements inside of the tensor.
struct PickedRow {
  Row row;
  std::string where;  // ", where=...", or nothing
};

PickedRow picked_row(KernelWriter& writer, const DrawnTensor& source) {
  Random& random = writer.random;
  if (random.chance(0.25)) {
    const Row row = row_of(writer, source, "r + 1");
    return {row, fmt::format(", where=r + 1 < {}", row.extent.text())};
  }
  const Row row = row_of(writer, source);
  std::vector<std::string> conditions = {"floormod(r, 3) != 1",
                                         fmt::format("r > {}", random.below(3))};
  if (!row.axes.empty()) conditions.push_back(fmt::format("r <= {}", row.axes[0]));
  if (source.type() == DType::Bool) {
    conditions.push_back(row.element.text);
  } else if (source.values.whole) {
    conditions.push_back(
        fmt::format("{} > {}", row.element.text, writer.literal(source.type()).text));
  }
  if (random.chance(0.3)) return {row, ""};
  return {row, ", where=" + random.pick(conditions)};
}

/// The smallest value of a type, as text.
std::string lowest(DType type) {
  switch (type) {
    case DType::Int8: return "-128";
    case DType::Int16: return "-32768";
    case DType::Int32: return "-2147483648";
    case DType::Int64: return "-9223372036854775808";
    case DType::Float8E4M3FN: return "-448";  // it has no infinities
    default: return is_float(type) ? "-inf" : "0";
  }
}

/// `first, second` or the other way round.
std::string in_order(bool forward, const std::string& first, const std::string& second) {
  return forward ? first + ", " + second : second + ", " + first;
}

/// One tensor a value of a reducer, named in the order of the values.
void add_tuple(KernelWriter& writer, const Row& row, bool forward, const Values& first,
               const Values& second, const std::string& reduction) {
  const DrawnTensor a{writer.new_name(), row.shape, first};
  const DrawnTensor b{writer.new_name(), row.shape, second};
  for (const DrawnTensor& tensor : {a, b}) {
    writer.declare(tensor);
    writer.make_output(tensor);
  }
  writer.add_lines(fmt::format(
      "  {} = {}\n",
      in_order(forward, KernelWriter::access(a, row.axes), KernelWriter::access(b, row.axes)),
      reduction));
}

/// The last place of the largest element, and that.
void add_last_place(KernelWriter& writer, const PickedRow& picked) {
  const auto& [row, where] = picked;
  const DType type = row.element.type();
  const std::string name = "last" + writer.new_name();
  const bool forward = writer.random.chance(0.5);
  const std::string wins = "w > v || w == v && j > i";
  writer.add_lines(fmt::format("  reducer {}(({}), ({})) = {} identity {}\n", name,
                               in_order(forward, "i: int64", fmt::format("v: {}", type)),
                               in_order(forward, "j", "w"),
                               in_order(forward, fmt::format("select({}, j, i)", wins),
                                        fmt::format("select({}, w, v)", wins)),
                               in_order(forward, "-1", lowest(type))));
  std::string init;
  Values value = extreme_of(row.element.values, 0);
  if (writer.random.chance(0.4)) {
    const Term start = writer.read_over(row.axes, row.shape, type);
    if (start.values.whole) {
      value = larger(row.element, start).values;
      init = fmt::format(", init=({})", in_order(forward, "100", start.text));
    }
  }
  Values place{.type = DType::Int64};
  place.bound = 100;
  add_tuple(writer, row, forward, place, value,
            fmt::format("{}[r < {}]({}{}{})", name, row.extent.text(),
                        in_order(forward, "r", row.element.text), where, init));
}

/// Two totals at once: how many there are, and the sum or the largest.
void add_totals(KernelWriter& writer, const PickedRow& picked) {
  const auto& [row, where] = picked;
  const std::string name = "totals" + writer.new_name();
  const bool forward = writer.random.chance(0.5);
  const Term each = summand(row.element, row.extent.value);
  writer.add_lines(fmt::format("  reducer {}(({}), ({})) = {} identity {}\n", name,
                               in_order(forward, "c: int32", fmt::format("s: {}", each.type())),
                               in_order(forward, "d", "t"), in_order(forward, "c + d", "s + t"),
                               "0, 0"));
  Values count{.type = DType::Int32};
  count.bound = row.extent.value;
  add_tuple(writer, row, forward, count, sum_of(each.values, row.extent.value),
            fmt::format("{}[r < {}]({}{})", name, row.extent.text(),
                        in_order(forward, "1", each.text), where));
}

/// The element that is farthest from zero, inside an expression or alone.
void add_farthest(KernelWriter& writer, const PickedRow& picked) {
  const auto& [row, where] = picked;
  const DType type = row.element.type();
  const std::string name = "farthest" + writer.new_name();
  writer.add_lines(
      fmt::format("  reducer {}(a: {}, b) = select(max(a, 0 - a) < max(b, 0 - b) || max(a, 0 - a) "
                  "== max(b, 0 - b) "
                  "&& a < b, b, a) identity 0\n",
                  name, type));
  const std::string text =
      fmt::format("{}[r < {}]({}{})", name, row.extent.text(), row.element.text, where);
  const Term result{text, row.element.values};
  writer.add_compute(row.shape, row.axes,
                     writer.random.chance(0.4) ? add(result, writer.literal(type)) : result);
}

}  // namespace

bool add_own_reducer(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0 || !source.values.whole || source.type() == DType::Bool) return false;
  const PickedRow picked = picked_row(writer, source);
  switch (writer.random.below(3)) {
    case 0: add_last_place(writer, picked); break;
    case 1: add_totals(writer, picked); break;
    default:
      // The smallest integer has no magnitude of its type.
      if (source.values.bound > 100) return false;
      add_farthest(writer, picked);
  }
  return true;
}

bool add_conditional_reduction(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0 || source.type() == DType::Bool) return false;
  const auto [row, where] = picked_row(writer, source);
  const int count = row.extent.value + 1;
  const bool is_sum = writer.random.chance(0.6);
  const Term each = is_sum ? summand(row.element, count) : row.element;
  std::string init;
  Values values = is_sum ? sum_of(each.values, count) : extreme_of(each.values, 0);
  if (where.empty() || writer.random.chance(0.5)) {
    Term start = writer.read_over(row.axes, row.shape, each.type());
    if (is_sum) start = summand(start, count);
    if (start.type() == each.type()) {
      init = ", init=" + start.text;
      const Values both = larger(each, start).values;
      values = is_sum ? sum_of(both, count) : both;
    }
  }
  const char* name = is_sum ? "sum" : writer.random.chance(0.5) ? "min" : "max";
  writer.add_compute(
      row.shape, row.axes,
      {fmt::format("{}[r < {}]({}{}{})", name, row.extent.text(), each.text, where, init), values});
  return true;
}

}  // namespace kiln::testing
