#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cuda_source.h"
#include "compiler/ir/kernel.h"

namespace kiln::testing {

/// The CUDA C of these loops.
inline std::string source_of(const ir::Kernel& loops) {
  return codegen::cuda_source(std::vector<codegen::CudaEntry>{{"k", &loops}}).text;
}

/// How often a word stands in a text.
inline size_t count_in(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

}  // namespace kiln::testing
