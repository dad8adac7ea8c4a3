#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/ir/kernel.h"

namespace kiln::passes {

/// Adds a note for the report, once: passes before may have copied the loop it is about.
inline void add_note(ir::Kernel& kernel, std::string note) {
  if (std::ranges::find(kernel.notes, note) == kernel.notes.end()) {
    kernel.notes.push_back(std::move(note));
  }
}

}  // namespace kiln::passes
