// Calls of a kernel: pack, run, take results. A kernel that the service lost with a restart is
// compiled again, so that a program does not see the restart; a call that writes what it reads is
// not tried a second time.
#include <algorithm>
#include <set>
#include <utility>

#include <kiln/kernel.h>

#include "client/cpp/fail.h"
#include "client/cpp/kernel_call.h"
#include "client/cpp/transfer.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

std::string_view name_of_level(v1::CacheLevel level) {
  switch (level) {
    case v1::CACHE_LEVEL_COMPILED: return "compiled";
    case v1::CACHE_LEVEL_MEMORY: return "memory";
    case v1::CACHE_LEVEL_DISK: return "disk";
    case v1::CACHE_LEVEL_SHARED: return "shared";
    default: return "";
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One call on the wire, in the session if there is one: it need not be opened for a call.
RunReply run(KernelState& kernel, PreparedCall& call, CallControl control) {
  control.idempotent = is_idempotent(call.request, kernel.parameters());
  Link& link = *kernel.link();
  RunReply reply;
  kernel.with_id(control, [&](const std::string& id) {
    call.request.set_kernel_id(id);
    call.request.set_session(link.session_if_open());
    link.run(call.request, reply, control);
  });
  return reply;
}

}  // namespace

bool is_idempotent(const v1::RunRequest& request, const std::vector<Parameter>& parameters) {
  std::set<std::string> read;
  std::set<std::string> written;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const v1::Argument& argument = request.arguments(static_cast<int>(p));
    if (!argument.has_tensor()) continue;
    (parameters[p].output ? written : read).insert(argument.tensor());
  }
  return std::none_of(written.begin(), written.end(),
                      [&](const std::string& id) { return read.contains(id); });
}

Outputs call_kernel(KernelState& kernel, const std::vector<Argument>& arguments,
                    const CallOptions& options, const CallControl& control) {
  PreparedCall call =
      prepare_call(kernel.link(), kernel.name(), kernel.parameters(), arguments, options, control);
  const RunReply reply = run(kernel, call, control);
  return take_outputs(kernel, call, reply, control);
}

Outputs take_outputs(KernelState& kernel, const PreparedCall& call, const RunReply& reply,
                     const CallControl& control) {
  Timings timings = from_wire(reply.response.timings());
  const auto start = std::chrono::steady_clock::now();
  Outputs outputs;
  bool is_inside = true;
  for (const v1::Result& result : reply.response.results()) {
    if (result.parameter() >= call.given.size()) {
      fail(ErrorKind::Internal, "RESULT", "the service sent a result for parameter {} of {}",
           result.parameter(), call.given.size());
    }
    is_inside = is_inside && result.has_data();
    outputs.push_back(
        take_result(kernel.link(), result, reply, call.given[result.parameter()], control));
  }
  timings.upload += call.upload_seconds;
  if (!is_inside) timings.download += seconds_since(start);
  kernel.set_last_timings(timings);
  return outputs;
}

Timings from_wire(const v1::Timings& timings) {
  return {.queue = timings.queue(),
          .compile = timings.compile(),
          .upload = timings.upload(),
          .kernel = timings.kernel(),
          .download = timings.download(),
          .cache = std::string(name_of_level(timings.cache())),
          .trace = timings.trace()};
}

KernelState::KernelState(std::shared_ptr<Link> link, v1::CompileRequest request,
                         std::vector<Parameter> parameters, std::vector<std::string> argument_sizes)
    : link_(std::move(link)),
      request_(std::move(request)),
      parameters_(std::move(parameters)),
      argument_sizes_(std::move(argument_sizes)) {
  id_ = compile({});
  link_->start_session();
}

std::string KernelState::id() const {
  const std::lock_guard lock(mutex_);
  return id_;
}

std::string KernelState::compile(const CallControl& control) {
  v1::CompileResponse response;
  link_->call(link_->kernels(), &v1::KernelService::Stub::Compile, request_, response, control);
  const std::lock_guard lock(mutex_);
  build_timings_ = from_wire(response.timings());
  build_timings_.cache = name_of_level(response.cache());
  return response.kernel_id();
}

