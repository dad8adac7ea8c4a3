#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kiln::server {

/// Something that a process of the service did for a call of a trace.
struct Span {
  std::string name;
  std::string process;
  int pid = 0;
  std::string track;
  int64_t begin = 0;  // nanoseconds of the monotonic clock, which processes of a host share
  int64_t end = 0;
};

/// The latest spans of calls that are part of a trace. Any thread may use it.
class Spans {
 public:
  /// Forgets the oldest beyond so many.
  explicit Spans(size_t most = 20'000) : most_(most) {}

  /// Nothing where there is no trace.
  void add(const std::string& tenant, const std::string& trace, Span span);
  /// Of a tenant's trace, in the order in which they ended.
  std::vector<Span> of(const std::string& tenant, const std::string& trace) const;

 private:
  using Key = std::pair<std::string, std::string>;  // tenant, trace
  const size_t most_;
  mutable std::mutex mutex_;
  std::deque<std::pair<Key, Span>> spans_;
};

}  // namespace kiln::server
