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
  X(copied_within)            \
  X(events)                   \
  X(trims)

#define COUNTER(name) std::atomic<int64_t> name;
/// What the fake driver was asked for.
struct Counters {
  KILN_FAKE_COUNTERS(COUNTER)
};
#undef COUNTER

#define COUNTER(name) int64_t name;
/// The same as another process reads it from the file.
struct Numbers {
  KILN_FAKE_COUNTERS(COUNTER)
};
#undef COUNTER

/// In the file that FAKE_CUDA_COUNTS names.
Counters& counters();

/// By name; -1 where there is no such counter.
int64_t count(std::string_view name);

}  // namespace kiln::fake
