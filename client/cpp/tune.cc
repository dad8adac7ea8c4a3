// A search on the service as a call that reports its trials. What is known so far is kept, so that
// a search that the caller stops has a result as well.
#include <kiln/connection.h>
#include <kiln/tune.h>

#include "client/cpp/compile_request.h"
#include "client/cpp/definition_state.h"
#include "client/cpp/fail.h"
#include "client/cpp/kernel_state.h"
#include "client/cpp/link.h"

namespace kiln {
inline namespace client {
namespace {

TuneStart from_wire(const v1::TuneStart& start) {
  return {.candidates = start.candidates(),
          .trials = start.trials(),
          .seconds = start.seconds(),
          .joined = start.joined(),
          .waiting = start.waiting(),
          .read_for = start.read_for()};
}

TuneTrial from_wire(const v1::TuneTrial& trial) {
  return {.number = trial.number(),
          .candidate = trial.candidate(),
          .seconds = trial.seconds(),
          .failure = trial.failure(),
          .recorded = trial.recorded(),
          .elapsed = trial.elapsed(),
          .best = trial.best()};
}

TuneResult from_wire(const v1::TuneResult& result) {
  return {.default_seconds = result.default_seconds(),
          .best_seconds = result.best_seconds(),
          .candidate = result.candidate(),
          .schedule = {result.schedule().begin(), result.schedule().end()},
          .record = result.record(),
          .trials = result.trials(),
          .failures = result.failures(),
          .end = result.end(),
          .problem = result.problem(),
          .read_for = result.read_for()};
}

/// What is known of a search without its end.
void note(const TuneTrial& trial, TuneResult& so_far) {
  if (trial.number == 0) so_far.default_seconds = trial.best;
  if (trial.number > 0 && trial.best < so_far.best_seconds) so_far.candidate = trial.candidate;
  so_far.best_seconds = trial.best;
  so_far.trials += trial.recorded ? 0 : 1;
  so_far.failures += trial.recorded || trial.failure.empty() ? 0 : 1;
}

}  // namespace

TuneResult Connection::tune(const Definition& definition, const TuneOptions& options,
                            const BuildOptions& build, SourceLocation where) const {
  v1::TuneRequest request;
  *request.mutable_kernel() = detail::request_of<v1::CompileRequest>(definition, build);
  detail::PreparedCall prepared;  // keeps the inputs that were uploaded
  if (!options.inputs.empty()) {
    prepared = detail::at_line(where, [&] {
      return detail::prepare_call(link_, request.kernel().source_map().kernel(),
                                  definition.parameters(), options.inputs, {}, {});
    });
    *request.mutable_arguments() = prepared.request.arguments();
  }
  request.mutable_sizes()->insert(options.sizes.begin(), options.sizes.end());
  request.set_trials(options.trials);
  request.set_seconds(options.seconds);
  request.set_session(link_->session_if_open());

  TuneResult result;
  // A search is not begun a second time unseen: its records stay, and the caller may call again.
  detail::CallControl control{.cancel = std::make_shared<detail::CancelState>(),
                              .idempotent = false};
  const std::stop_callback cancel(options.stop, [&control] { control.cancel->cancel(); });
  try {
    detail::at_line(where, [&] {
      link_->retry(control, [&](grpc::ClientContext& context) {
        const auto reader = link_->kernels().Tune(&context, request);
        v1::TuneEvent event;
        while (reader->Read(&event)) {
          if (event.has_start() && options.on_start) options.on_start(from_wire(event.start()));
          if (event.has_trial()) {
            const TuneTrial trial = from_wire(event.trial());
            note(trial, result);
            if (options.on_trial) options.on_trial(trial);
          }
          if (event.has_result()) result = from_wire(event.result());
        }
        return reader->Finish();
      });
    });
  } catch (const Cancelled&) {
    if (!options.stop.stop_requested()) throw;
    result.end = "stopped";
  }
  return result;
}

}  // namespace client
}  // namespace kiln
