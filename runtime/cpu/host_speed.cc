// Measures what the tables of CPUs do not say, since it is the machine's and not the CPU's: the
// clock it runs at, what its caches and its memory give, and how long its threads take to start.
//
// Each figure is the best of a few short runs. The clock is that of a chain of additions, one a
// cycle on all CPUs that Kiln knows; bandwidths are those of reading, as STREAM measures copying
// (J. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers",
// 1995).
#include "runtime/cpu/host_speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>

#include "runtime/cpu/thread_pool.h"

namespace kiln {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kInL2 = 256 * kKiB;
constexpr int64_t kSpin = 200'000;
constexpr int64_t kInMemory = 128 * 1024 * kKiB;

double best_seconds(int runs, const std::function<void()>& work) {
  double best = 1e9;
  for (int run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

/// So many additions, each of which waits for the one before. What is added is in a register:
/// chains of small constants some CPUs add up before they are executed.
void spin(int64_t additions) {
  uint64_t sum = 0;
  uint64_t term = 3;
  asm volatile("" : "+r"(term));
  for (int64_t i = 0; i < additions / 8; ++i) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      sum += term;
      asm volatile("" : "+r"(sum));  // none is put together with the next
    }
  }
}

double measure_gigahertz() {
  // Short, and many of them: on a busy host, some are not interrupted.
  constexpr int64_t kAdditions = 200'000;
  const double seconds = best_seconds(60, [] { spin(kAdditions); });
  return static_cast<double>(kAdditions) / seconds / 1e9;
}

/// Memory of zeros, read from end to end as the C library does when it looks for another byte: the
/// quickest loop that it has for this CPU.
class Reader {
 public:
  explicit Reader(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), memory_(new char[bytes_]()) {}

  /// Bytes a second, in the best of so many runs.
  double rate(int runs) const {
    return static_cast<double>(bytes_) / best_seconds(runs, [&] { read(0, bytes_); });
  }

  double rate_of_all(ThreadPool& pool) const {
    const auto parts = static_cast<size_t>(pool.threads());
    const double seconds = best_seconds(4, [&] {
      pool.run(pool.threads(), [&](int64_t first, int64_t last, int) {
        read(static_cast<size_t>(first) * bytes_ / parts,
             static_cast<size_t>(last) * bytes_ / parts);
        return 0;
      });
    });
    return static_cast<double>(bytes_) / seconds;
  }

 private:
  void read(size_t begin, size_t end) const {
    const void* found = std::memchr(memory_.get() + begin, 1, end - begin);
    asm volatile("" : : "r"(found) : "memory");  // and it may be another byte the next time
  }

  size_t bytes_;
  std::unique_ptr<char[]> memory_;
};

/// Of the L3 that a core shares: "32768K". 0 where Linux does not say.
int64_t l3_bytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t size = 0;
  char unit = 'K';
  file >> size >> unit;
  return size * (unit == 'M' ? kKiB * kKiB : kKiB);
}

}  // namespace

HostSpeed best_of(const HostSpeed& a, const HostSpeed& b) {
  return {.gigahertz = std::max(a.gigahertz, b.gigahertz),
          .from_l2 = std::max(a.from_l2, b.from_l2),
          .from_l3 = std::max(a.from_l3, b.from_l3),
          .from_memory = std::max(a.from_memory, b.from_memory),
          .from_memory_of_all = std::max(a.from_memory_of_all, b.from_memory_of_all),
          .start_seconds = std::min(a.start_seconds, b.start_seconds),
          .l3_bytes = std::max(a.l3_bytes, b.l3_bytes)};
}

HostSpeed measure_host(int threads) {
  HostSpeed speed;
  speed.gigahertz = measure_gigahertz();
  speed.l3_bytes = l3_bytes();
  speed.from_l2 = Reader(kInL2).rate(200);
  // A quarter of L3: past L2, and not all of what others use too.
  const int64_t in_l3 = std::clamp(speed.l3_bytes / 4, 16 * kInL2, 32 * kInL2);
  speed.from_l3 = Reader(in_l3).rate(16);
  const Reader memory(std::max(kInMemory, 2 * speed.l3_bytes));
  speed.from_memory = memory.rate(4);
  ThreadPool pool(threads);
  speed.from_memory_of_all = std::max(speed.from_memory, memory.rate_of_all(pool));
  // Long enough for the others to be woken, and then all end at once.
  const double together = best_seconds(20, [&] {
    pool.run(threads, [](int64_t first, int64_t last, int) {
      spin((last - first) * kSpin);
      return 0;
    });
  });
  speed.start_seconds = std::max(together - best_seconds(20, [] { spin(kSpin); }), 0.0);
  return speed;
}

}  // namespace kiln
