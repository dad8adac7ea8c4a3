#pragma once

#include <unistd.h>

#include "kiln/internal/worker.pb.h"
#include "runtime/core/host_clock.h"
#include "server/clock.h"

namespace kiln::server {

/// That this process has worked at something since then, until now.
inline internal::WorkTime work_time_since(Clock::time_point begin) {
  internal::WorkTime time;
  time.set_pid(static_cast<uint32_t>(::getpid()));
  time.set_begin(nanoseconds(begin));
  time.set_end(nanoseconds(Clock::now()));
  return time;
}

}  // namespace kiln::server
