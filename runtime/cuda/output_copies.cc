// As on the CPU, but of whole tensors: those on a device have no gaps.
#include "runtime/cuda/output_copies.h"

namespace kiln::cuda {

OutputCopies::OutputCopies(DeviceWork& work, const Artifact& artifact, const KernelCall& call)
    : work_(work),
      shared_(shared_outputs(artifact, call)),
      tensors_(call.tensors.begin(), call.tensors.end()) {
  for (const SharedOutput& output : shared_) {
    const size_t i = output.parameter;
    KILN_CHECK(output.span.bytes() ==
               byte_size(artifact.parameters[i].type, call.bound->shapes[i]));
    tensors_[i] = memory_.emplace_back(work.pool, output.span.bytes()).data();
  }
}

void OutputCopies::commit() {
  for (size_t k = 0; k < shared_.size(); ++k) {
    const MemorySpan& span = shared_[k].span;
    work_.out.copy_within(span.begin, reinterpret_cast<DevicePointer>(memory_[k].data()),
                          span.bytes());
  }
}

}  // namespace kiln::cuda
