// Kernels are compiled for arguments without gaps; one that steps through its memory otherwise is
// gathered before the call, or scattered after it.
#include "runtime/library/compact_copies.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/arguments.h"

namespace kiln {
namespace {

bool is_compact(const KilnTensor& tensor, const std::vector<int64_t>& shape) {
  if (tensor.strides == nullptr || std::ranges::find(shape, 0) != shape.end()) return true;
  const std::vector<int64_t> wanted = compact_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && tensor.strides[d] != wanted[d]) return false;
  }
  return true;
}

/// Calls copy(position with gaps, position without) for each element, both in bytes.
template <typename Copy>
void for_each_element(const KilnTensor& tensor, const std::vector<int64_t>& shape, int64_t bytes,
                      const Copy& copy) {
  std::vector<int64_t> index(shape.size(), 0);
  int64_t at = 0;
  for (int64_t to = 0;; to += bytes) {
    copy(at * bytes, to);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) {
      --d;
      at -= (shape[d] - 1) * tensor.strides[d];
      index[d] = 0;
    }
    if (d == 0) return;
    at += tensor.strides[d - 1];
  }
}

}  // namespace

CompactCopies::CompactCopies(const std::vector<Parameter>& parameters,
                             std::span<const KilnTensor> tensors,
                             const std::vector<std::vector<int64_t>>& shapes)
    : parameters_(parameters), tensors_(tensors), shapes_(shapes), copies_(tensors.size()) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    addresses_.push_back(tensors[i].data);
    if (is_compact(tensors[i], shapes[i])) continue;
    copies_[i] = allocate_aligned(byte_size(parameters[i].type, shapes[i]));
    addresses_[i] = copies_[i].get();
    if (parameters[i].is_output) continue;
    const auto* const from = static_cast<const uint8_t*>(tensors[i].data);
    const auto bytes = static_cast<size_t>(size_of(parameters[i].type));
    for_each_element(
        tensors[i], shapes[i], size_of(parameters[i].type),
        [&](int64_t at, int64_t to) { std::memcpy(copies_[i].get() + to, from + at, bytes); });
  }
}

void CompactCopies::commit() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!copies_[i] || !parameters_[i].is_output) continue;
    auto* const into = static_cast<uint8_t*>(tensors_[i].data);
    const auto bytes = static_cast<size_t>(size_of(parameters_[i].type));
    for_each_element(
        tensors_[i], shapes_[i], size_of(parameters_[i].type),
        [&](int64_t at, int64_t from) { std::memcpy(into + at, copies_[i].get() + from, bytes); });
  }
}

}  // namespace kiln
