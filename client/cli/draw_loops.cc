// Lowered loops as nested boxes. Each line of the text is a row of the picture, so the picture
// reads as the text does:
//
//   for i in 0..n parallel {      a box headed "i in 0..n  parallel", in the colour of its kind,
//     C[i] = A[i] + 1             around this row
//   }
//
// Braces of other lines (fn, if) indent and make no box.
#include "client/cli/draw_loops.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "client/cli/markup.h"

namespace kiln::cli {
namespace {

constexpr int kRow = 18;          // height of a line
constexpr int kIndent = 16;       // width of a level
constexpr int kCharacter = 7;     // width of one, about
constexpr int kBelow = 3;         // between the bottoms of boxes that end with the same line
constexpr size_t kLongest = 110;  // of a line; what is longer is cut, and whole when pointed at

/// The colour of loops that run like this; plain loops have no word.
std::string_view colour_of(std::string_view kind) {
  static const std::map<std::string_view, std::string_view> kColours = {
      {"parallel", "#cfe3f6"}, {"vectorize", "#d5ecd0"}, {"unroll", "#f6e3c5"},
      {"bind", "#ead9f3"},     {"", "#f4f4f4"},
  };
  const auto found = kColours.find(kind);
  return found == kColours.end() ? "#f4f4f4" : found->second;
}

/// A line of the text, and of a loop the line that closes it.
struct LoopLine {
  std::string text;
  int level = 0;
  bool is_loop = false;
  std::string kind;
  size_t last = 0;
};

/// "for i in 0..n parallel {" as "i in 0..n  parallel".
LoopLine loop_of(std::string_view text, int level) {
  text.remove_prefix(4);
  text.remove_suffix(2);
  LoopLine line{.text = std::string(text), .level = level, .is_loop = true, .kind = "", .last = 0};
  for (const std::string_view kind : {"parallel", "vectorize", "unroll", "bind"}) {
    if (text.ends_with(fmt::format(" {}", kind))) line.kind = kind;
  }
  return line;
}

/// The lines without those that only close a brace.
std::vector<LoopLine> lines_of(std::string_view lowered) {
  std::vector<LoopLine> lines;
  std::vector<size_t> open;
  while (!lowered.empty()) {
    const size_t end = std::min(lowered.find('\n'), lowered.size());
    std::string_view text = lowered.substr(0, end);
    lowered.remove_prefix(std::min(end + 1, lowered.size()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) continue;
    const int level = static_cast<int>(open.size());
    if (text == "}") {
      if (open.empty()) continue;
      lines[open.back()].last = lines.size() - 1;
      open.pop_back();
      continue;
    }
    const bool opens = text.ends_with(" {");
    lines.push_back(
        opens && text.starts_with("for ")
            ? loop_of(text, level)
            : LoopLine{.text = std::string(text.substr(0, text.size() - (opens ? 2 : 0))),
                       .level = level,
                       .is_loop = false,
                       .kind = "",
                       .last = 0});
    if (opens) open.push_back(lines.size() - 1);
  }
  return lines;
}

std::string shown(const std::string& text) {
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 1) + "…";
}

}  // namespace

std::string draw_loops(std::string_view lowered) {
  const std::vector<LoopLine> lines = lines_of(lowered);
  int width = 0;
  for (const LoopLine& line : lines) {
    const int letters = static_cast<int>(std::min(line.text.size(), kLongest));
    width = std::max(width, line.level * kIndent * 2 + letters * kCharacter + 2 * kIndent);
  }
  // Where each line stands, below the bottoms of the boxes that ended before it.
  std::vector<int> closes(lines.size(), 0);
  for (const LoopLine& line : lines) {
    if (line.is_loop) ++closes[line.last];
  }
  std::vector<int> tops;
  int bottom = 4;
  for (const int closing : closes) {
    tops.push_back(bottom);
    bottom += kRow + closing * kBelow;
  }
  std::string picture = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"monospace\" font-size=\"12\">\n",
      width, bottom + 4);
  for (size_t i = 0; i < lines.size(); ++i) {
    const LoopLine& line = lines[i];
    const int x = line.level * kIndent + 4;
    const int y = tops[i];
    if (line.is_loop) {
      const int height = tops[line.last] + kRow + closes[line.last]-- * kBelow - y - 2;
      picture += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" "
          "stroke=\"#888\"/>\n",
          x, y, width - 2 * x, height, colour_of(line.kind));
    }
    picture += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}<title>{}</title></text>\n", x + 6, y + 13,
                           line.is_loop ? " font-weight=\"bold\"" : "", escaped(shown(line.text)),
                           escaped(line.text));
  }
  return picture + "</svg>\n";
}

}  // namespace kiln::cli
