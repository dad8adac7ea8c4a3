#pragma once

#include <span>
#include <string_view>

namespace kiln::codegen {

/// What generated code calls by this name.
struct PreludeFunction {
  std::string_view name;
  std::string_view text;
};

/// Those that load and multiply matrices, each after those that it calls; no other function of the
/// prelude calls one of them.
std::span<const PreludeFunction> matrix_functions();

}  // namespace kiln::codegen
