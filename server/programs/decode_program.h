#pragma once

#include "compiler/program/program.h"
#include "kiln/v1/program.pb.h"

namespace kiln::server {

/// The tables of a program from the wire, with every kernel checked; its wiring is not. Throws
/// InvalidArgument or, past a limit, ResourceExhausted. Nothing in the message is trusted.
program::Program decode_program(const v1::Program& wire);

}  // namespace kiln::server
