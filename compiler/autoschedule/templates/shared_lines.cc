// Chooses between padding and a swizzle by how often words of one access meet in a bank.
//
//   32 lines of 32 words, read down a column          ->  one word longer each
//   64 lines of 64 float16, filled 16 bytes at once   ->  swizzled: lines that are padded would
//     and read down a column, eight lines apart           have to begin at multiples of 16 bytes,
//                                                         and eight of those are one bank again
//
// Of as many cycles padding comes first: what differs by a constant is then one address and
// constants of instructions. A swizzle has an address for each of up to eight places in a line,
// which costs registers where all of them are in use: of the block of 256 x 128 of bfloat16, 64
// steps at once, whose padded loop is 578 instructions for 384 products in 234 registers, one
// factor swizzled takes 255, and both are 972 instructions (sm_80), or spill 120 bytes (B
// transposed). With 32 steps (sm_86) a loop of 292 stays one, at 246 registers instead of 224, and
// lines of 64 bytes are filled in half the cycles, in 73,728 bytes instead of 92,160.
#include "compiler/autoschedule/templates/shared_lines.h"

#include <algorithm>
#include <bit>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/swizzle.h"

namespace kiln::autoschedule {
namespace {

using analysis::LinearLayout;

constexpr int64_t kMostPaddings = 8;

int bits_of(int64_t count) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1)));
}

int64_t cycles_of(const SharedLines& lines, const Spread& spread) {
  const LinearLayout memory = layout_of(lines, spread);
  int64_t cycles = 0;
  for (const SharedLines::Touch& touch : lines.touches)
    cycles +=
        touch.lanes.compose(memory).access("lane", lines.element_bytes, touch.bytes).wavefronts;
  return cycles;
}

}  // namespace

LinearLayout layout_of(const SharedLines& lines, const Spread& spread) {
  int line_bits = bits_of(lines.lines);
  int element_bits = bits_of(lines.width);
  for (const SharedLines::Touch& touch : lines.touches) {
    line_bits = std::max(line_bits, touch.lanes.outputs()[0].bits);
    if (spread.swizzle == 0) element_bits = std::max(element_bits, touch.lanes.outputs()[1].bits);
  }
  LinearLayout::Input line{.name = "line", .bits = {}};
  LinearLayout::Input element{.name = "element", .bits = {}};
  if (spread.swizzle == 0) {
    for (int bit = 0; bit < line_bits; ++bit)
      line.bits.push_back({int64_t{1} << bit, 0});
    for (int bit = 0; bit < element_bits; ++bit)
      element.bits.push_back({0, int64_t{1} << bit});
    return LinearLayout({line, element}, {{"line", line_bits, lines.width + spread.padding},
                                          {"element", element_bits}});
  }
  const ir::Swizzle swizzle = ir::swizzle_of(lines.element_bytes, spread.swizzle);
  for (int bit = 0; bit < line_bits; ++bit)
    line.bits.push_back({swizzle(int64_t{1} << (bit + element_bits))});
  for (int bit = 0; bit < element_bits; ++bit)
    element.bits.push_back({swizzle(int64_t{1} << bit)});
  return LinearLayout({line, element}, {{"place", line_bits + element_bits}});
}

Spread best_spread(const SharedLines& lines) {
  // Vectors begin at multiples of their length, so lines do.
  int64_t unit = kBankBytes;
  for (const SharedLines::Touch& touch : lines.touches)
    unit = std::max(unit, touch.bytes);
  unit = std::max<int64_t>(unit / lines.element_bytes, 1);
  std::vector<Spread> choices;
  for (int64_t count = 0; count <= kMostPaddings; ++count)
    choices.push_back({.padding = count * unit, .swizzle = 0});
  // A swizzle moves bits of the place, of which each belongs to a line or to an element.
  const int64_t least = kBanks * kBankBytes / lines.element_bytes;
  const bool may_swizzle = lines.may_swizzle &&
                           std::has_single_bit(static_cast<uint64_t>(lines.width)) &&
                           lines.element_bytes < ir::kSwizzleBytes;
  for (int64_t every = least; may_swizzle && every < lines.lines * lines.width; every *= 2)
    choices.push_back({.padding = 0, .swizzle = every});
  return *std::ranges::min_element(choices, {},
                                   [&](const Spread& spread) { return cycles_of(lines, spread); });
}

void write_spread(StepWriter& steps, StageId stage, AxisId axis, const Spread& spread,
                  int64_t factor) {
  if (spread.swizzle > 0) {
    steps.storage_swizzle(stage, spread.swizzle);
  } else if (spread.padding > 0) {
    steps.storage_align(stage, axis, factor, spread.padding % factor);
  }
}

}  // namespace kiln::autoschedule
