#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"
#include "runtime/device.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// The CPU device of this process with so many threads; opened once each.
Device& cpu_device(int threads = 2);

/// A kernel lowered by hand, for compact arguments; for another CPU than this where one is named.
std::shared_ptr<const Artifact> compile_lowered(const ir::Kernel& kernel,
                                                const std::string& arch = {});

/// Definition and schedule -> artifact, for this host. The schedule is taken as it is.
std::shared_ptr<const Artifact> compile_for_host(const language::Kernel& kernel,
                                                 const language::Schedule& schedule,
                                                 const CompileOptions& options = {});

/// Loads and runs an artifact. `tensors` has one for each parameter; those of outputs are replaced
/// by what the kernel writes, with the shape the sizes say. Their own shapes do not matter.
void run_artifact(const std::shared_ptr<const Artifact>& artifact, std::vector<HostTensor>& tensors,
                  const std::map<std::string, int64_t>& sizes = {}, int threads = 2);

/// The same with every argument, outputs too, spread over twice its memory: each second element
/// is another's, and fails the test when the kernel writes to it. `tensors` has the shapes and
/// types of outputs.
void run_spread_out(const std::shared_ptr<const Artifact>& artifact,
                    std::vector<HostTensor>& tensors,
                    const std::map<std::string, int64_t>& sizes = {}, int threads = 2);

/// The names that run_artifact() uses in messages: K; p0, p1 ..; n0, n1 ..; stage0 ...
KernelNames plain_names(const Artifact& artifact);

/// Compiles and runs on this host: the computed parameters, in order. `inputs` has one tensor for
/// each parameter that is a placeholder; `sizes` a value for each variable.
std::vector<HostTensor> run_on_cpu(const language::Kernel& kernel,
                                   const language::Schedule& schedule,
                                   const std::vector<int64_t>& sizes,
                                   const std::vector<HostTensor>& inputs, int threads = 2,
                                   const CompileOptions& options = {});

}  // namespace kiln::testing