void KernelState::with_id(const CallControl& control,
                          const std::function<void(const std::string&)>& use) {
  std::string id = this->id();
  try {
    use(id);
    return;
  } catch (const NotFound& error) {
    // After a restart of the service both the kernel and the session are gone.
    if (error.reason() != "KERNEL" && error.reason() != "SESSION") throw;
  }
  id = compile(control);
  {
    const std::lock_guard lock(mutex_);
    id_ = id;
  }
  use(id);
}

Timings KernelState::last_timings() const {
  const std::lock_guard lock(mutex_);
  return last_timings_;
}

void KernelState::set_last_timings(Timings timings) {
  const std::lock_guard lock(mutex_);
  last_timings_ = std::move(timings);
}

Timings KernelState::build_timings() const {
  const std::lock_guard lock(mutex_);
  return build_timings_;
}

}  // namespace detail

Outputs::operator Array() const {
  if (size() != 1) {
    detail::fail(ErrorKind::InvalidArgument, "OUTPUT_COUNT",
                 "the call has {} outputs: take them by their positions", size());
  }
  return front();
}

Outputs Kernel::call(const std::vector<Argument>& arguments, const CallOptions& options,
                     SourceLocation where) const {
  return detail::at_line(where, [&] {
    return detail::call_kernel(*state_, arguments, options,
                               detail::CallControl::with_deadline(options.deadline));
  });
}

std::vector<RemoteArray> Kernel::call_remote(const std::vector<Argument>& inputs,
                                             const CallOptions& options,
                                             SourceLocation where) const {
  const v1::RunResponse response = detail::at_line(where, [&]() -> v1::RunResponse {
    const auto control = detail::CallControl::with_deadline(options.deadline);
    detail::PreparedCall call = detail::prepare_call(
        state_->link(), state_->name(), state_->parameters(), inputs, options, control);
    for (v1::Argument& argument : *call.request.mutable_arguments()) {
      if (argument.has_output()) argument.mutable_output()->set_keep(true);
    }
    state_->link()->session();  // what is kept belongs to it
    return std::move(detail::run(*state_, call, control).response);
  });
  state_->set_last_timings(detail::from_wire(response.timings()));
  std::vector<RemoteArray> outputs;
  for (const v1::Result& result : response.results()) {
    outputs.emplace_back(std::make_shared<const detail::RemoteState>(
        state_->link(), result.tensor(), static_cast<DType>(result.type()),
        std::vector<std::int64_t>(result.shape().begin(), result.shape().end()), result.device()));
  }
  return outputs;
}

std::vector<double> Kernel::measure(const std::vector<Argument>& arguments, unsigned repeat,
                                    unsigned measurements, const CallOptions& options,
                                    SourceLocation where) const {
  return detail::at_line(where, [&] {
    const auto control = detail::CallControl::with_deadline(options.deadline);
    detail::PreparedCall call = detail::prepare_call(
        state_->link(), state_->name(), state_->parameters(), arguments, options, control);
    call.request.set_repeat(repeat);
    call.request.set_measurements(measurements);
    const v1::RunResponse response = detail::run(*state_, call, control).response;
    return std::vector<double>{response.measured().begin(), response.measured().end()};
  });
}

Timings Kernel::timings() const { return state_->last_timings(); }
Timings Kernel::build_timings() const { return state_->build_timings(); }
std::string Kernel::name() const { return state_->name(); }
std::vector<Parameter> Kernel::parameters() const { return state_->parameters(); }

namespace {

v1::InspectResponse inspect(detail::KernelState& kernel, const std::string& what,
                            const std::map<std::string, std::int64_t>& sizes = {}) {
  v1::InspectResponse response;
  kernel.with_id({}, [&](const std::string& id) {
    v1::InspectRequest request;
    request.set_kernel_id(id);
    request.set_source(what);
    request.mutable_sizes()->insert(sizes.begin(), sizes.end());
    detail::Link& link = *kernel.link();
    link.call(link.kernels(), &v1::KernelService::Stub::Inspect, request, response);
  });
  return response;
}

}  // namespace

std::string Kernel::source(const std::string& what, SourceLocation where) const {
  return detail::at_line(where, [&] { return inspect(*state_, what).text(); });
}
std::string Kernel::report(const std::map<std::string, std::int64_t>& sizes) const {
  return inspect(*state_, "", sizes).report_json();
}

}  // namespace client
}  // namespace kiln
