// arc4random, which Debian 12's archives ask of a C library of 2.36 or later, for programs that are
// to run with an older one (Ubuntu 22.04 has 2.35): numbers of the kernel, as the C library's own.
// Only c-ares, libevent and std::random_device draw them, a few a process.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" void arc4random_buf(void* bytes, std::size_t count) noexcept {
  constexpr std::size_t kWhole = 256;  // so many come whole or not at all
  auto* at = static_cast<std::uint8_t*>(bytes);
  while (count > 0) {
    const std::size_t part = std::min(count, kWhole);
    // Not at all where the kernel has no such call.
    if (::getrandom(at, part, 0) != static_cast<ssize_t>(part)) std::abort();
    at += part;
    count -= part;
  }
}

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  ::arc4random_buf(&number, sizeof number);
  return number;
}
