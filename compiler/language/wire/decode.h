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

/// Checks what needs no knowledge of the compiler: known steps, field counts, ids in range, and
/// what ScheduleState refuses. An error has the note "at step 3: split(k, factor=4)" and the step's
/// line.
Schedule decode_schedule(const v1::Schedule& schedule, const Kernel& kernel,
                         const Limits& limits = {});

/// The fields of a step, unchecked.
Step step_of(const v1::Step& wire, StepKind kind);

/// The wire form of a checked kernel, for the printer, tests and clients.
v1::Definition encode(const Definition& definition);
v1::SourceMap encode(const SourceMap& names);
v1::Schedule encode(const Schedule& schedule);

}  // namespace kiln::language
