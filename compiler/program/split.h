#pragma once

#include <functional>
#include <vector>

#include "compiler/language/kernel.h"

namespace kiln::program {

/// A part of a kernel as a kernel of its own. Its parameters are what it reads, then what it makes;
/// both are named as the whole kernel has them.
struct Piece {
  language::Kernel kernel;
  std::vector<language::TensorId> reads;
  std::vector<language::TensorId> makes;
};

/// The pieces that make `wanted` of what is known: a stage each, but one for all where one of them
/// is a scan, whose cells are inside of it. `kernel` has no sizes.
std::vector<Piece> split(const language::Kernel& kernel,
                         const std::vector<language::TensorId>& wanted,
                         const std::function<bool(language::TensorId)>& is_known);

}  // namespace kiln::program
