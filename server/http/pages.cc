// The pages of the metrics port. Liveness and readiness are apart: a worker that is started again
// is no reason to end a daemon that holds everybody's tensors, and a daemon that only answers is no
// reason to send it calls.
#include "server/http/pages.h"

#include "server/http/status_page.h"
#include "server/metrics/samples.h"

namespace kiln::server {

namespace {

HttpReply metrics_page(const Engine& engine, const GrpcServer& server) {
  std::vector<Sample> samples = samples_of(engine);
  for (Sample& sample : process_samples())
    samples.push_back(std::move(sample));
  samples.push_back({Metric::Ready, {}, server.why_not_serving().empty() ? 1.0 : 0.0});
  samples.push_back({Metric::ActiveCalls, {}, static_cast<double>(server.active())});
  return {200, "text/plain; version=0.0.4; charset=utf-8", engine.counters().metrics.text(samples)};
}

HttpReply probe(const std::string& problem) {
  if (problem.empty()) return {.body = "ok\n"};
  return {.status = 503, .body = problem + "\n"};
}

}  // namespace

HttpServer::Pages operator_pages(const Engine& engine, const GrpcServer& server) {
  return {
      {"/",
       [&] {
         return HttpReply{200, "text/html; charset=utf-8", status_page(engine, server)};
       }},
      {"/livez", [&] { return probe(engine.why_not_live()); }},
      {"/metrics", [&] { return metrics_page(engine, server); }},
      {"/readyz", [&] { return probe(server.why_not_serving()); }},
  };
}

}  // namespace kiln::server
