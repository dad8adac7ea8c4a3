#pragma once

#include <string>

#include "tests/support/random.h"

namespace kiln::testing {

/// The text of random_kernel(), for tests that know the language only as clients do.
std::string random_kernel_text(Random& random);

}  // namespace kiln::testing
