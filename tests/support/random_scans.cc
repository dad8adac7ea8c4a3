#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

/// A state over the first dimension of an input of two dimensions.
struct Scan {
  DrawnTensor input;
  DrawnTensor state;
};

Scan begin_scan(KernelWriter& writer) {
  const DrawnExtent time = writer.random.pick(writer.extents());
  const DrawnExtent width = writer.random.pick(writer.extents());
  const DrawnTensor input = writer.add_input({time, width});
  return {input, {writer.new_name(), {time, width}}};
}

/// `lines` are those of the scan but for the first step of the state.
void end_scan(KernelWriter& writer, const Scan& scan, std::string_view lines) {
  writer.add_lines(fmt::format("  scan t {{\n    {0}[0, i] = {1}[0, i]\n{2}  }}\n", scan.state.name,
                               scan.input.name, lines));
  writer.declare(scan.state);
}

}  // namespace

void add_plain_scan(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  end_scan(
      writer, scan,
      fmt::format("    {0}[t, i] = {0}[t - 1, i] + {1}[t, i]\n", scan.state.name, scan.input.name));
}

void add_scan_of_two_stages(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  const DrawnTensor cell{writer.new_name(), scan.state.shape};
  writer.declare(cell, false);
  end_scan(
      writer, scan,
      fmt::format("    {0}[t, i] = {1}[t - 1, i] * {3}\n    {1}[t, i] = {0}[t, i] + {2}[t, i]\n",
                  cell.name, scan.state.name, scan.input.name, writer.literal()));
}

void add_scan_of_two_states(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  const DrawnTensor second{writer.new_name(), scan.state.shape};
  writer.declare(second, false);
  writer.make_output(second);
  end_scan(writer, scan,
           fmt::format("    {1}[0, i] = {3}\n    {0}[t, i] = {0}[t - 1, i] - {2}[t, i]\n"
                       "    {1}[t, i] = max({1}[t - 1, i], {0}[t - 1, 0])\n",
                       scan.state.name, second.name, scan.input.name, writer.literal()));
}

void add_scan_reading_across(KernelWriter& writer) {
  const Scan scan = begin_scan(writer);
  end_scan(writer, scan,
           fmt::format("    {0}[t, i] = min({0}[t - 1, {2} - 1 - i], {1}[t, i])\n", scan.state.name,
                       scan.input.name, scan.state.shape[1].text()));
}

}  // namespace kiln::testing
