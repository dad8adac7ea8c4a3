#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/language/text/text.h"
#include "runtime/device.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// Kernels lowered for CUDA that run on this host as their CUDA C says, each thread a fiber,
/// watched for threads that do not wait for each other and for accesses beside memory.
class HostGpu {
 public:
  /// The position of a kernel; all are compiled at once, since that is what takes long.
  size_t add(ir::Kernel kernel);
  /// Nothing may be added afterwards.
  void compile(bool strict = true);

  /// The outputs, in order. An Error that is Unavailable says what the threads did wrong.
  std::vector<HostTensor> run(size_t kernel, const std::vector<int64_t>& sizes,
                              const std::vector<HostTensor>& inputs) const;

  const Artifact& artifact(size_t kernel) const { return *artifacts_[kernel]; }

 private:
  static std::vector<HostTensor> run_on(Device& device, const LoadedKernel& loaded,
                                        const BoundCall& bound, const KernelNames& names,
                                        const std::vector<HostTensor>& inputs);

  std::vector<ir::Kernel> kernels_;
  std::vector<std::shared_ptr<Artifact>> artifacts_;
  mutable std::unique_ptr<Device> device_;  // opened when it is first used
  mutable std::map<size_t, std::shared_ptr<LoadedKernel>> loaded_;
};

/// Empty, or how what the threads of these loops give or do differs from the definition.
std::string difference_on_host(const language::TextKernel& text, const ir::Kernel& loops,
                               const std::vector<int64_t>& sizes);

}  // namespace kiln::testing
