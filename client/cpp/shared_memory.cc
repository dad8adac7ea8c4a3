// Memory of arrays, and between this process and a service on the same host: memfds, sealed on
// their way there.
#include "client/cpp/shared_memory.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/cpp/fail.h"
#include "client/cpp/mapping.h"

namespace kiln {
inline namespace client {
namespace detail {

Descriptor sealed_copy(std::span<const std::byte> bytes) {
  Descriptor memory(::memfd_create("kiln-array", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes.size())) != 0) {
    out_of_memory(bytes.size());
  }
  if (bytes.size() >= kHugePage) {
    const Mapping mapping(memory.get(), bytes.size(), MAP_SHARED);
    mapping.use_huge_pages();
    std::memcpy(mapping.data(), bytes.data(), bytes.size());
  } else if (::pwrite(memory.get(), bytes.data(), bytes.size(), 0) !=
             static_cast<ssize_t>(bytes.size())) {
    out_of_memory(bytes.size());
  }
  // What is mapped for writing cannot be sealed: only now.
  if (!seal(memory)) out_of_memory(bytes.size());
  return memory;
}

bool seal(const Descriptor& memory) {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  if (::fcntl(memory.get(), F_ADD_SEALS, kSize | F_SEAL_WRITE) == 0) return true;
  return errno == EBUSY && ::fcntl(memory.get(), F_ADD_SEALS, kSize) == 0;
}

std::shared_ptr<std::byte[]> zeroed_memory(std::size_t bytes) {
  if (bytes < 2 * kHugePage) return std::make_shared<std::byte[]>(bytes);
  const std::shared_ptr<Mapping> mapping = fresh_mapping(bytes);
  return {mapping, mapping->data()};
}

std::shared_ptr<std::byte[]> mapped_memory(const Descriptor& memory, std::size_t bytes) {
  if (bytes == 0) return std::make_shared<std::byte[]>(0);
  struct stat status {};
  // Past the end of a file a mapping faults.
  if (::fstat(memory.get(), &status) != 0 || static_cast<std::size_t>(status.st_size) < bytes) {
    fail(ErrorKind::Internal, "RESULT", "the service sent less than {} bytes of memory", bytes);
  }
  const auto mapping = std::make_shared<Mapping>(memory.get(), bytes, MAP_PRIVATE);
  return {mapping, mapping->data()};
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
