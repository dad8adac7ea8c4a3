#pragma once

#include <atomic>
#include <cstdint>

#include "server/metrics/metrics.h"
#include "server/metrics/spans.h"

namespace kiln::server {

/// What Describe counts since the start of the daemon.
struct Counters {
// clang-format off
#define KILN_COUNTERS(COUNTER) \
  COUNTER(compiles)            \
  COUNTER(memory_hits)         \
  COUNTER(disk_hits)           \
  COUNTER(shared_hits)         \
  COUNTER(plans)               \
  COUNTER(stored_plans)        \
  COUNTER(constants)           \
  COUNTER(runs)                \
  COUNTER(failed_runs)         \
  COUNTER(retried_runs)        \
  COUNTER(worker_restarts)     \
  COUNTER(compiler_restarts)   \
  COUNTER(uploads)             \
  COUNTER(uploaded_bytes)      \
  COUNTER(found_uploads)       \
  COUNTER(resumed_uploads)     \
  COUNTER(downloads)           \
  COUNTER(downloaded_bytes)    \
  COUNTER(rejected)            \
  COUNTER(searches)            \
  COUNTER(tuning_trials)       \
  COUNTER(tuning_failures)     \
  COUNTER(tuned_compiles)      \
  COUNTER(specialisations)     \
  COUNTER(specialised_runs)    \
  COUNTER(dropped_variants)
// clang-format on
#define COUNTER(name) std::atomic<int64_t> name{0};
  KILN_COUNTERS(COUNTER)
#undef COUNTER
  Metrics metrics;  // what has labels, or is measured
  Spans spans;      // of calls that are part of a trace
};

}  // namespace kiln::server
