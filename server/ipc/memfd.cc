// Anonymous memory that processes share, with its size sealed: who maps it cannot be made to fault
// by who holds it. Large mappings begin at a multiple of 2 MiB and are collapsed into huge pages,
// for TLB reach.
#include "server/ipc/memfd.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

[[noreturn]] void out_of_memory(int64_t bytes, int error) {
  fail(ErrorKind::ResourceExhausted, "HOST_MEMORY", "cannot allocate {} bytes on the host: {}",
       bytes, std::strerror(error));
}

// Of linux/magic.h, which glibc does not have: the file system of a memfd without huge pages.
constexpr auto kTmpfsMagic = 0x01021994;

#ifndef F_SEAL_FUTURE_WRITE
constexpr int F_SEAL_FUTURE_WRITE = 0x0010;  // headers before Linux 5.1 lack it
#endif

#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;  // headers before Linux 6.1 lack it
#endif

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_READ = 22;  // headers before Linux 5.14 lack them
constexpr int MADV_POPULATE_WRITE = 23;
#endif

/// A place for so many bytes that begins at a multiple of kHugePage.
void* aligned_place(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  // One huge page too many, of which the ends are given back.
  void* const reserved = ::mmap(nullptr, size + kHugePage, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) out_of_memory(bytes, errno);
  auto* const begin = static_cast<uint8_t*>(reserved);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  const size_t mapped = (size + 4095) / 4096 * 4096;
  if (before < kHugePage) ::munmap(begin + before + mapped, kHugePage - before);
  return begin + before;
}

}  // namespace

Fd make_memfd(const char* name, int64_t bytes) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) out_of_memory(bytes, errno);
  if (::ftruncate(fd.get(), bytes) != 0) out_of_memory(bytes, errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) out_of_memory(bytes, errno);
  return fd;
}

bool is_sealed_memory(const Fd& fd, int64_t bytes) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  struct stat status {};
  struct statfs system {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  return seals >= 0 && (seals & kNeeded) == kNeeded && ::fstat(fd.get(), &status) == 0 &&
         S_ISREG(status.st_mode) && status.st_size >= bytes && status.st_size - bytes < kHugePage &&
         // Of a pool of huge pages, reading may fault where the pool is empty.
         ::fstatfs(fd.get(), &system) == 0 && system.f_type == kTmpfsMagic;
}

void seal_against_new_writers(const Fd& fd) {
  KILN_CHECK(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0);
}

Fd make_sealed_memfd(const char* name, std::string_view contents) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) out_of_memory(static_cast<int64_t>(contents.size()), errno);
  size_t written = 0;
  while (written < contents.size()) {
    const ssize_t count = ::write(fd.get(), contents.data() + written, contents.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) out_of_memory(static_cast<int64_t>(contents.size()), errno);
    written += static_cast<size_t>(count);
  }
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return fd;
}

std::string read_memfd(const Fd& fd, int64_t limit) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > limit) {
    fail(ErrorKind::Internal, "PEER_GARBAGE", "a worker sent memory that cannot be read");
  }
  std::string contents(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t count =
        ::pread(fd.get(), contents.data() + done, contents.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      fail(ErrorKind::Internal, "PEER_GARBAGE", "a worker sent memory that cannot be read");
    }
    done += static_cast<size_t>(count);
  }
  return contents;
}

Mapping::Mapping(const Fd& fd, int64_t bytes) {
  struct stat status {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (::fstat(fd.get(), &status) != 0 || bytes <= 0 || status.st_size < bytes || seals < 0 ||
      // A file that could shrink behind the mapping would end this process with SIGBUS.
      (seals & F_SEAL_SHRINK) == 0) {
    fail(ErrorKind::Internal, "PEER_GARBAGE", "the other side sent memory that cannot be mapped");
  }
  void* const place = bytes >= kHugePage ? aligned_place(bytes) : nullptr;
  is_writable_ = (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0;
  void* const address =
      ::mmap(place, static_cast<size_t>(bytes), PROT_READ | (is_writable_ ? PROT_WRITE : 0),
             MAP_SHARED | (place != nullptr ? MAP_FIXED : 0), fd.get(), 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    if (place != nullptr) ::munmap(place, static_cast<size_t>(bytes));
    out_of_memory(bytes, error);
  }
  data_ = static_cast<uint8_t*>(address);
  bytes_ = bytes;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      is_writable_(other.is_writable_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_writable_, other.is_writable_);
  return *this;
}

void Mapping::use_huge_pages(int64_t first, int64_t count) const {
  KILN_CHECK(first >= 0 && count >= 0 && (first + count) * kHugePage <= bytes_);
  uint8_t* const begin = data_ + first * kHugePage;
  // Only what has some memory already is taken together.
  for (int64_t page = 0; page < count; ++page)
    static_cast<void>(*static_cast<volatile uint8_t*>(begin + page * kHugePage));
  // Since Linux 6.1, and whatever the system's default for huge pages of shared memory is.
  static_cast<void>(::madvise(begin, static_cast<size_t>(count * kHugePage), MADV_COLLAPSE));
}

void Mapping::populate() const {
  // Since Linux 5.14; before, and where there is no memory left, pages come when they are touched.
  static_cast<void>(::madvise(data_, static_cast<size_t>(bytes_),
                              is_writable_ ? MADV_POPULATE_WRITE : MADV_POPULATE_READ));
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace kiln::server
