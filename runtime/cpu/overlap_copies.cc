// Outputs that share memory with inputs get memory of their own while the call runs.
#include "runtime/cpu/overlap_copies.h"

#include <cstring>

#include "runtime/overlap.h"

namespace kiln {
namespace {

/// Copies the elements of two tensors of one layout, one innermost row at a time.
void copy_elements(uint8_t* to, const uint8_t* from, std::span<const int64_t> shape,
                   std::span<const int64_t> strides, int64_t element) {
  if (shape.empty()) {
    std::memcpy(to, from, static_cast<size_t>(element));
    return;
  }
  if (shape.size() == 1 && strides[0] == 1) {
    std::memcpy(to, from, static_cast<size_t>(shape[0] * element));
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i) {
    const int64_t offset = i * strides[0] * element;
    copy_elements(to + offset, from + offset, shape.subspan(1), strides.subspan(1), element);
  }
}

}  // namespace

OverlapCopies::OverlapCopies(const Artifact& artifact, const KernelCall& call)
    : artifact_(artifact), call_(call), tensors_(call.tensors.begin(), call.tensors.end()) {
  for (const SharedOutput& output : shared_outputs(artifact, call)) {
    const size_t i = output.parameter;
    copies_.push_back({i, allocate_aligned(output.span.bytes())});
    const auto first = reinterpret_cast<uintptr_t>(tensors_[i]) - output.span.begin;
    tensors_[i] = copies_.back().memory.get() + first;
  }
}

void OverlapCopies::commit() {
  for (const Copy& copy : copies_) {
    const size_t i = copy.parameter;
    copy_elements(static_cast<uint8_t*>(call_.tensors[i]), static_cast<const uint8_t*>(tensors_[i]),
                  call_.bound->shapes[i], strides_of(artifact_, *call_.bound, i),
                  size_of(artifact_.parameters[i].type));
  }
}

}  // namespace kiln
