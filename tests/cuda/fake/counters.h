#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace kiln::fake {

#define KILN_FAKE_COUNTERS(X) \
  X(launches)                 \
  X(graphs)                   \
  X(graph_launches)           \
  X(copies)                   \
  X(copied_bytes)             \
  X(events)                   \
  X(trims)

/// What the fake driver was asked for.
struct Counters {
#define COUNTER(name) std::atomic<int64_t> name;
  KILN_FAKE_COUNTERS(COUNTER)
#undef COUNTER
};

/// In the file that FAKE_CUDA_COUNTS names, so that another process can read it: 64-bit numbers in
/// the order above.
Counters& counters();

/// By name; -1 where there is no such counter.
int64_t count(std::string_view name);

}  // namespace kiln::fake
