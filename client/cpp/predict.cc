// Predictions, as the service makes them.
#include <kiln/connection.h>
#include <kiln/predict.h>

#include "client/cpp/compile_request.h"
#include "client/cpp/definition_state.h"
#include "client/cpp/fail.h"
#include "client/cpp/link.h"
#include "kiln/v1/predict.grpc.pb.h"

namespace kiln {
inline namespace client {

Predictions Connection::predict(const Definition& definition, const PredictOptions& options,
                                const BuildOptions& build, SourceLocation where) const {
  v1::PredictRequest request;
  *request.mutable_kernel() = detail::request_of<v1::CompileRequest>(definition, build);
  request.mutable_sizes()->insert(options.sizes.begin(), options.sizes.end());
  request.set_threads(options.threads);
  v1::PredictResponse response;
  v1::PredictionService::Stub stub(
      std::shared_ptr<grpc::ChannelInterface>(link_, &link_->channel()));
  detail::at_line(
      where, [&] { link_->call(stub, &v1::PredictionService::Stub::Predict, request, response); });
  Predictions predictions{response.machine(), response.surroundings(), {}};
  for (const v1::PredictedSchedule& schedule : response.schedules()) {
    PredictedSchedule& read = predictions.schedules.emplace_back();
    read.name = schedule.name();
    read.steps = {schedule.steps().begin(), schedule.steps().end()};
    read.seconds = schedule.seconds();
    for (const v1::PredictedTerm& term : schedule.terms())
      read.terms.push_back({term.name(), term.seconds(), term.on_top()});
  }
  return predictions;
}

}  // namespace client
}  // namespace kiln
