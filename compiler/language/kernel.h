#pragma once

#include <cstdint>

#include "compiler/language/definition.h"

namespace kiln::language {

/// What a request may be at most. Passing a limit is ResourceExhausted, with the limit and the
/// value.
struct Limits {
  int expressions = 100'000;
  int stages = 4'096;
  int axes = 16'384;
  int depth = 512;  // nesting of expressions
  int dimensions = 16;
  int outputs = 64;           // of one stage
  int64_t nodes = 1'000'000;  // of all bodies, with shared expressions spelled out
  int steps = 16'384;
  int name_bytes = 256;
  int text_bytes = 4'000'000;  // of a .kiln file
};

/// A definition that is safe to compile, and what the user calls its parts.
struct Kernel {
  Definition definition;
  SourceMap names;
};

}  // namespace kiln::language
