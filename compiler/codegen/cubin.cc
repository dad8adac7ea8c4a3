// Reads a cubin as the ELF file that it is: section headers name the kernels and give the sizes of
// code and shared memory, .nv.info gives registers and stack. Every offset is checked before it is
// followed, so that a file of another form yields less, never a crash.
#include "compiler/codegen/cubin.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include <elf.h>

namespace kiln::codegen {
namespace {

// Attributes of .nv.info: a format byte, an attribute byte, and two bytes of value or length. Their
// names are those that cuobjdump prints.
constexpr uint8_t kFormatWithPayload = 4;  // EIFMT_SVAL
constexpr uint8_t kRegisterCount = 0x2f;   // EIATTR_REGCOUNT: symbol, registers
constexpr uint8_t kFrameSize = 0x11;       // EIATTR_FRAME_SIZE: symbol, bytes
constexpr uint8_t kThreads = 0x10;         // EIATTR_REQNTID: of a block, along each axis
constexpr int64_t kInstructionBytes = 16;  // of every GPU since Volta

/// One walk over the file. Sections may come in any order, so attributes are read after all kernels
/// are known.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  std::vector<CubinKernel> kernels() {
    if (!read_sections()) return {};
    for (const Elf64_Shdr& section : sections_) {
      const std::string name = string_at(names_offset_, section.sh_name);
      if (name.starts_with(".text.")) {
        CubinKernel& kernel = entry(name.substr(6));
        kernel.code = part_of(section);
        kernel.instructions = static_cast<int64_t>(kernel.code.size()) / kInstructionBytes;
      } else if (name.starts_with(".nv.shared.") && !name.starts_with(".nv.shared.reserved")) {
        entry(name.substr(11)).shared_bytes = static_cast<int64_t>(section.sh_size);
      }
    }
    for (const Elf64_Shdr& section : sections_) {
      const std::string name = string_at(names_offset_, section.sh_name);
      if (name == ".nv.info") read_attributes(section, nullptr);
      for (CubinKernel& kernel : kernels_)
        if (name == ".nv.info." + kernel.name) read_attributes(section, &kernel);
    }
    return std::move(kernels_);
  }

 private:
  /// Copied out, since nothing in a file is aligned; nothing past its end.
  template <typename T>
  std::optional<T> at(uint64_t offset) const {
    if (offset > file_.size() || sizeof(T) > file_.size() - offset) return std::nullopt;
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }

  std::string_view part_of(const Elf64_Shdr& section) const {
    if (section.sh_offset > file_.size()) return {};
    return file_.substr(section.sh_offset, section.sh_size);
  }

  std::string string_at(uint64_t table, uint64_t offset) const {
    const uint64_t begin = table + offset;
    if (begin < table || begin >= file_.size()) return "";
    const size_t end = file_.find('\0', begin);
    return std::string(file_.substr(begin, end == std::string_view::npos ? 0 : end - begin));
  }

  bool read_sections() {
    const std::optional<Elf64_Ehdr> header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
    for (int i = 0; i < header->e_shnum; ++i) {
      const std::optional<Elf64_Shdr> section =
          at<Elf64_Shdr>(header->e_shoff + static_cast<uint64_t>(i) * sizeof(Elf64_Shdr));
      if (!section) return false;
      sections_.push_back(*section);
    }
    if (header->e_shstrndx >= sections_.size()) return false;
    names_offset_ = sections_[header->e_shstrndx].sh_offset;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections_.size()) continue;
      symbols_offset_ = section.sh_offset;
      symbol_count_ = section.sh_size / sizeof(Elf64_Sym);
      symbol_names_offset_ = sections_[section.sh_link].sh_offset;
    }
    return true;
  }

  std::string symbol(uint32_t number) const {
    if (number >= symbol_count_) return "";
    const auto found = at<Elf64_Sym>(symbols_offset_ + uint64_t{number} * sizeof(Elf64_Sym));
    return found ? string_at(symbol_names_offset_, found->st_name) : "";
  }

  CubinKernel& entry(const std::string& name) {
    for (CubinKernel& kernel : kernels_) {
      if (kernel.name == name) return kernel;
    }
    kernels_.push_back({.name = name});
    return kernels_.back();
  }

  /// Of all kernels, or of one. Attributes of unknown kinds are stepped over: only those with a
  /// payload have a length.
  void read_attributes(const Elf64_Shdr& section, CubinKernel* own) {
    uint64_t offset = section.sh_offset;
    const uint64_t end = offset + section.sh_size;
    while (offset + 4 <= end) {
      const auto format = at<uint8_t>(offset);
      const auto attribute = at<uint8_t>(offset + 1);
      const auto length = at<uint16_t>(offset + 2);
      if (!format || !attribute || !length) return;
      offset += 4;
      if (*format != kFormatWithPayload) continue;
      if (own == nullptr && *length == 8) read_attribute(*attribute, offset);
      if (own != nullptr && *attribute == kThreads && *length == 12) read_threads(offset, *own);
      offset += *length;
    }
  }

  void read_threads(uint64_t offset, CubinKernel& kernel) {
    constexpr uint32_t kMost = 1024;  // a block has no more, whatever a damaged file says
    kernel.threads = 1;
    for (uint64_t axis = 0; axis < 3; ++axis)
      kernel.threads *= std::min(at<uint32_t>(offset + 4 * axis).value_or(1), kMost);
  }

  void read_attribute(uint8_t attribute, uint64_t offset) {
    const auto number = at<uint32_t>(offset);
    const auto value = at<uint32_t>(offset + 4);
    if (!number || !value) return;
    for (CubinKernel& kernel : kernels_) {
      if (kernel.name != symbol(*number)) continue;
      if (attribute == kRegisterCount) kernel.registers = static_cast<int>(*value);
      if (attribute == kFrameSize) kernel.stack_bytes = *value;
    }
  }

  std::string_view file_;
  std::vector<Elf64_Shdr> sections_;
  uint64_t names_offset_ = 0;
  uint64_t symbols_offset_ = 0;
  uint64_t symbol_count_ = 0;
  uint64_t symbol_names_offset_ = 0;
  std::vector<CubinKernel> kernels_;
};

}  // namespace

std::vector<CubinKernel> kernels_of_cubin(std::string_view cubin) {
  return Reader(cubin).kernels();
}

}  // namespace kiln::codegen
