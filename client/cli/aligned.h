#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// Code of one form, its lines with the line of the loops, from 1, that each was made from; 0: of
/// none.
struct CodeColumn {
  struct Line {
    int from = 0;
    std::string text;
  };
  std::string name;  // "llvm", "asm", "cuda", "ptx", "sass"
  std::vector<Line> lines;
};

/// Loops, and the code made of them.
struct AlignedCode {
  std::vector<std::string> loops;
  std::vector<CodeColumn> columns;
  std::string cubin;  // of a GPU: what a disassembler reads
};

/// Reads what a service gives as the source "aligned".
AlignedCode read_aligned(const std::string& json);

/// Each line of the loops with the code of that line beneath.
std::string aligned_text(const AlignedCode& code);

/// The lines of a disassembly whose comments name lines of the CUDA C (nvdisasm --print-line-info),
/// by way of that column.
CodeColumn sass_column(std::string_view disassembly, const CodeColumn& cuda);

}  // namespace kiln::cli
