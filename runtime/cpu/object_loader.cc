// Loads objects: lays their sections out in one piece of memory, fills in the addresses that code
// and data have of each other, and only then makes the code executable (and no longer writable).
// The only way out of an object is the list in math_symbols.cc, over stubs that lie beside the
// code, since the C library may be further away than a call reaches.
//
//   [code, stubs | constants, addresses | data]   each part on pages of its own
//
// Relocations: System V ABI, AMD64 Supplement, section 4.4.
#include "runtime/cpu/object_loader.h"

#include <array>
#include <cstring>
#include <map>
#include <unordered_map>

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/core/error.h"
#include "runtime/cpu/elf_object.h"

namespace kiln {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::InvalidArgument, "ARTIFACT_CORRUPT", "the kernel's code cannot be loaded: {}",
       fmt::format(format, std::forward<Args>(args)...));
}

uint64_t rounded_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uint64_t page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// Pages of this process, given back with it.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_(bytes) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      fail(ErrorKind::ResourceExhausted, "DEVICE_MEMORY",
           "there are no {} bytes of memory for the kernel's code: {}", bytes,
           std::strerror(errno));
    }
    data_ = static_cast<uint8_t*>(memory);
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  uint8_t* data() const { return data_; }
  void protect(uint64_t begin, uint64_t end, int how) const {
    if (begin == end) return;
    if (::mprotect(data_ + begin, end - begin, how) == 0) return;
    fail(ErrorKind::Unavailable, "CODE_MEMORY",
         "memory for the kernel's code cannot be made executable: {}", std::strerror(errno));
  }

 private:
  uint8_t* data_ = nullptr;
  uint64_t bytes_;
};

class ElfCode : public LoadedObject {
 public:
  ElfCode(std::unique_ptr<Pages> pages, std::vector<KilnEntry> entries)
      : pages_(std::move(pages)), entries_(std::move(entries)) {}
  const std::vector<KilnEntry>& entries() const override { return entries_; }

 private:
  std::unique_ptr<Pages> pages_;
  std::vector<KilnEntry> entries_;
};

using Symbols = std::unordered_map<std::string_view, uint64_t>;

/// Puts one object into memory.
class Linker {
 public:
  Linker(const ElfObject& object, const Symbols& outside) : object_(object), outside_(outside) {}

  std::unique_ptr<LoadedObject> link(const std::vector<std::string>& names) {
    count_slots();
    place();
    fill();
    for (const ElfRelocation& relocation : object_.relocations)
      relocate(relocation);
    std::vector<KilnEntry> entries;
    for (const std::string& name : names)
      entries.push_back(entry_of(name));
    pages_->protect(0, ends_[kCode], PROT_READ | PROT_EXEC);
    pages_->protect(ends_[kCode], ends_[kConstants], PROT_READ);
    return std::make_unique<ElfCode>(std::move(pages_), std::move(entries));
  }

 private:
  enum Part : uint8_t { kCode, kConstants, kData, kParts };
  static constexpr uint64_t kStubBytes = 8;  // jmp *slot(%rip), and two bytes of nothing
  static constexpr uint64_t kSlotBytes = 8;
  static constexpr uint64_t kSlack = 8;  // a relocation may begin at the end of a section
  static constexpr uint64_t kLargestObject = uint64_t{1} << 30;

  static Part part_of(const ElfSection& section) {
    if (section.is_code) return kCode;
    return section.is_written ? kData : kConstants;
  }

  /// Each symbol whose address is kept has a slot; each that lies outside has a stub too.
  void count_slots() {
    for (const ElfRelocation& relocation : object_.relocations) {
      if (relocation.type == R_X86_64_NONE) continue;
      const bool is_outside = object_.symbols[relocation.symbol].section == ElfSymbol::kUndefined;
      const bool asks_for_slot = relocation.type == R_X86_64_GOTPCREL ||
                                 relocation.type == R_X86_64_GOTPCRELX ||
                                 relocation.type == R_X86_64_REX_GOTPCRELX;
      if (is_outside || asks_for_slot) slots_.emplace(relocation.symbol, slots_.size());
    }
  }

  void place() {
    uint64_t end = 0;
    places_.resize(object_.sections.size());
    for (const Part part : {kCode, kConstants, kData}) {
      for (size_t i = 0; i < places_.size(); ++i) {
        const ElfSection& section = object_.sections[i];
        if (part_of(section) != part) continue;
        places_[i] = rounded_up(end, section.alignment);
        end = places_[i] + section.size + kSlack;
        if (end > kLargestObject) refuse("its tables do not fit together");
      }
      uint64_t& extra = part == kCode ? stubs_ : slots_at_;
      if (part != kData) {
        extra = rounded_up(end, kSlotBytes);
        end = extra + slots_.size() * kSlotBytes;
      }
      end = rounded_up(end, page_bytes());
      ends_[part] = end;
    }
    pages_ = std::make_unique<Pages>(std::max(end, page_bytes()));
  }

