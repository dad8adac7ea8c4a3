#pragma once

#include <atomic>
#include <memory>

#include "kiln/v1/service.pb.h"
#include "server/engine/compile_service.h"
#include "server/engine/run_service.h"
#include "server/tuning/record_store.h"

namespace kiln::server {

/// What the searches of a daemon work with.
struct TuningParts {
  CompileService& compiles;
  CompilerPool& compilers;
  KernelTable& kernels;
  RunService& runs;
  Devices& devices;
  std::shared_ptr<ArenaPool> arenas;
  int64_t tensor_bytes = 0;  // that the arenas may give out
  RecordStore& records;
  Counters& counters;
};

/// A search that was asked for and checked.
struct TuningTask {
  CheckedRequest request;
  v1::TuneRequest wire;
  Caller caller;
  TuningKey key;  // its sizes are found by the search
  uint32_t trials = 0;
  Clock::duration time{};
};

/// One search as its parts know it, which outlives them.
struct SearchContext {
  const TuningParts& parts;
  const TuningTask& task;
  const std::atomic<bool>& cancelled;

  void require_uncancelled() const {
    if (cancelled) fail(ErrorKind::Cancelled, "CANCELLED", "the search was cancelled");
  }
};

}  // namespace kiln::server
