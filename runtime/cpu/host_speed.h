#pragma once

#include <cstdint>

namespace kiln {

/// What this host did when it was measured. Predictions use it; no plan does, so that equal hosts
/// have equal bits.
struct HostSpeed {
  double gigahertz = 0;
  // Bytes a second that are read, by one core.
  double from_l2 = 0;
  double from_l3 = 0;
  double from_memory = 0;
  double from_memory_of_all = 0;  // by all cores together
  double start_seconds = 0;       // of a loop of nothing on all cores
  int64_t l3_bytes = 0;           // 0: not known
};

/// Measures this host with so many threads: about a tenth of a second.
HostSpeed measure_host(int threads);

/// Each figure as it was better: of two turns, one of which something else may have disturbed.
HostSpeed best_of(const HostSpeed& a, const HostSpeed& b);

}  // namespace kiln
