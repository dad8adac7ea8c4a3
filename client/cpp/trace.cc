// Spans of a trace, on the clock of this process: that of the host where the service is on it, else
// shifted by the middle of a call (Cristian's algorithm, 1989).
#include <chrono>

#include <kiln/connection.h>

#include "client/cpp/link.h"
#include "kiln/v1/trace.grpc.pb.h"
#include "runtime/core/host_clock.h"

namespace kiln {
inline namespace client {

std::vector<Span> Connection::spans(const std::string& trace) const {
  v1::TraceService::Stub stub(std::shared_ptr<grpc::ChannelInterface>(link_, &link_->channel()));
  v1::SpansRequest request;
  request.set_trace(trace);
  v1::SpansResponse response;
  using Clock = std::chrono::steady_clock;
  const std::int64_t before = nanoseconds(Clock::now());
  link_->call(stub, &v1::TraceService::Stub::Spans, request, response);
  const std::int64_t after = nanoseconds(Clock::now());
  const bool is_one_clock = before <= response.now() && response.now() <= after;
  const std::int64_t shift = is_one_clock ? 0 : before + (after - before) / 2 - response.now();
  std::vector<Span> spans;
  for (const v1::Span& span : response.spans()) {
    spans.push_back({.name = span.name(),
                     .process = span.process(),
                     .pid = span.pid(),
                     .track = span.track(),
                     .begin = span.begin() + shift,
                     .end = span.end() + shift});
  }
  return spans;
}

}  // namespace client
}  // namespace kiln
