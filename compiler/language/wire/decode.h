#pragma once

#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "kiln/v1/kernel.pb.h"
#include "kiln/v1/schedule.pb.h"

namespace kiln::language {

/// Checks a definition from the wire. Throws InvalidArgument (or ResourceExhausted past a limit) in
/// the user's names, with the line of the stage at fault. Nothing in the message is trusted.
Kernel decode(const v1::Definition& definition, const v1::SourceMap& source_map,
              const Limits& limits = {});

/// Checks what needs no knowledge of the compiler: known steps, field counts, ids in range, factors
/// of at least 1, axes of the stage named, no axis used after a step consumed it, known thread
/// tags.
Schedule decode_schedule(const v1::Schedule& schedule, const Kernel& kernel,
                         const Limits& limits = {});

/// The wire form of a checked kernel, for the printer, tests and clients.
v1::Definition encode(const Definition& definition);
v1::SourceMap encode(const SourceMap& names);
v1::Schedule encode(const Schedule& schedule);

}  // namespace kiln::language
