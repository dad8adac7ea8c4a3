// Spans along an axis of time. What a span of a lane holds stands beneath it:
//
//   client   |---- build ----||--- call ---|
//   kilnd      |-- compile --|  |- run f -|
//   cpu:0                        |  f  |
//
// A build takes hundreds of times as long as the call behind it, so the call is drawn a second
// time, alone.
#include "client/cli/timeline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "client/cli/markup.h"
#include "client/cli/outputs.h"

namespace kiln::cli {
namespace {

constexpr double kTimeWidth = 960;
constexpr double kNamesWidth = 210;
constexpr double kBarHeight = 20;
constexpr double kLaneGap = 10;  // between lanes
constexpr double kAxisHeight = 34;
constexpr double kLetterWidth = 6.5;  // about as wide as a letter
constexpr int kTicks = 8;             // about
constexpr std::array<std::string_view, 5> kProcessColours = {"#7fb3e0", "#e8a33d", "#58a55c",
                                                             "#c792c7", "#b9b9b9"};

/// A span, and how many of its lane hold it.
struct Bar {
  Span span;
  std::size_t depth = 0;
};

struct Lane {
  std::string name;
  std::string_view colour;
  std::vector<Bar> bars;
  std::size_t depth = 1;
};

double to_seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::string lane_name(const Span& span) {
  return fmt::format("{} {}{}", span.process, span.pid,
                     span.track == "client" ? "" : ", " + span.track);
}

/// In the order in which lanes begin; a process has the colour of its place among `processes`.
std::vector<Lane> lanes_of(std::vector<Span> spans, const std::vector<unsigned>& processes) {
  // Of two that begin together the longer holds the other.
  std::ranges::stable_sort(spans, [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<Lane> lanes;
  for (const Span& span : spans) {
    const std::string name = lane_name(span);
    auto lane = std::ranges::find(lanes, name, &Lane::name);
    if (lane == lanes.end()) {
      const auto number =
          static_cast<std::size_t>(std::ranges::find(processes, span.pid) - processes.begin());
      lane = lanes.insert(lane, {name, kProcessColours[number % kProcessColours.size()], {}, 1});
    }
    const auto holds = [&](const Bar& bar) { return bar.span.end > span.begin; };
    const auto depth = static_cast<std::size_t>(std::ranges::count_if(lane->bars, holds));
    lane->bars.push_back({span, depth});
    lane->depth = std::max(lane->depth, depth + 1);
  }
  return lanes;
}

/// 1, 2 or 5 times a power of ten, so that about kTicks of them make the whole.
double step_of(double whole) {
  const double rough = std::max(whole, 1e-9) / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= rough) return power * factor;
  }
  return power * 10;
}

std::string axis_of(double whole, double height) {
  std::string svg;
  const double step = step_of(whole);
  for (int i = 0; i * step <= whole; ++i) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#8884\"/>"
        "<text x=\"{0:.1f}\" y=\"18\" text-anchor=\"middle\">{3}</text>\n",
        kNamesWidth + i * step * kTimeWidth / whole, kAxisHeight - 8, height, time_text(i * step));
  }
  return svg;
}

std::string bar_of(const Bar& bar, std::string_view colour, double y, std::int64_t begin,
                   double whole) {
  const double took = to_seconds(bar.span.end - bar.span.begin);
  const double x = kNamesWidth + to_seconds(bar.span.begin - begin) * kTimeWidth / whole;
  const double width = std::max(took * kTimeWidth / whole, 0.5);
  const double top = y + static_cast<double>(bar.depth) * kBarHeight;
  std::string svg = fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" rx=\"2\" fill=\"{}\">"
      "<title>{}: {}</title></rect>",
      x, top, width, kBarHeight - 2, colour, escaped(bar.span.name), time_text(took));
  if (static_cast<double>(bar.span.name.size()) * kLetterWidth + 8 < width) {
    svg += fmt::format("<text class=\"in\" x=\"{:.2f}\" y=\"{:.0f}\">{}</text>", x + 4, top + 13,
                       escaped(bar.span.name));
  }
  return svg + "\n";
}

std::string picture_of(const std::vector<Span>& spans, const std::vector<unsigned>& processes) {
  const std::int64_t begin = std::ranges::min_element(spans, {}, &Span::begin)->begin;
  const std::int64_t end = std::ranges::max_element(spans, {}, &Span::end)->end;
  const double whole = std::max(to_seconds(end - begin), 1e-9);
  std::string rows;
  double y = kAxisHeight;
  for (const Lane& lane : lanes_of(spans, processes)) {
    rows += fmt::format("<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n",
                        kNamesWidth - 8, y + 13, escaped(lane.name));
    for (const Bar& bar : lane.bars)
      rows += bar_of(bar, lane.colour, y, begin, whole);
    y += static_cast<double>(lane.depth) * kBarHeight + kLaneGap;
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{:.0f}\">\n",
                     kNamesWidth + kTimeWidth + 40, y) +
         axis_of(whole, y - kLaneGap) + rows + "</svg>\n";
}

constexpr const char* kTimelineStyle = R"(
svg { max-width: none; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg text.in { fill: #111; pointer-events: none; }
)";

}  // namespace

std::string timeline_page(const std::string& title, const std::vector<Span>& spans,
                          const Span& call, const std::vector<std::vector<std::string>>& table) {
  std::vector<unsigned> processes;
  for (const Span& span : spans) {
    if (std::ranges::find(processes, span.pid) == processes.end()) processes.push_back(span.pid);
  }
  std::vector<Span> of_call;
  std::ranges::copy_if(spans, std::back_inserter(of_call), [&](const Span& span) {
    return span.begin >= call.begin && span.end <= call.end;
  });
  return html_page(title, kTimelineStyle,
                   "<h2>The whole</h2>\n" + picture_of(spans, processes) +
                       "<h2>The last call</h2>\n" + picture_of(of_call, processes) +
                       html_table(table));
}

}  // namespace kiln::cli
