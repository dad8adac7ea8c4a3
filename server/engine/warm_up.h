#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "server/engine/compile_service.h"

namespace kiln::server {

/// What a list of kernel files (`.kiln`, for the CPU) and saved modules asks to be compiled: a file
/// a line, from the folder of the list on, `#` before comments. A file that is wrong is named in
/// the log, and its kernels are left out. Throws InvalidArgument CONFIG when there is no such list.
std::vector<v1::CompileRequest> read_warm_up_list(const std::string& path);

/// Compiles kernels before somebody waits for them. Any thread may use it.
class WarmUp {
 public:
  /// So many at a time, each behind what callers ask for.
  WarmUp(CompileCall compile, size_t at_a_time)
      : compile_(std::move(compile)), at_a_time_(at_a_time) {}

  void begin(std::vector<v1::CompileRequest> requests);
  /// How many are left, as a sentence; empty when there are none.
  std::string problem() const;

 private:
  void go_on();
  void end(const std::string& kernel, const Outcome<CompileResult>& outcome);

  const CompileCall compile_;
  const size_t at_a_time_;
  mutable std::mutex mutex_;
  std::deque<v1::CompileRequest> waiting_;
  size_t all_ = 0;
  size_t running_ = 0;
  size_t compiled_ = 0;
  size_t found_ = 0;
  size_t failed_ = 0;
  bool is_going_ = false;  // a thread is at waiting_
  Clock::time_point begun_;
};

}  // namespace kiln::server
