// Reads from code, as LLVM and NVRTC print it, which line it was made from, and takes out what told
// so. An instruction of LLVM IR names a location, whose line stands at the end of the text:
//
//   %5 = fadd float %3, %4, !dbg !17     ->  from 9:  %5 = fadd float %3, %4
//   !17 = !DILocation(line: 9, ...)
//
// In assembly a `.loc FILE LINE COLUMN` holds for what follows it.
#include "compiler/codegen/aligned_code.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <nlohmann/json.hpp>

namespace kiln::codegen {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The number that stands behind `word`; 0 where there is none.
int number_after(std::string_view line, std::string_view word) {
  const size_t at = line.find(word);
  if (at == std::string_view::npos) return 0;
  const std::string_view digits = line.substr(at + word.size());
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::string_view without_indent(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
}

/// Whether metadata ends here: ", !dbg !17", " !dbg !17 {" of a function.
constexpr std::string_view kLocation = "!dbg !";

std::string without_location(std::string_view line) {
  const size_t at = line.find(kLocation);
  size_t begin = at;
  while (begin > 0 && (line[begin - 1] == ' ' || line[begin - 1] == ','))
    --begin;
  const size_t end =
      std::min(line.find_first_not_of("0123456789", at + kLocation.size()), line.size());
  return std::string(line.substr(0, begin)) + std::string(line.substr(end));
}

/// What assembly has for debuggers and unwinders alone.
bool serves_debuggers(std::string_view line) {
  constexpr std::array<std::string_view, 8> kWords = {".file",   ".cfi_",     ".Ltmp",   ".Lfunc_",
                                                      ".Ldebug", ".Lsec_end", ".Linfo_", ".size"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return line.starts_with(word); });
}

}  // namespace

AlignedLines aligned_llvm(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  std::map<int, int> line_of;  // by the number of the metadata
  for (const std::string_view line : lines) {
    if (line.starts_with('!') && line.find("!DILocation(") != std::string_view::npos)
      line_of[number_after(line, "!")] = number_after(line, "line: ");
  }
  AlignedLines result;
  for (const std::string_view line : lines) {
    if (line.starts_with('!') || line.starts_with("source_filename")) continue;
    const int location = number_after(line, kLocation);
    const bool is_function = line.starts_with("define ");
    if (location == 0) {
      result.push_back({0, std::string(line)});
    } else {
      result.push_back({is_function ? 1 : line_of[location], without_location(line)});
    }
  }
  while (!result.empty() && result.back().text.empty())
    result.pop_back();
  return result;
}

AlignedLines aligned_assembly(std::string_view text) {
  AlignedLines result;
  int from = 0;
  for (const std::string_view line : lines_of(text)) {
    const std::string_view words = without_indent(line);
    if (words.starts_with(".section") && words.find("debug") != std::string_view::npos) break;
    if (words.starts_with(".loc")) {
      // ".loc 1 9 0": the file, then the line.
      const size_t file = words.find_first_of(" \t");
      const std::string_view after = without_indent(words.substr(std::min(file, words.size())));
      from = number_after(after.substr(std::min(after.find_first_of(" \t"), after.size())), " ");
    } else if (!serves_debuggers(words) && !words.empty()) {
      // Data and directives between functions are of no statement.
      if (words.starts_with('.') && words.find(':') == std::string_view::npos) from = 0;
      result.push_back({from, std::string(line)});
    }
  }
  return result;
}

AlignedLines through(AlignedLines lines, const AlignedLines& middle) {
  for (AlignedLine& line : lines) {
    const auto at = static_cast<size_t>(line.from);
    line.from = at == 0 || at > middle.size() ? 0 : middle[at - 1].from;
  }
  return lines;
}

std::string aligned_json(std::string_view loops,
                         const std::vector<std::pair<std::string, AlignedLines>>& columns,
                         std::string_view cubin) {
  nlohmann::ordered_json result;
  result["loops"] = nlohmann::ordered_json::array();
  for (const std::string_view line : lines_of(loops))
    result["loops"].push_back(line);
  result["columns"] = nlohmann::ordered_json::array();
  for (const auto& [name, lines] : columns) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const AlignedLine& line : lines)
      rows.push_back({line.from, line.text});
    result["columns"].push_back({{"name", name}, {"lines", std::move(rows)}});
  }
  if (!cubin.empty()) {
    std::string hex;
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (const char byte : cubin) {
      hex += kDigits[static_cast<unsigned char>(byte) >> 4];
      hex += kDigits[static_cast<unsigned char>(byte) & 15];
    }
    result["cubin"] = std::move(hex);
  }
  return result.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace kiln::codegen
