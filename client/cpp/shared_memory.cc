// Memory of arrays, and between this process and a service on the same host: memfds, sealed on
// their way there. Large mappings begin at a multiple of 2 MiB and are filled in huge pages, since
// a fresh page of 4 KiB costs more than copying into it.
#include "client/cpp/shared_memory.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;
#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;  // headers before Linux 6.1 lack it
#endif

[[noreturn]] void out_of_memory(std::size_t bytes) {
  fail(ErrorKind::ResourceExhausted, "HOST_MEMORY", "cannot get {} bytes of memory: {}", bytes,
       std::strerror(errno));
}

/// A mapping of a memfd's first bytes, or of fresh memory.
class Mapping {
 public:
  Mapping(int fd, std::size_t bytes, int flags) : bytes_(bytes) {
    void* const place = bytes >= kHugePage ? aligned_place(bytes) : nullptr;
    data_ = ::mmap(place, bytes, PROT_READ | PROT_WRITE, flags | (place != nullptr ? MAP_FIXED : 0),
                   fd, 0);
    if (data_ == MAP_FAILED) out_of_memory(bytes);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(data_, bytes_); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }

  void use_huge_pages() const {
    const std::size_t whole = bytes_ / kHugePage * kHugePage;
    // Only what has some memory already is taken together.
    for (std::size_t at = 0; at < whole; at += kHugePage)
      *static_cast<volatile std::byte*>(data() + at) = std::byte{0};
    if (whole > 0) static_cast<void>(::madvise(data_, whole, MADV_COLLAPSE));
  }

 private:
  static void* aligned_place(std::size_t bytes) {
    void* const reserved = ::mmap(nullptr, bytes + kHugePage, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) out_of_memory(bytes);
    auto* const begin = static_cast<std::byte*>(reserved);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
    if (before > 0) ::munmap(begin, before);
    const std::size_t mapped = (bytes + kPage - 1) / kPage * kPage;
    const std::size_t behind = bytes + kHugePage - before - mapped;
    if (behind >= kPage) ::munmap(begin + before + mapped, behind);
    return begin + before;
  }

  void* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace

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
  const auto mapping = std::make_shared<Mapping>(-1, bytes, MAP_PRIVATE | MAP_ANONYMOUS);
  static_cast<void>(::madvise(mapping->data(), bytes, MADV_HUGEPAGE));
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
