#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

namespace kiln {

/// A part of an object that is to lie in memory.
struct ElfSection {
  std::string_view bytes;  // empty where it is zeros
  uint64_t size = 0;
  uint64_t alignment = 1;  // a power of two
  bool is_code = false;
  bool is_written = false;
};

struct ElfSymbol {
  std::string_view name;
  int section = kNone;  // in ElfObject::sections, or one of these
  uint64_t value = 0;   // where in the section
  bool is_function = false;

  static constexpr int kNone = -1;       // in a part that is not loaded
  static constexpr int kUndefined = -2;  // to be found elsewhere, by its name
};

/// A place in a section that depends on where things lie.
struct ElfRelocation {
  int section = 0;
  uint64_t offset = 0;  // in the section
  uint32_t type = 0;    // R_X86_64_..
  uint32_t symbol = 0;  // in ElfObject::symbols
  int64_t addend = 0;
};

/// A relocatable object of x86-64, read: every number of it lies within its bounds. Views point
/// into the bytes it was read from.
struct ElfObject {
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;
  std::vector<ElfRelocation> relocations;
};

/// What is loaded of an object: code and data, but no tables for unwinding, which generated code
/// has no use for. Throws InvalidArgument ARTIFACT_CORRUPT; any bytes at all are safe to pass.
ElfObject read_elf(std::string_view bytes);

}  // namespace kiln
