#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "runtime/device.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// What a kernel's own definition calls its parts, as the service gives them to the runtime.
KernelNames names_of(const language::Kernel& kernel);

/// The arguments of one call in guarded memory, laid out with strides.
class CallInMemory {
 public:
  /// `tensors` has one for each parameter: contents of inputs, anything for outputs. `slots` are
  /// their layouts; those of outputs may be not given, and are compact then.
  CallInMemory(const BoundCall& bound, std::vector<ArgumentSlot> slots,
               const std::vector<HostTensor>& tensors);

  /// Of each argument, its first element.
  std::vector<void*> pointers() const;
  /// What an argument holds now. With strides that overlap, this is not what it was given.
  HostTensor contents(size_t argument) const;
  /// Empty, or which argument has other bytes where no element lies.
  std::string touched_between_elements() const;

 private:
  struct Argument {
    HostTensor layout;  // type and shape
    std::vector<int64_t> strides;
    int64_t first = 0;  // the place of the first element, in elements
    std::unique_ptr<GuardedMemory> memory;
    std::vector<bool> is_element;  // of bytes
  };
  /// Places of all elements, in elements from the start of the memory.
  static std::vector<int64_t> places_of(const Argument& argument);

  std::vector<Argument> arguments_;
};

}  // namespace kiln::testing
