#pragma once

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/tile/verify.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {

/// Makes room for a block axis more: axes of loops have the next number.
inline void renumber(std::vector<tile::Instruction>& body, tile::AxisId first) {
  const auto shift = [first](tile::AxisId& axis) { axis += axis >= first ? 1 : 0; };
  const auto shift_all = [&](std::vector<tile::AxisId>& axes) {
    for (tile::AxisId& axis : axes)
      shift(axis);
  };
  for (tile::Instruction& each : body) {
    if (auto* places = std::get_if<tile::Places>(&each.what)) shift(places->axis);
    if (auto* load = std::get_if<tile::Load>(&each.what)) shift_all(load->at);
    if (auto* store = std::get_if<tile::Store>(&each.what)) shift_all(store->at);
    if (auto* window = std::get_if<tile::Window>(&each.what)) {
      shift_all(window->rows);
      shift(window->along);
      for (tile::Index& index : window->indices)
        for (tile::Term& term : index.terms)
          shift(term.axis);
    }
    if (auto* loop = std::get_if<tile::For>(&each.what)) {
      shift_all(loop->axes);
      renumber(loop->body, first);
    }
  }
}

/// Blocks for each part of an axis that no instruction names.
inline tile::Program with_blocks_again(tile::Program program, const tile::Extent& extent) {
  renumber(program.body, program.block_axes);
  program.axes.insert(program.axes.begin() + program.block_axes, {"again", extent, 1});
  ++program.block_axes;
  return program;
}

/// That stores are known to name all that tells blocks apart, whatever the sizes: with one axis
/// more it is refused, where that has several parts, or may have.
inline void expect_disjoint_blocks(const tile::Program& program) {
  EXPECT_NO_THROW(tile::verify(program));
  EXPECT_NO_THROW(tile::verify(with_blocks_again(program, {.constant = 1})));
  std::vector<tile::Extent> several = {{.constant = 2}};
  if (!program.sizes.empty()) several.push_back({.size = 0});
  const auto output = std::ranges::find_if(program.parameters, &tile::Parameter::is_output);
  ASSERT_NE(output, program.parameters.end());
  for (const tile::Extent& extent : several) {
    expect_error([&] { tile::verify(with_blocks_again(program, extent)); }, ErrorKind::Internal,
                 fmt::format("the place where {} is stored does not name block axis again, so that "
                             "several blocks would store one tile",
                             output->name));
  }
}

}  // namespace kiln::testing
