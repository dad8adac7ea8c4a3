// Calls without waiting. Those to a service elsewhere go over one stream, and cost no thread;
// others (with a deadline, or over the local socket, where contents travel as memory) have a thread
// each. What may help when a call over the stream fails is tried as a call of its own, in a thread.
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "client/cpp/call_stream.h"
#include "client/cpp/fail.h"
#include "client/cpp/kernel_call.h"
#include "client/cpp/status_border.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

using Promise = std::shared_ptr<std::promise<Outputs>>;

/// A call over the stream. Its Future owns it, and waits until the promise is kept: whoever keeps
/// that touches nothing of this afterwards, so that the last one to hold the connection is never
/// one of its own threads.
struct Submitted {
  Submitted(std::shared_ptr<KernelState> of, std::vector<Argument> given, CallOptions how,
            const SourceLocation& at)
      : kernel(std::move(of)),
        arguments(std::move(given)),
        options(std::move(how)),
        control(CallControl::with_deadline(options.deadline)),
        where(at) {
    control.cancel = std::make_shared<CancelState>();
  }

  const std::shared_ptr<KernelState> kernel;
  const std::vector<Argument> arguments;
  const CallOptions options;
  CallControl control;
  const SourceLocation where;
  PreparedCall call;
  std::optional<Cancellable> cancellable;

  bool idempotent() const { return is_idempotent(call.request, kernel->parameters()); }
};

void keep_promise(std::promise<Outputs>& promise, const SourceLocation& where,
                  const std::function<Outputs()>& outputs) {
  std::optional<Outputs> made;
  try {
    made = at_line(where, outputs);
  } catch (...) {
    promise.set_exception(std::current_exception());
    return;
  }
  promise.set_value(*std::move(made));
}

/// Whether a call of its own may do: where the kernel or the session is one of an earlier daemon's,
/// the service was not reached, or it knows no such stream.
bool may_help(const Submitted& submitted, const FailedCall& failed, const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) return true;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND)
    return failed.error.reason == "KERNEL" || failed.error.reason == "SESSION";
  const bool is_lost = !failed.from_service && status.error_code() == grpc::StatusCode::UNAVAILABLE;
  return submitted.idempotent() && (failed.retry_after || is_lost);
}

void end_submitted(Submitted& submitted, const Promise& promise, const grpc::Status& status,
                   v1::RunResponse& response) {
  if (status.ok()) {
    keep_promise(*promise, submitted.where, [&] {
      RunReply reply;
      reply.response.Swap(&response);
      return take_outputs(*submitted.kernel, submitted.call, reply, submitted.control);
    });
    return;
  }
  const FailedCall failed = failed_call(status, submitted.kernel->link()->address());
  if (may_help(submitted, failed, status)) {
    std::thread([&submitted, promise] {
      keep_promise(*promise, submitted.where, [&] {
        return call_kernel(*submitted.kernel, submitted.arguments, submitted.options,
                           submitted.control);
      });
    }).detach();
    return;
  }
  keep_promise(*promise, submitted.where, [&]() -> Outputs { throw_error(failed.error); });
}

/// False when there is no stream to send it over.
bool send_submitted(Submitted& submitted, const Promise& promise) {
  KernelState& kernel = *submitted.kernel;
  const std::shared_ptr<CallStream> stream = kernel.link()->call_stream();
  if (!stream) return false;
  submitted.call = prepare_call(kernel.link(), kernel.name(), kernel.parameters(),
                                submitted.arguments, submitted.options, submitted.control);
  submitted.call.request.set_kernel_id(kernel.id());
  submitted.call.request.set_session(kernel.link()->session_if_open());
  const std::uint64_t number = stream->next_number();
  submitted.cancellable.emplace(submitted.control, [stream, number] { stream->cancel(number); });
  return stream->run(number, submitted.call.request,
                     [&submitted, promise](const auto& status, auto& response) {
                       end_submitted(submitted, promise, status, response);
                     });
}

}  // namespace
}  // namespace detail

void Future::cancel() const { cancel_->cancel(); }

Future Kernel::submit_call(std::vector<Argument> arguments, CallOptions options,
                           SourceLocation where) const {
  const auto submitted =
      std::make_shared<detail::Submitted>(state_, std::move(arguments), std::move(options), where);
  const std::shared_ptr<detail::CancelState> cancel = submitted->control.cancel;
  if (!submitted->control.deadline && !state_->link()->local()) {
    const auto promise = std::make_shared<std::promise<Outputs>>();
    std::future<Outputs> result = promise->get_future();
    bool is_sent = true;
    try {
      is_sent = detail::at_line(where, [&] { return detail::send_submitted(*submitted, promise); });
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
    if (is_sent) return {std::move(result), cancel, submitted};
  }
  std::future<Outputs> result = std::async(std::launch::async, [submitted] {
    return detail::at_line(submitted->where, [&] {
      return detail::call_kernel(*submitted->kernel, submitted->arguments, submitted->options,
                                 submitted->control);
    });
  });
  return {std::move(result), cancel, nullptr};
}

}  // namespace client
}  // namespace kiln
