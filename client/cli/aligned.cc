// Code beside the loops that it was made from. As text each line of the loops is followed by its
// code, form by form; an instruction stands where the compiler put it, so one line's may lie apart.
#include "client/cli/aligned.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::cli {
namespace {

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const std::optional<unsigned> high = digit_of(hex[i]);
    const std::optional<unsigned> low = digit_of(hex[i + 1]);
    if (!high || !low) return "";
    bytes += static_cast<char>(*high << 4 | *low);
  }
  return bytes;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  return line;
}

/// The number behind ", line " of a comment of the disassembler; 0 where there is none.
int line_named_in(std::string_view comment) {
  constexpr std::string_view kWord = ", line ";
  const std::size_t at = comment.rfind(kWord);
  if (at == std::string_view::npos) return 0;
  int number = 0;
  std::from_chars(comment.data() + at + kWord.size(), comment.data() + comment.size(), number);
  return number;
}

}  // namespace

AlignedCode read_aligned(const std::string& json) {
  const nlohmann::json object = nlohmann::json::parse(json);
  AlignedCode code;
  code.loops = object.at("loops").get<std::vector<std::string>>();
  for (const nlohmann::json& column : object.at("columns")) {
    CodeColumn& made = code.columns.emplace_back();
    made.name = column.at("name").get<std::string>();
    for (const nlohmann::json& line : column.at("lines"))
      made.lines.push_back({line.at(0).get<int>(), line.at(1).get<std::string>()});
  }
  code.cubin = bytes_of_hex(object.value("cubin", ""));
  return code;
}

std::string aligned_text(const AlignedCode& code) {
  std::string text;
  for (std::size_t i = 0; i < code.loops.size(); ++i) {
    text += fmt::format("{:4} | {}\n", i + 1, code.loops[i]);
    for (const CodeColumn& column : code.columns) {
      for (const CodeColumn::Line& line : column.lines) {
        const std::string_view words = trimmed(line.text);
        if (line.from != static_cast<int>(i) + 1 || words.empty()) continue;
        text += fmt::format("       {:>4}  {}\n", column.name, words);
      }
    }
  }
  return text;
}

CodeColumn sass_column(std::string_view disassembly, const CodeColumn& cuda) {
  CodeColumn column{.name = "sass", .lines = {}};
  int from = 0;
  while (!disassembly.empty()) {
    const std::size_t end = std::min(disassembly.find('\n'), disassembly.size());
    const std::string_view line = trimmed(disassembly.substr(0, end));
    disassembly.remove_prefix(std::min(end + 1, disassembly.size()));
    if (line.starts_with("//##")) {
      const auto at = static_cast<std::size_t>(line_named_in(line));
      from = at == 0 || at > cuda.lines.size() ? 0 : cuda.lines[at - 1].from;
    } else if (line.starts_with("/*")) {
      // "/*0010*/  MOV R1, c[0x0][0x28] ;": an instruction at its address.
      column.lines.push_back({from, std::string(line)});
    } else if (line.starts_with(".L_") || line.starts_with(".text.")) {
      column.lines.push_back({0, std::string(line)});
    }
  }
  return column;
}

}  // namespace kiln::cli
