// Finds outputs that share memory with other arguments, by the address ranges that shapes and
// strides span, and gives them memory of their own while the call runs. Ranges may overlap where
// elements do not, as columns of one array do; that costs a copy, never a wrong result.
#include "runtime/cpu/overlap.h"

#include <cstring>

#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

/// Where the elements of a tensor lie.
struct Extent {
  uintptr_t begin = 0;
  uintptr_t end = 0;  // equal to begin: no elements
};

bool overlap(const Extent& a, const Extent& b) {
  // Without elements there is nothing to share.
  return a.begin < a.end && b.begin < b.end && a.begin < b.end && b.begin < a.end;
}

std::span<const int64_t> strides_of(const Artifact& artifact, const BoundCall& bound, size_t i) {
  size_t first = static_cast<size_t>(artifact.size_count);
  for (size_t p = 0; p < i; ++p) {
    first += artifact.parameters[p].shape.size();
  }
  return std::span(bound.scalars).subspan(first, artifact.parameters[i].shape.size());
}

/// Bytes before the first element, and past it.
std::pair<int64_t, int64_t> reach_of(std::span<const int64_t> shape,
                                     std::span<const int64_t> strides, int64_t element) {
  int64_t before = 0;
  int64_t after = element;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return {0, 0};
    const int64_t reach = (shape[d] - 1) * strides[d] * element;
    (reach < 0 ? before : after) += reach;
  }
  return {before, after};
}

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
  std::vector<Extent> extents;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto [before, after] =
        reach_of(call.bound->shapes[i], strides_of(artifact, *call.bound, i),
                 size_of(artifact.parameters[i].type));
    const auto address = reinterpret_cast<uintptr_t>(tensors_[i]);
    extents.push_back(
        {address + static_cast<uintptr_t>(before), address + static_cast<uintptr_t>(after)});
  }
  const auto name = [&](size_t i) {
    return call.names != nullptr ? call.names->parameters[i] : std::to_string(i);
  };
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!artifact.parameters[i].is_output) continue;
    bool shares = false;
    for (size_t other = 0; other < tensors_.size(); ++other) {
      if (other == i || !overlap(extents[i], extents[other])) continue;
      if (artifact.parameters[other].is_output) {
        fail(ErrorKind::InvalidArgument, "ARGUMENT_OVERLAP",
             "arguments {} and {} of {} are both written, but share memory",
             name(std::min(i, other)), name(std::max(i, other)), called(call.names));
      }
      shares = true;
    }
    if (!shares) continue;
    const auto bytes = static_cast<int64_t>(extents[i].end - extents[i].begin);
    copies_.push_back({i, allocate_aligned(bytes)});
    const auto first = reinterpret_cast<uintptr_t>(tensors_[i]) - extents[i].begin;
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
