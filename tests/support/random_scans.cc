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
  std::string now(const DrawnTensor& tensor) const { return KernelWriter::access(tensor, at("t")); }
  std::string before(int steps_back) const {
    return KernelWriter::access(state, at(back(steps_back)));
  }
};

Scan begin_scan(KernelWriter& writer) {
  Random& random = writer.random;
  Scan scan;
  std::vector<DrawnTensor> known;
  for (const DrawnTensor& tensor : writer.tensors()) {
    const bool fits = tensor.shape.size() > 1 &&
                      std::all_of(tensor.shape.begin(), tensor.shape.end(),
                                  [](const DrawnExtent& extent) { return extent.value > 0; });
    if (fits) known.push_back(tensor);
  }
  if (!known.empty() && random.chance(0.4)) {
    scan.input = random.pick(known);
  } else {
    std::vector<DrawnExtent> shape;
    for (int rank = random.chance(0.25) ? 3 : 2; rank > 0; --rank)
      shape.push_back(random.pick(writer.extents()));
    scan.input = writer.add_input(shape);
  }
  scan.state = {writer.new_name(), scan.input.shape};
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

/// `lines` are those of the scan but for the first steps of the state. Now and then only a step
/// near the end is needed.
void end_scan(KernelWriter& writer, const Scan& scan, std::string_view lines) {
  const auto at = [&](const std::string& index) { return scan.at(index); };
  const auto value = [&](const std::string& index) {
    return KernelWriter::access(scan.input, scan.at(index));
  };
  writer.add_lines(fmt::format("  scan t{} {{\n{}{}  }}\n", scan.reverse ? " reverse" : "",
                               initial_lines(writer.random, scan, scan.state.name, at, value),
                               lines));
  const bool only_last = writer.random.chance(0.35);
  writer.declare(scan.state, !only_last);
  if (!only_last) return;
  const int before = writer.random.between(0, std::min(scan.steps + 1, scan.length().value - 1));
  DrawnTensor result{writer.new_name(), scan.state.shape};
  result.shape.erase(result.shape.begin() + static_cast<long>(scan.time));
  writer.add_compute(result, KernelWriter::axes_of(result.shape.size()),
                     KernelWriter::access(scan.state, scan.at(scan.last(before))));
}

}  // namespace

void add_plain_scan(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  const std::string far = writer.random.chance(0.5) ? scan.before(scan.steps) : writer.literal();
  end_scan(writer, scan,
           fmt::format("    {} = max({}, {}) + {}\n", scan.now(scan.state), scan.before(1), far,
                       scan.now(scan.input)));
}

void add_scan_of_two_stages(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  // Time may stand elsewhere in the first stage.
  std::vector<size_t> order(scan.state.shape.size());
  for (size_t d = 0; d < order.size(); ++d)
    order[d] = d;
  if (writer.random.chance(0.4)) writer.random.shuffle(order);
  DrawnTensor cell{writer.new_name(), {}};
  Indices indices;
  for (const size_t d : order) {
    cell.shape.push_back(scan.state.shape[d]);
    indices.push_back(scan.at("t")[d]);
  }
  writer.declare(cell, false);
  const std::string now = KernelWriter::access(cell, indices);
  end_scan(writer, scan,
           fmt::format("    {} = {} * {}\n    {} = {} + {}\n", now,
                       scan.before(writer.random.between(1, scan.steps)), writer.literal(),
                       scan.now(scan.state), now, scan.now(scan.input)));
}

void add_scan_of_two_states(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
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
  const std::string value = writer.literal();
  writer.declare(second, false);
  if (writer.random.chance(0.7)) writer.make_output(second);
  end_scan(
      writer, scan,
      initial_lines(writer.random, scan, second.name, at,
                    [&](const std::string&) { return value; }) +
          fmt::format("    {} = {} - {}\n    {} = max({}, {})\n", scan.now(scan.state),
                      scan.before(1), scan.now(scan.input), KernelWriter::access(second, at("t")),
                      KernelWriter::access(second, at(scan.back(1))),
                      KernelWriter::access(scan.state, first)));
}

void add_scan_reading_across(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  const size_t across = scan.time == 0 ? 1 : 0;
  Indices mirrored = scan.at(scan.back(scan.steps));
  mirrored[across] = fmt::format("{} - 1 - {}", scan.state.shape[across].text(), mirrored[across]);
  end_scan(writer, scan,
           fmt::format("    {} = min({}, {})\n", scan.now(scan.state),
                       KernelWriter::access(scan.state, mirrored), scan.now(scan.input)));
}

void add_scan_of_products(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  const size_t inner =
      scan.time + 1 == scan.state.shape.size() ? scan.time - 1 : scan.state.shape.size() - 1;
  const DrawnExtent& width = scan.state.shape[inner];
  const DrawnTensor weights = writer.add_input({width, width});
  Indices row = scan.at(scan.back(1));
  row[inner] = "r";
  // Small, so that rounding does not grow with time.
  const std::string product =
      fmt::format("sum[r < {}]({} * {})", width.text(), KernelWriter::access(scan.state, row),
                  KernelWriter::access(weights, {"r", scan.at("t")[inner]}));
  const std::string_view scale = writer.is_integral() ? "" : " * 0.015625";
  if (writer.random.chance(0.3)) {
    return end_scan(writer, scan,
                    fmt::format("    {} = {}{} + {}\n", scan.now(scan.state), product, scale,
                                scan.now(scan.input)));
  }
  const DrawnTensor cell{writer.new_name(), scan.state.shape};
  writer.declare(cell, false);
  end_scan(writer, scan,
           fmt::format("    {0} = {1}\n    {2} = {0}{3} + {4}\n", scan.now(cell), product,
                       scan.now(scan.state), scale, scan.now(scan.input)));
}

}  // namespace kiln::testing
