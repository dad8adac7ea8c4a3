// Draws scans: forwards and in reverse, time in any dimension, one to three initial steps, one
// state or two, stages in the cell, reads across columns.
#include <algorithm>

#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

using Indices = std::vector<std::string>;

/// A state with time in some dimension, either way, and an input of the same shape.
struct Scan {
  DrawnTensor input;
  DrawnTensor state;
  size_t time = 0;
  bool reverse = false;
  int steps = 1;  // initial ones

  const DrawnExtent& length() const { return state.shape[time]; }
  /// "[t, i]": `index` in the place of time, names of axes elsewhere.
  Indices at(const std::string& index) const {
    Indices indices = KernelWriter::axes_of(state.shape.size() - 1);
    indices.insert(indices.begin() + static_cast<long>(time), index);
    return indices;
  }
  std::string back(int steps_back) const {
    return fmt::format("t {} {}", reverse ? '+' : '-', steps_back);
  }
  /// The step that is `before` the last one.
  std::string last(int before) const {
    return reverse ? std::to_string(before) : fmt::format("{} - {}", length().text(), before + 1);
  }
  Term now(const DrawnTensor& tensor) const { return KernelWriter::read(tensor, at("t")); }
  Term before(int steps_back) const { return KernelWriter::read(state, at(back(steps_back))); }
};

/// What every state may have after `step` has been made as often as there is time. It is drawn
/// from the state's own values, which grow: only the text of the last one serves.
template <typename Step>
Term settle(Scan& scan, Step step) {
  Term result{"", scan.state.values};
  for (int t = 0; t < std::max(1, scan.length().value); ++t) {
    result = step();
    scan.state.values = larger(result, {"", scan.state.values}).values;
  }
  return result;
}

Scan begin_scan(KernelWriter& writer) {
  Random& random = writer.random;
  Scan scan;
  std::vector<DrawnTensor> known;
  for (const DrawnTensor& tensor : writer.tensors()) {
    const bool fits = tensor.rank() > 1 && tensor.type() != DType::Bool &&
                      std::all_of(tensor.shape.begin(), tensor.shape.end(),
                                  [](const DrawnExtent& extent) { return extent.value > 0; });
    if (fits) known.push_back(tensor);
  }
  if (!known.empty() && random.chance(0.4)) {
    scan.input = random.pick(known);
  } else {
    std::vector<DrawnExtent> shape;
    for (int rank = random.chance(0.25) ? 3 : 2; rank > 0; --rank) {
      const DrawnExtent extent = random.pick(writer.extents());
      shape.push_back(extent.value > 0 ? extent : DrawnExtent{"", 3, 3});
    }
    scan.input = writer.add_input(shape, writer.type());
  }
  scan.state = {writer.new_name(), scan.input.shape, scan.input.values};
  const auto rank = static_cast<int>(scan.input.shape.size());
  if (random.chance(0.5)) scan.time = static_cast<size_t>(random.below(rank));
  scan.reverse = random.chance(0.4);
  scan.steps = random.between(1, std::min(3, scan.length().value));
  return scan;
}

/// The lines for the initial steps of `state`, whose indices `at` gives; `value` is of an index.
template <typename At, typename Value>
std::string initial_lines(Random& random, const Scan& scan, const std::string& state, At at,
                          Value value) {
  const std::string extent = scan.length().text();
  const auto line = [&](const std::string& index, const std::string& of) {
    return fmt::format("    {} = {}\n", KernelWriter::access({state, {}}, at(index)), value(of));
  };
  if (random.chance(0.5)) {
    if (!scan.reverse) return line(fmt::format("z < {}", scan.steps), "z");
    const std::string index = fmt::format("{} - {} + z", extent, scan.steps);
    return line(index, index);
  }
  std::string lines;
  for (int step = 0; step < scan.steps; ++step) {
    const std::string index =
        scan.reverse ? fmt::format("{} - {}", extent, step + 1) : std::to_string(step);
    lines += line(index, index);
  }
  return lines;
}

/// The scan with `lines` besides the first steps of the state and its `update`.
void add_text(KernelWriter& writer, const Scan& scan, std::string_view lines, const Term& update) {
  const auto at = [&](const std::string& index) { return scan.at(index); };
  const auto value = [&](const std::string& index) {
    return KernelWriter::access(scan.input, scan.at(index));
  };
  writer.add_lines(fmt::format("  scan t{} {{\n{}{}    {} = {}\n  }}\n",
                               scan.reverse ? " reverse" : "",
                               initial_lines(writer.random, scan, scan.state.name, at, value),
                               lines, scan.now(scan.state).text, update.text));
}

/// `lines` are those of the scan but for the first steps of the state, the last of which is the
/// update of the state. Now and then only a step near the end is needed.
void end_scan(KernelWriter& writer, const Scan& scan, std::string_view lines, const Term& update) {
  add_text(writer, scan, lines, update);
  const bool only_last = writer.random.chance(0.35);
  writer.declare(scan.state, !only_last);
  if (!only_last) return;
  const int before = writer.random.between(0, std::min(scan.steps + 1, scan.length().value - 1));
  std::vector<DrawnExtent> shape = scan.state.shape;
  shape.erase(shape.begin() + static_cast<long>(scan.time));
  writer.add_compute(shape, KernelWriter::axes_of(shape.size()),
                     KernelWriter::read(scan.state, scan.at(scan.last(before))));
}

}  // namespace

void add_plain_scan(KernelWriter& writer) {
  Scan scan = begin_scan(writer);
  const bool reads_far = writer.random.chance(0.5);
  const Term literal = writer.literal(scan.state.type());
  const Term update = settle(scan, [&] {
    const Term far = reads_far ? scan.before(scan.steps) : literal;
    return add(larger(scan.before(1), far), scan.now(scan.input));
  });
  end_scan(writer, scan, "", update);
}

