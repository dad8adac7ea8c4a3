// arc4random, which Debian 12's archives ask of a C library of 2.36 or later, for programs that are
// to run with an older one (Ubuntu 22.04 has 2.35): numbers of the kernel, as the C library's own.
// Only c-ares and std::random_device draw them, a few a process.
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  // At most 256 bytes come whole or not at all: not at all where the kernel has no such call.
  if (::getrandom(&number, sizeof number, 0) != sizeof number) std::abort();
  return number;
}
