#pragma once

#include <cstddef>

#include "compiler/language/definition.h"

namespace kiln::program {

/// What one node's kernel is, as far as joining goes.
struct Traits {
  size_t stages = 0;
  size_t products = 0;  // sums of products: blocked for caches, so their loops are their own
  bool is_copy = true;  // elements are read, at whatever places, and nothing is made of them
};

Traits traits_of(const language::Definition& definition);

}  // namespace kiln::program
