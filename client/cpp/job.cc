// Jobs by their ids, which any connection may use. Watching goes on over broken streams, since each
// begins with the state as it is then.
#include <fmt/ranges.h>
#include <kiln/connection.h>
#include <kiln/job.h>

#include "client/cpp/fail.h"
#include "client/cpp/kernel_state.h"
#include "client/cpp/link.h"

namespace kiln {
inline namespace client {
namespace {

JobState from_wire(const v1::JobState& state) {
  return {.job = state.job(),
          .phase = static_cast<JobPhase>(state.phase()),
          .kernel = state.kernel(),
          .seconds = state.seconds(),
          .message = state.message(),
          .attempts = state.attempts()};
}

bool has_ended(JobPhase phase) {
  return phase == JobPhase::Done || phase == JobPhase::Failed || phase == JobPhase::Cancelled;
}

}  // namespace

std::string_view name_of(JobPhase phase) {
  switch (phase) {
    case JobPhase::Queued: return "queued";
    case JobPhase::Compiling: return "compiling";
    case JobPhase::Running: return "running";
    case JobPhase::Done: return "done";
    case JobPhase::Failed: return "failed";
    case JobPhase::Cancelled: return "cancelled";
  }
  return "unknown";
}

JobState Job::watch(const std::function<void(const JobState&)>& on_change) const {
  v1::WatchRequest request;
  request.set_job(id_);
  JobState last;
  // A stream that breaks off is opened again, and begins with the state then.
  while (true) {
    link_->retry({}, [&](grpc::ClientContext& context) {
      const auto reader = link_->jobs().Watch(&context, request);
      v1::JobState state;
      while (reader->Read(&state)) {
        last = from_wire(state);
        if (on_change) on_change(last);
      }
      return reader->Finish();
    });
    if (has_ended(last.phase)) return last;
    if (last.job.empty()) {
      detail::fail(ErrorKind::Internal, "WATCH", "the service says nothing of job {}", id_);
    }
  }
}

JobResult Job::result() const {
  v1::ResultRequest request;
  request.set_job(id_);
  request.set_session(link_->session());
  detail::RunReply reply;
  link_->call(link_->jobs(), &v1::JobService::Stub::Result, request, reply.response);
  JobResult result{.outputs = {}, .timings = detail::from_wire(reply.response.timings())};
  for (const v1::Result& output : reply.response.results()) {
    result.outputs.push_back(
        {.name = output.name(),
         .parameter = output.parameter(),
         .value = detail::take_result(link_, output, reply, std::nullopt, {})});
  }
  return result;
}

JobState Job::cancel() const {
  v1::CancelRequest request;
  request.set_job(id_);
  v1::CancelResponse response;
  link_->call(link_->jobs(), &v1::JobService::Stub::Cancel, request, response);
  return from_wire(response.state());
}

Job Connection::find_job(const std::string& prefix) const {
  std::vector<std::string> exact;
  std::vector<std::string> longer;
  for (const JobState& state : jobs()) {
    if (state.job.rfind(prefix, 0) != 0) continue;
    // "job-1" is the first job rather than one of job-10 to job-19.
    const bool is_part = state.job.size() == prefix.size() || state.job[prefix.size()] == '-';
    (is_part ? exact : longer).push_back(state.job);
  }
  const std::vector<std::string>& found = exact.empty() ? longer : exact;
  if (prefix.empty() || found.empty()) {
    detail::fail(ErrorKind::NotFound, "JOB", "there is no job {}; kiln jobs lists those there are",
                 prefix);
  }
  if (found.size() > 1) {
    detail::fail(ErrorKind::InvalidArgument, "JOB", "several jobs begin with {}: {}", prefix,
                 fmt::join(found, ", "));
  }
  return job(found.front());
}

std::vector<JobState> Connection::jobs() const {
  v1::ListResponse response;
  link_->call(link_->jobs(), &v1::JobService::Stub::List, v1::ListRequest(), response);
  std::vector<JobState> jobs;
  for (const v1::JobState& state : response.jobs())
    jobs.push_back(from_wire(state));
  return jobs;
}

}  // namespace client
}  // namespace kiln
