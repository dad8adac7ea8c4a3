// Reads relocatable ELF objects as LLVM writes them for x86-64. Whatever a number of the file
// points to is looked for inside the file before it is used, so that damaged bytes end in a
// sentence.
#include "runtime/cpu/elf_object.h"

#include <cstring>
#include <optional>

#include "runtime/core/error.h"

namespace kiln {
namespace {

constexpr uint64_t kLargestSection = uint64_t{1} << 30;
constexpr uint64_t kLargestAlignment = 4096;

[[noreturn]] void refuse(std::string_view what) {
  fail(ErrorKind::InvalidArgument, "ARTIFACT_CORRUPT", "the kernel's code cannot be loaded: {}",
       what);
}

/// Where a number of the file points nowhere.
void check(bool fits) {
  if (!fits) refuse("its tables do not fit together");
}

class ElfReader {
 public:
  explicit ElfReader(std::string_view bytes) : bytes_(bytes) {}

  ElfObject read() {
    read_headers();
    for (const Elf64_Shdr& header : headers_)
      loaded_.push_back(take_section(header));
    for (const Elf64_Shdr& header : headers_) {
      if (header.sh_type == SHT_SYMTAB) take_symbols(header);
    }
    for (const Elf64_Shdr& header : headers_) {
      if (header.sh_type == SHT_RELA) take_relocations(header);
    }
    return std::move(object_);
  }

 private:
  std::string_view part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) refuse("it ends early");
    return bytes_.substr(offset, size);
  }

  template <typename T>
  T at(std::string_view table, uint64_t index) const {
    T value;
    std::memcpy(&value, table.data() + index * sizeof value, sizeof value);
    return value;
  }

  void read_headers() {
    if (bytes_.size() < sizeof(Elf64_Ehdr) || !bytes_.starts_with(ELFMAG))
      refuse("it is no object");
    const auto file = at<Elf64_Ehdr>(bytes_, 0);
    const bool is_ours = file.e_ident[EI_CLASS] == ELFCLASS64 &&
                         file.e_ident[EI_DATA] == ELFDATA2LSB && file.e_type == ET_REL &&
                         file.e_machine == EM_X86_64 && file.e_shentsize == sizeof(Elf64_Shdr);
    if (!is_ours) refuse("it is no object for x86-64");
    const std::string_view table = part(file.e_shoff, uint64_t{file.e_shnum} * sizeof(Elf64_Shdr));
    for (uint64_t i = 0; i < file.e_shnum; ++i)
      headers_.push_back(at<Elf64_Shdr>(table, i));
    check(file.e_shstrndx < headers_.size());
    names_ = contents(headers_[file.e_shstrndx]);
  }

  std::string_view contents(const Elf64_Shdr& header) const {
    return header.sh_type == SHT_NOBITS ? std::string_view()
                                        : part(header.sh_offset, header.sh_size);
  }

  std::string_view text_at(std::string_view texts, uint64_t offset) const {
    check(offset < texts.size());
    const std::string_view rest = texts.substr(offset);
    const size_t end = rest.find('\0');
    check(end != std::string_view::npos);
    return rest.substr(0, end);
  }

  /// Its number among those that are loaded.
  std::optional<int> take_section(const Elf64_Shdr& header) {
    const bool is_loaded = (header.sh_flags & SHF_ALLOC) != 0 &&
                           header.sh_type != SHT_X86_64_UNWIND &&
                           text_at(names_, header.sh_name) != ".eh_frame";
    if (!is_loaded) return std::nullopt;
    ElfSection section;
    section.bytes = contents(header);
    section.size = header.sh_size;
    section.alignment = std::max<uint64_t>(header.sh_addralign, 1);
    section.is_code = (header.sh_flags & SHF_EXECINSTR) != 0;
    section.is_written = (header.sh_flags & SHF_WRITE) != 0;
    check(section.size <= kLargestSection && section.alignment <= kLargestAlignment &&
          (section.alignment & (section.alignment - 1)) == 0);
    object_.sections.push_back(section);
    return static_cast<int>(object_.sections.size()) - 1;
  }

  void take_symbols(const Elf64_Shdr& header) {
    check(object_.symbols.empty() && header.sh_link < headers_.size());
    const std::string_view texts = contents(headers_[header.sh_link]);
    const std::string_view table = contents(header);
    for (uint64_t i = 0; i < table.size() / sizeof(Elf64_Sym); ++i) {
      const auto read = at<Elf64_Sym>(table, i);
      ElfSymbol symbol;
      symbol.name = text_at(texts, read.st_name);
      symbol.value = read.st_value;
      symbol.is_function = ELF64_ST_TYPE(read.st_info) == STT_FUNC;
      if (read.st_shndx == SHN_UNDEF) {
        symbol.section = ElfSymbol::kUndefined;
      } else if (read.st_shndx < loaded_.size() && loaded_[read.st_shndx]) {
        symbol.section = *loaded_[read.st_shndx];
        check(symbol.value <= object_.sections[static_cast<size_t>(symbol.section)].size);
      }
      object_.symbols.push_back(symbol);
    }
  }

  void take_relocations(const Elf64_Shdr& header) {
    if (header.sh_info >= loaded_.size() || !loaded_[header.sh_info]) return;
    const int section = *loaded_[header.sh_info];
    const ElfSection& changed = object_.sections[static_cast<size_t>(section)];
    const std::string_view table = contents(header);
    for (uint64_t i = 0; i < table.size() / sizeof(Elf64_Rela); ++i) {
      const auto read = at<Elf64_Rela>(table, i);
      ElfRelocation relocation;
      relocation.section = section;
      relocation.offset = read.r_offset;
      relocation.type = static_cast<uint32_t>(ELF64_R_TYPE(read.r_info));
      relocation.symbol = static_cast<uint32_t>(ELF64_R_SYM(read.r_info));
      relocation.addend = read.r_addend;
      check(relocation.symbol < object_.symbols.size());
      // The widest one; a narrower one at the very end of a section is followed by code or by
      // zeros.
      check(read.r_offset <= changed.size && !changed.bytes.empty());
      object_.relocations.push_back(relocation);
    }
  }

  const std::string_view bytes_;
  std::string_view names_;
  std::vector<Elf64_Shdr> headers_;
  std::vector<std::optional<int>> loaded_;  // by section of the file
  ElfObject object_;
};

}  // namespace

ElfObject read_elf(std::string_view bytes) { return ElfReader(bytes).read(); }

}  // namespace kiln
