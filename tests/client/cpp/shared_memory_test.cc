// What the client gives a service on the same host: memory that nobody changes any more.
#include "client/cpp/shared_memory.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln {
namespace {

using client::detail::Descriptor;

constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;

Descriptor page() {
  Descriptor memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(memory.get(), 4096), 0);
  return memory;
}

TEST(SharedMemory, IsSealedAgainstAnyChange) {
  const Descriptor memory = page();
  EXPECT_TRUE(client::detail::seal(memory));
  EXPECT_EQ(::fcntl(memory.get(), F_GET_SEALS), kSize | F_SEAL_WRITE);
}

TEST(SharedMemory, ThatCanBeWrittenForAMomentKeepsItsSize) {
  const Descriptor memory = page();
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_TRUE(client::detail::seal(memory));
  EXPECT_EQ(::fcntl(memory.get(), F_GET_SEALS), kSize);
  ::munmap(mapped, 4096);
}

TEST(SharedMemory, WithoutSealsSaysSo) {
  const Descriptor memory(::memfd_create("test", MFD_CLOEXEC));  // F_SEAL_SEAL
  EXPECT_FALSE(client::detail::seal(memory));
  EXPECT_EQ(errno, EPERM);
}

}  // namespace
}  // namespace kiln
