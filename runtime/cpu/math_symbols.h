#pragma once

#include <span>

namespace kiln {

/// A function of the C library (or of libgcc) that generated code may call.
struct ProcessSymbol {
  const char* name;
  void* address;
};

/// The whole list: an object that needs anything else is not loaded.
std::span<const ProcessSymbol> process_symbols();

}  // namespace kiln
