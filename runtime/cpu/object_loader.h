#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/kernel_abi.h"
#include "runtime/cpu/math_symbols.h"

namespace kiln {

/// Machine code in memory; freed with the object.
class LoadedObject {
 public:
  virtual ~LoadedObject() = default;
  /// One for each entry asked for, in that order.
  virtual const std::vector<KilnEntry>& entries() const = 0;
};

/// Puts ELF objects into executable memory and links them against the C library's mathematics. One
/// for a process's device; thread-safe; objects must not outlive it.
class ObjectLoader {
 public:
  virtual ~ObjectLoader() = default;
  /// Throws InvalidArgument ARTIFACT_CORRUPT when the bytes are no object of this host, or lack an
  /// entry, or need a symbol that generated code has no business with.
  virtual std::unique_ptr<LoadedObject> load(const std::string& object,
                                             const std::vector<std::string>& entries) = 0;
};

/// `more`: what objects may call beside process_symbols().
std::unique_ptr<ObjectLoader> make_object_loader(std::span<const ProcessSymbol> more = {});

}  // namespace kiln