void add_running_scan(KernelWriter& writer) {
  const auto constant = [](int value) { return DrawnExtent{"", value, value}; };
  Random& random = writer.random;
  Scan scan;
  scan.input = writer.add_input({constant(random.between(2, 9)), constant(random.between(2, 24))},
                                writer.type());
  scan.state = {writer.new_name(), scan.input.shape, scan.input.values};
  scan.reverse = random.chance(0.25);
  const Term update = settle(scan, [&] { return add(scan.before(1), scan.now(scan.input)); });
  add_text(writer, scan, "", update);
  writer.declare(scan.state, false);
  writer.make_output(scan.state);
}

void add_scan_of_two_stages(KernelWriter& writer) {
  Scan scan = begin_scan(writer);
  // Time may stand elsewhere in the first stage.
  std::vector<size_t> order(scan.state.rank());
  for (size_t d = 0; d < order.size(); ++d)
    order[d] = d;
  if (writer.random.chance(0.4)) writer.random.shuffle(order);
  DrawnTensor cell{writer.new_name(), {}};
  Indices indices;
  for (const size_t d : order) {
    cell.shape.push_back(scan.state.shape[d]);
    indices.push_back(scan.at("t")[d]);
  }
  const Term factor = writer.literal(scan.state.type());
  const int back = writer.random.between(1, scan.steps);
  Term first;
  const Term update = settle(scan, [&] {
    first = multiply(scan.before(back), factor);
    cell.values = first.values;
    return add(KernelWriter::read(cell, indices), scan.now(scan.input));
  });
  writer.declare(cell, false);
  end_scan(writer, scan,
           fmt::format("    {} = {}\n", KernelWriter::access(cell, indices), first.text), update);
}

void add_scan_of_two_states(KernelWriter& writer) {
  Scan scan = begin_scan(writer);
  // The second has the first element of what follows time in the first.
  DrawnTensor second{writer.new_name(), scan.state.shape};
  if (writer.random.chance(0.5)) second.shape.resize(scan.time + 1);
  const auto at = [&](const std::string& index) {
    Indices indices = scan.at(index);
    indices.resize(second.shape.size());
    return indices;
  };
  Indices first = scan.at(scan.back(1));
  std::fill(first.begin() + static_cast<long>(scan.time) + 1, first.end(), "0");
  const Term start = writer.literal(scan.state.type());
  const Term update = settle(scan, [&] { return subtract(scan.before(1), scan.now(scan.input)); });
  second.values = larger({"", scan.state.values}, start).values;
  const Term latest =
      larger(KernelWriter::read(second, at(scan.back(1))), KernelWriter::read(scan.state, first));
  writer.declare(second, false);
  if (writer.random.chance(0.7)) writer.make_output(second);
  end_scan(writer, scan,
           initial_lines(writer.random, scan, second.name, at,
                         [&](const std::string&) { return start.text; }) +
               fmt::format("    {} = {}\n", KernelWriter::access(second, at("t")), latest.text),
           update);
}

void add_scan_reading_across(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  const size_t across = scan.time == 0 ? 1 : 0;
  Indices mirrored = scan.at(scan.back(scan.steps));
  mirrored[across] = fmt::format("{} - 1 - {}", scan.state.shape[across].text(), mirrored[across]);
  end_scan(writer, scan, "",
           smaller(KernelWriter::read(scan.state, mirrored), scan.now(scan.input)));
}

void add_scan_of_gathers(KernelWriter& writer) {
  Scan scan = begin_scan(writer);
  const size_t across = scan.time == 0 ? 1 : 0;
  const DrawnExtent& width = scan.state.shape[across];
  const DrawnTensor places = writer.add_index_input({width}, 0, width.value - 1);
  Indices indices = scan.at(scan.back(1));
  indices[across] = cast_to(DType::Int64, KernelWriter::read(places, {scan.at("t")[across]})).text;
  const Term update = settle(scan, [&] {
    return subtract(KernelWriter::read(scan.state, indices), scan.now(scan.input));
  });
  end_scan(writer, scan, "", update);
}

void add_scan_of_products(KernelWriter& writer) {
  Scan scan = begin_scan(writer);
  const DType type = scan.state.type();
  const size_t inner = scan.time + 1 == scan.state.rank() ? scan.time - 1 : scan.state.rank() - 1;
  const DrawnExtent& width = scan.state.shape[inner];
  const DrawnTensor weights = writer.add_input({width, width}, type);
  Indices row = scan.at(scan.back(1));
  row[inner] = "r";
  const Indices column = {"r", scan.at("t")[inner]};
  // Of numbers that are not whole, rounding must not grow with time.
  const Term scale{"0.015625", {.type = type, .bound = 0.015625, .whole = false}};
  DrawnTensor cell{writer.new_name(), scan.state.shape};
  const bool has_cell = writer.random.chance(0.7);
  Term product;
  const Term update = settle(scan, [&] {
    const Term each = summand(KernelWriter::read(scan.state, row),
                              KernelWriter::read(weights, column), width.value);
    const Term sum{fmt::format("sum[r < {}]({})", width.text(), each.text),
                   sum_of(each.values, width.value)};
    product = sum;
    cell.values = product.values;
    Term whole = has_cell ? scan.now(cell) : product;
    if (!whole.values.whole) whole = multiply(whole, scale);
    return add(cast_to(type, whole), scan.now(scan.input));
  });
  std::string lines;
  if (has_cell) {
    writer.declare(cell, false);
    lines = fmt::format("    {} = {}\n", scan.now(cell).text, product.text);
  }
  end_scan(writer, scan, lines, update);
}

}  // namespace kiln::testing
