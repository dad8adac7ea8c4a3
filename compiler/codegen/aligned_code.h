#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::codegen {

/// A line of code, and the line of the text above it, from 1, that it was made from; 0: of none.
struct AlignedLine {
  int from = 0;
  std::string text;
};
using AlignedLines = std::vector<AlignedLine>;

/// LLVM IR with debug locations, without what tells of them.
AlignedLines aligned_llvm(std::string_view text);

/// Assembly or PTX with `.loc` directives, without these and what else serves debuggers.
AlignedLines aligned_assembly(std::string_view text);

/// `lines`, whose `from` are lines of a text that was itself made from another: from that.
AlignedLines through(AlignedLines lines, const AlignedLines& middle);

/// What `kiln explain` shows, as JSON: `loops` (their lines) and `columns` of code, each with its
/// `name` and its `lines` as pairs of a line of the loops and a text.
std::string aligned_json(std::string_view loops,
                         const std::vector<std::pair<std::string, AlignedLines>>& columns,
                         std::string_view cubin);

}  // namespace kiln::codegen
