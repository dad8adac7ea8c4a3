// Spans of traces, in a ring: who traces asks for them soon, and what nobody asks for goes by
// itself.
#include "server/metrics/spans.h"

namespace kiln::server {

void Spans::add(const std::string& tenant, const std::string& trace, Span span) {
  if (trace.empty()) return;
  const std::lock_guard lock(mutex_);
  spans_.emplace_back(Key(tenant, trace), std::move(span));
  if (spans_.size() > most_) spans_.pop_front();
}

std::vector<Span> Spans::of(const std::string& tenant, const std::string& trace) const {
  const Key key(tenant, trace);
  std::vector<Span> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [owner, span] : spans_) {
    if (owner == key) found.push_back(span);
  }
  return found;
}

}  // namespace kiln::server