  void fill() {
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::string_view bytes = object_.sections[i].bytes;
      if (!bytes.empty()) std::memcpy(pages_->data() + places_[i], bytes.data(), bytes.size());
    }
    for (const auto& [symbol, slot] : slots_) {
      const uint64_t address = address_of(symbol);
      std::memcpy(pages_->data() + slot_at(slot), &address, sizeof address);
      const std::array<uint8_t, 2> jump = {0xff, 0x25};
      const auto distance =
          static_cast<int32_t>(slot_at(slot) - (stub_at(slot) + jump.size() + sizeof(int32_t)));
      std::memcpy(pages_->data() + stub_at(slot), jump.data(), jump.size());
      std::memcpy(pages_->data() + stub_at(slot) + jump.size(), &distance, sizeof distance);
    }
  }

  uint64_t slot_at(size_t slot) const { return slots_at_ + slot * kSlotBytes; }
  uint64_t stub_at(size_t slot) const { return stubs_ + slot * kStubBytes; }
  uint64_t base() const { return reinterpret_cast<uint64_t>(pages_->data()); }

  uint64_t address_of(uint32_t number) const {
    const ElfSymbol& symbol = object_.symbols[number];
    if (symbol.section >= 0)
      return base() + places_[static_cast<size_t>(symbol.section)] + symbol.value;
    if (symbol.section == ElfSymbol::kNone) refuse("its tables do not fit together");
    const auto found = outside_.find(symbol.name);
    if (found == outside_.end())
      refuse("it calls {}, which kernels may not", symbol.name.empty() ? "nothing" : symbol.name);
    return found->second;
  }

  /// What lies outside is called by way of its stub.
  uint64_t near_address_of(uint32_t number) const {
    const bool is_outside = object_.symbols[number].section == ElfSymbol::kUndefined;
    return is_outside ? base() + stub_at(slots_.at(number)) : address_of(number);
  }

  void relocate(const ElfRelocation& relocation) {
    const uint64_t at = places_[static_cast<size_t>(relocation.section)] + relocation.offset;
    const uint64_t here = base() + at;
    const auto addend = static_cast<uint64_t>(relocation.addend);
    switch (relocation.type) {
      case R_X86_64_NONE: return;
      case R_X86_64_64: return write(at, address_of(relocation.symbol) + addend);
      case R_X86_64_PC64: return write(at, address_of(relocation.symbol) + addend - here);
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        return write_near(at, near_address_of(relocation.symbol) + addend - here);
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        return write_near(at, base() + slot_at(slots_.at(relocation.symbol)) + addend - here);
      default: refuse("relocations of type {} are not known", relocation.type);
    }
  }

  void write(uint64_t at, uint64_t value) {
    std::memcpy(pages_->data() + at, &value, sizeof value);
  }

  void write_near(uint64_t at, uint64_t distance) {
    const auto value = static_cast<int32_t>(distance);
    if (static_cast<int64_t>(distance) != value) refuse("an address is out of reach");
    std::memcpy(pages_->data() + at, &value, sizeof value);
  }

  KilnEntry entry_of(const std::string& name) const {
    for (size_t i = 0; i < object_.symbols.size(); ++i) {
      const ElfSymbol& symbol = object_.symbols[i];
      const bool is_code = symbol.section >= 0 && symbol.is_function &&
                           object_.sections[static_cast<size_t>(symbol.section)].is_code;
      if (is_code && symbol.name == name)
        return reinterpret_cast<KilnEntry>(address_of(static_cast<uint32_t>(i)));
    }
    refuse("it has no function {}", name);
  }

  const ElfObject& object_;
  const Symbols& outside_;
  std::map<uint32_t, size_t> slots_;  // by symbol
  std::vector<uint64_t> places_;      // of the sections, from the begin of the memory
  std::array<uint64_t, kParts> ends_{};
  uint64_t stubs_ = 0;
  uint64_t slots_at_ = 0;
  std::unique_ptr<Pages> pages_;
};

class ElfLoader : public ObjectLoader {
 public:
  explicit ElfLoader(std::span<const ProcessSymbol> more) {
    for (const std::span<const ProcessSymbol> list : {process_symbols(), more}) {
      for (const ProcessSymbol& symbol : list)
        outside_.emplace(symbol.name, reinterpret_cast<uint64_t>(symbol.address));
    }
  }

  std::unique_ptr<LoadedObject> load(const std::string& object,
                                     const std::vector<std::string>& entries) override {
    const ElfObject read = read_elf(object);
    return Linker(read, outside_).link(entries);
  }

 private:
  Symbols outside_;
};

}  // namespace

std::unique_ptr<ObjectLoader> make_object_loader(std::span<const ProcessSymbol> more) {
  return std::make_unique<ElfLoader>(more);
}

}  // namespace kiln
