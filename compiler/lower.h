#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/pass_table.h"

namespace kiln {

/// The loops of a kernel as build_loops and the first simplify make them: as it was written, for
/// the interpreter. Pure. Throws an Error in the user's names.
ir::Kernel plain_loops(const language::Kernel& kernel, const language::Schedule& schedule,
                       const Target& target, const CompileOptions& options,
                       LoweringObserver& observer);

/// The loops of a kernel under a schedule that names everything (see choose_schedule()), ready for
/// code generation. Pure. Throws an Error in the user's names.
ir::Kernel lower(const language::Kernel& kernel, const language::Schedule& schedule,
                 const Target& target, const CompileOptions& options, Layout layout,
                 LoweringObserver& observer);

/// The passes alone, on loops as build_loops makes them. For tests that write loops down.
ir::Kernel run_passes(const ir::Kernel& kernel, const Target& target, const CompileOptions& options,
                      Layout layout, LoweringObserver& observer);

/// A row of the table of passes, for tests of one. Throws InvalidArgument PASS when there is none.
const Pass& pass_named(std::string_view name);

/// Names of the passes, in order; "NAME:1", "NAME:2" where one stands twice.
std::vector<std::string> pass_names(const Target& target);

/// The text of the kernel after `pass` ("" : build_loops and the first simplify). Throws
/// InvalidArgument PASS listing the names when there is no such pass.
std::string lowered_text(const language::Kernel& kernel, const language::Schedule& schedule,
                         const Target& target, const CompileOptions& options,
                         std::string_view pass);

}  // namespace kiln
