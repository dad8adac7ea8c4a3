#pragma once

#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "tests/support/random.h"

namespace kiln::testing {

/// One to eight steps that the step table allows. The compiler may still refuse one, with a
/// sentence.
language::Schedule random_schedule(const language::Definition& definition, Random& random);

/// Two to ten steps, most of them such as schedules for GPUs are made of: loops over blocks and
/// threads, of reductions too, and copies in shared memory.
language::Schedule random_gpu_schedule(const language::Definition& definition, Random& random);

/// Its steps before the first that the language refuses.
language::Schedule accepted_steps(const language::Kernel& kernel,
                                  const language::Schedule& schedule);

}  // namespace kiln::testing
