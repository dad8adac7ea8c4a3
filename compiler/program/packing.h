#pragma once

#include <functional>
#include <optional>

#include "compiler/program/shapes.h"

namespace kiln::program {

/// A kernel in two: the copy of one of its inputs in another layout, and the rest, which reads the
/// copy in its place.
struct Packed {
  size_t parameter = 0;  // its position
  language::Kernel copy;
  language::Kernel rest;
};

/// What to copy of a kernel without sizes, of the parameters that are marked; nothing: all of them
/// are read as they are.
using FindPacked =
    std::function<std::optional<Packed>(const language::Kernel&, const std::vector<bool>&)>;

/// The program with nodes of their own for copies of parameters that no update changes, which are
/// constant then. Values keep their numbers. Throws what infer_shapes() throws.
Program with_packing(Program program, const GivenTypes& given, const FindPacked& find);

}  // namespace kiln::program
