// A plan for people. In the picture a value that lies where another one lay stands in the same
// rows, further right: reuse is what one sees.
//
//   | h        |            |     kernel 1 makes h, 2 reads it
//   |          | y          |     y is made by 3, after h is gone, in its memory
//     kernel 1    kernel 3
#include "client/cli/draw_plan.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/cli/markup.h"

namespace kiln::cli {
namespace {

constexpr double kArenaWidth = 960;
constexpr double kArenaHeight = 360;
constexpr double kMargin = 20;
constexpr double kTitleHeight = 30;
constexpr double kKernelNames = 170;
constexpr double kTextHeight = 12;
constexpr std::array<std::string_view, 6> kValueColours = {"#8fb8de", "#f2c078", "#a8d5a2",
                                                           "#e59fa0", "#c3b1e1", "#d9c7a0"};

std::string size_text(std::int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  auto count = static_cast<double>(bytes);
  for (const std::string_view unit : {"KiB", "MiB"}) {
    count /= 1024;
    if (count < 10'000) return fmt::format("{:.1f} {}", count, unit);
  }
  return fmt::format("{:.1f} GiB", count / 1024);
}

std::string value_text(const ProgramPlan::Value& value) {
  std::string text =
      fmt::format("{}: {}[{}]", value.name, name_of(value.type), fmt::join(value.shape, ", "));
  if (!value.becomes.empty()) text += fmt::format(", becomes {}", value.becomes);
  if (!value.reuses.empty()) text += fmt::format(", where {} was", value.reuses);
  return text;
}

std::string memory_text(const ProgramPlan& plan) {
  return fmt::format("{}, of which {} are alive at a time ({} without reuse)",
                     size_text(plan.arena_bytes), size_text(plan.live_bytes),
                     size_text(plan.separate_bytes));
}

std::string title_of(const ProgramPlan& plan) {
  const auto count = std::ranges::count(plan.kernels, false, &ProgramPlan::Step::once);
  return fmt::format("{}: {} kernel{} a step, {} moved", plan.program, count, count == 1 ? "" : "s",
                     size_text(plan.moved_bytes()));
}

}  // namespace

std::string print_plan(const ProgramPlan& plan) {
  std::string text = title_of(plan) + "\n";
  for (const ProgramPlan::Step& kernel : plan.kernels) {
    text += fmt::format("  {}: reads {}, writes {} ({}{})\n", kernel.name,
                        size_text(kernel.read_bytes), size_text(kernel.written_bytes),
                        fmt::join(kernel.nodes, ", "), kernel.once ? "; once for all steps" : "");
  }
  text += fmt::format("memory: {}\n", memory_text(plan));
  for (const ProgramPlan::Value& value : plan.values) {
    if (value.offset >= 0) text += fmt::format("  {:>10}  {}\n", value.offset, value_text(value));
  }
  return text;
}

std::string draw_plan(const ProgramPlan& plan) {
  const auto kernels = static_cast<double>(std::max<std::size_t>(plan.kernels.size(), 1));
  const double column = (kArenaWidth - 2 * kMargin) / kernels;
  const double scale =
      kArenaHeight / static_cast<double>(std::max<std::int64_t>(plan.arena_bytes, 1));
  std::string picture = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<text x=\"{}\" y=\"18\" "
      "font-size=\"13\">{}; memory: {}</text>\n",
      kArenaWidth, kTitleHeight + kArenaHeight + kKernelNames, kMargin, escaped(title_of(plan)),
      memory_text(plan));
  std::size_t number = 0;
  for (const ProgramPlan::Value& value : plan.values) {
    if (value.offset < 0) continue;
    const auto bytes = static_cast<double>(value.bytes());
    const double x = kMargin + static_cast<double>(value.first) * column;
    const double y =
        kTitleHeight + kArenaHeight - (static_cast<double>(value.offset) + bytes) * scale;
    const double width = static_cast<double>(value.last - value.first + 1) * column;
    picture += fmt::format(
        "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"{}\" stroke=\"white\"/>",
        escaped(value_text(value)), x, y, width, std::max(bytes * scale, 1.0),
        kValueColours[number++ % kValueColours.size()]);
    if (bytes * scale > kTextHeight) {
      picture += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 4, y + 11,
                             escaped(value.name));
    }
    picture += "</g>\n";
  }
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const ProgramPlan::Step& kernel = plan.kernels[k];
    picture += fmt::format("<text transform=\"translate({:.1f},{}) rotate(60)\">{}: {}</text>\n",
                           kMargin + (static_cast<double>(k) + 0.5) * column,
                           kTitleHeight + kArenaHeight + 10, escaped(kernel.name),
                           size_text(kernel.read_bytes + kernel.written_bytes));
  }
  return picture + "</svg>\n";
}

}  // namespace kiln::cli
