#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "kiln/v1/service.pb.h"
#include "server/call.h"

namespace kiln::server {

/// What is known of a job beside its work: as it is kept, listed and watched.
struct JobRecord {
  std::string id;
  std::string tenant;
  std::string request_id;  // the client's; empty: none
  std::string kernel;      // its name
  Priority priority = Priority::Normal;
  v1::JobPhase phase = v1::JOB_PHASE_QUEUED;
  uint32_t attempts = 0;  // how often it was begun
  // Seconds since 1970, which mean the same to the next daemon.
  double submitted = 0;
  double ended = 0;
  int64_t input_bytes = 0;   // snapshots
  int64_t result_bytes = 0;  // of all outputs
  std::string message;       // of a failed job
};

inline bool has_ended(v1::JobPhase phase) { return phase >= v1::JOB_PHASE_DONE; }

inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace kiln::server
