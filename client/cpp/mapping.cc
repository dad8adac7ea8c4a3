// Large mappings begin at a multiple of 2 MiB and are filled in huge pages, since a fresh page of
// 4 KiB costs more than copying into it.
#include "client/cpp/mapping.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

constexpr std::size_t kPage = 4096;
#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;  // headers before Linux 6.1 lack it
#endif

void* aligned_place(std::size_t bytes) {
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

}  // namespace

void out_of_memory(std::size_t bytes) {
  fail(ErrorKind::ResourceExhausted, "HOST_MEMORY", "cannot get {} bytes of memory: {}", bytes,
       std::strerror(errno));
}

Mapping::Mapping(int fd, std::size_t bytes, int flags) : bytes_(bytes) {
  void* const place = bytes >= kHugePage ? aligned_place(bytes) : nullptr;
  data_ = ::mmap(place, bytes, PROT_READ | PROT_WRITE, flags | (place != nullptr ? MAP_FIXED : 0),
                 fd, 0);
  if (data_ == MAP_FAILED) out_of_memory(bytes);
}

Mapping::~Mapping() { ::munmap(data_, bytes_); }

void Mapping::use_huge_pages() const {
  const std::size_t whole = bytes_ / kHugePage * kHugePage;
  // Only what has some memory already is taken together.
  for (std::size_t at = 0; at < whole; at += kHugePage)
    *static_cast<volatile std::byte*>(data() + at) = std::byte{0};
  if (whole > 0) static_cast<void>(::madvise(data_, whole, MADV_COLLAPSE));
}

std::unique_ptr<Mapping> fresh_mapping(std::size_t bytes) {
  auto mapping = std::make_unique<Mapping>(-1, bytes, MAP_PRIVATE | MAP_ANONYMOUS);
  static_cast<void>(::madvise(mapping->data(), bytes, MADV_HUGEPAGE));
  return mapping;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
