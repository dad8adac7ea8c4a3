// The id of the running executable, for keys of caches: a cache must never serve what another build
// compiled. Linkers write a note with a hash of what they linked (--build-id); where one was told
// not to, the file itself is hashed.
#include "compiler/executable_id.h"

#include <fstream>
#include <iterator>
#include <string_view>

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <xxhash.h>

namespace kiln {
namespace {

/// The id that the linker gave this executable, as hex digits; empty when it gave none.
std::string linker_build_id() {
  std::string id;
  const auto look = [](dl_phdr_info* info, size_t, void* result) -> int {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      if (header.p_type != PT_NOTE) continue;
      const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
      const char* const end = at + header.p_memsz;
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
        const char* const name = at + sizeof note;
        const char* const bytes = name + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::string_view(name, 3) == "GNU") {
          for (uint32_t b = 0; b < note.n_descsz; ++b) {
            *static_cast<std::string*>(result) +=
                fmt::format("{:02x}", static_cast<unsigned char>(bytes[b]));
          }
          return 1;
        }
        at = bytes + (note.n_descsz + 3) / 4 * 4;
      }
    }
    return 1;  // the first object is the executable; libraries are not asked
  };
  dl_iterate_phdr(look, &id);
  return id;
}

std::string hash_of_file() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string executable_id() {
  static const std::string id = [] {
    std::string linked = linker_build_id();
    return linked.empty() ? hash_of_file() : linked;
  }();
  return id;
}

}  // namespace kiln
