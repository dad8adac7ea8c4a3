// Finds outputs that share memory with other arguments, by the address ranges that shapes and
// strides span. Ranges may overlap where elements do not, as columns of one array do; that costs a
// copy, never a wrong result.
#include "runtime/overlap.h"

#include <algorithm>
#include <utility>

#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

bool overlap(const MemorySpan& a, const MemorySpan& b) {
  // Without elements there is nothing to share.
  return a.begin < a.end && b.begin < b.end && a.begin < b.end && b.begin < a.end;
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

MemorySpan span_of(const Artifact& artifact, const KernelCall& call, size_t i) {
  const auto [before, after] = reach_of(call.bound->shapes[i], strides_of(artifact, *call.bound, i),
                                        size_of(artifact.parameters[i].type));
  const auto address = reinterpret_cast<uintptr_t>(call.tensors[i]);
  return {address + static_cast<uintptr_t>(before), address + static_cast<uintptr_t>(after)};
}

}  // namespace

std::span<const int64_t> strides_of(const Artifact& artifact, const BoundCall& bound, size_t i) {
  auto first = static_cast<size_t>(artifact.size_count);
  for (size_t p = 0; p < i; ++p)
    first += artifact.parameters[p].shape.size();
  return std::span(bound.scalars).subspan(first, artifact.parameters[i].shape.size());
}

std::vector<SharedOutput> shared_outputs(const Artifact& artifact, const KernelCall& call) {
  const size_t count = call.tensors.size();
  std::vector<MemorySpan> spans;
  for (size_t i = 0; i < count; ++i)
    spans.push_back(span_of(artifact, call, i));
  const auto name = [&](size_t i) {
    return call.names != nullptr ? call.names->parameters[i] : std::to_string(i);
  };
  std::vector<SharedOutput> result;
  for (size_t i = 0; i < count; ++i) {
    if (!artifact.parameters[i].is_output) continue;
    bool shares = false;
    for (size_t other = 0; other < count; ++other) {
      if (other == i || !overlap(spans[i], spans[other])) continue;
      if (artifact.parameters[other].is_output) {
        fail(ErrorKind::InvalidArgument, "ARGUMENT_OVERLAP",
             "arguments {} and {} of {} are both written, but share memory",
             name(std::min(i, other)), name(std::max(i, other)), called(call.names));
      }
      shares = true;
    }
    if (shares) result.push_back({i, spans[i]});
  }
  return result;
}

}  // namespace kiln
