// Lays arguments out in guarded memory by their strides, with a pattern between elements: a kernel
// that writes where no element lies is found out. Every fourth call has its arguments at the other
// guard.
#include "tests/support/call_in_memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

namespace kiln::testing {
namespace {

constexpr std::byte kUntouched{0x5a};

}  // namespace

KernelNames names_of(const language::Kernel& kernel) {
  KernelNames names;
  names.kernel = kernel.names.kernel;
  names.sizes = kernel.names.variables;
  names.stages = kernel.names.stages;
  for (const language::TensorId parameter : kernel.definition.parameters)
    names.parameters.push_back(kernel.names.tensor_name(kernel.definition, parameter));
  return names;
}

std::vector<int64_t> CallInMemory::places_of(const Argument& argument) {
  const std::vector<int64_t>& shape = argument.layout.shape;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < element_count(shape); ++i) {
    int64_t place = argument.first;
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      place += rest % shape[d] * argument.strides[d];
      rest /= shape[d];
    }
    places.push_back(place);
  }
  return places;
}

CallInMemory::CallInMemory(const BoundCall& bound, std::vector<ArgumentSlot> slots,
                           const std::vector<HostTensor>& tensors) {
  static std::atomic<int> calls = 0;
  const auto edge = ++calls % 4 == 0 ? GuardedMemory::Edge::Begin : GuardedMemory::Edge::End;
  for (size_t i = 0; i < slots.size(); ++i) {
    Argument argument;
    argument.layout = {tensors[i].type, bound.shapes[i], {}};
    argument.strides = slots[i].given ? slots[i].layout.strides : std::vector<int64_t>{};
    if (argument.strides.empty()) argument.strides = compact_strides(bound.shapes[i]);
    int64_t last = 0;
    for (size_t d = 0; d < bound.shapes[i].size(); ++d) {
      const int64_t reach = (bound.shapes[i][d] - 1) * argument.strides[d];
      if (bound.shapes[i][d] > 1) (reach < 0 ? argument.first : last) -= reach;
    }
    const bool is_empty = element_count(bound.shapes[i]) == 0;
    const int64_t elements = is_empty ? 0 : argument.first - last + 1;
    const auto size = static_cast<size_t>(size_of(tensors[i].type));
    argument.memory = std::make_unique<GuardedMemory>(fmt::format("argument {}", i),
                                                      static_cast<size_t>(elements) * size, edge);
    std::byte* data = argument.memory->data();
    std::fill_n(data, argument.memory->bytes(), kUntouched);
    argument.is_element.resize(argument.memory->bytes());
    const std::vector<int64_t> places = places_of(argument);
    for (size_t e = 0; e < places.size(); ++e) {
      const size_t at = static_cast<size_t>(places[e]) * size;
      std::fill_n(argument.is_element.begin() + static_cast<ptrdiff_t>(at), size, true);
      if (!tensors[i].bytes.empty()) std::memcpy(data + at, &tensors[i].bytes[e * size], size);
    }
    arguments_.push_back(std::move(argument));
  }
}

std::vector<void*> CallInMemory::pointers() const {
  std::vector<void*> result;
  for (const Argument& argument : arguments_)
    result.push_back(argument.memory->data() + argument.first * size_of(argument.layout.type));
  return result;
}

HostTensor CallInMemory::contents(size_t index) const {
  const Argument& argument = arguments_[index];
  HostTensor tensor = zeros(argument.layout.type, argument.layout.shape);
  const auto size = static_cast<size_t>(size_of(tensor.type));
  const std::vector<int64_t> places = places_of(argument);
  for (size_t e = 0; e < places.size(); ++e) {
    std::memcpy(&tensor.bytes[e * size],
                argument.memory->data() + static_cast<size_t>(places[e]) * size, size);
  }
  return tensor;
}

std::string CallInMemory::touched_between_elements() const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    for (size_t at = 0; at < argument.is_element.size(); ++at) {
      if (!argument.is_element[at] && argument.memory->data()[at] != kUntouched)
        return fmt::format("argument {}: the kernel wrote between its elements", i);
    }
  }
  return "";
}

}  // namespace kiln::testing
