#pragma once

#include "compiler/program/shapes.h"

namespace kiln::program {

/// The program with nodes that compute its gradients in place of those that ask for them. Values
/// keep their numbers; others follow them. Throws InvalidArgument where there is no gradient, in
/// the names of the program, and what infer_shapes() throws.
Program with_gradients(Program program, const GivenTypes& given);

}  // namespace kiln::program
