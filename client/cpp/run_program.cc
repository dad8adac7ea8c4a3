// A run of a program: it is defined, which is nothing where the service knows it, its arrays are
// uploaded, and its events followed. Parameters given as arrays of this process are written back,
// also where the run ends with an error: they are then those of the last whole step.
#include <kiln/connection.h>
#include <kiln/program.h>

#include "client/cpp/fail.h"
#include "client/cpp/kernel_state.h"
#include "client/cpp/link.h"
#include "client/cpp/program_state.h"
#include "client/cpp/transfer.h"

namespace kiln {
inline namespace client {
namespace {

constexpr std::size_t kMostInline = 256 << 10;  // bytes of an array inside of the call
constexpr std::size_t kMostInlineOfAll = 1 << 20;
// Past its timeout, in which a run must have ended at the service.
constexpr std::chrono::milliseconds kGrace{10'000};

class ProgramCall {
 public:
  ProgramCall(std::shared_ptr<detail::Link> link, const detail::ProgramState& state,
              const ProgramOptions& options)
      : link_(std::move(link)), state_(state), program_(state.wire), options_(options) {
    request_.set_steps(options.steps);
    request_.set_epochs(options.epochs);
    request_.set_batch(options.batch);
    request_.set_first_step(options.first_step);
    request_.set_stop_on_nan(options.stop_on_nan);
    request_.set_timeout(std::chrono::duration<double>(options.timeout).count());
    request_.set_session(link_->session());
    request_.set_device(options.device);
  }

  void give(const std::map<std::string, Argument>& given) {
    std::map<std::uint32_t, Argument> arguments = state_.own;
    for (const auto& [name, argument] : given)
      arguments.insert_or_assign(detail::given_id(program_, name), argument);
    for (const auto& [id, argument] : arguments)
      give(id, argument);
  }

  ProgramResult run() {
    request_.set_program_id(detail::define(*link_, program_, options_.target));
    try {
      follow();
    } catch (const Error&) {
      try {
        write_back();
      } catch (const Error&) {  // the first error says more
      }
      throw;
    }
    write_back();
    return std::move(result_);
  }

 private:
  void give(std::uint32_t id, const Argument& argument) {
    v1::GivenValue& given = *request_.add_given();
    given.set_value(id);
    if (const auto* remote = std::get_if<RemoteArray>(&argument)) {
      given.mutable_argument()->set_tensor(remote->id());
      return;
    }
    const Array& array = std::get<Array>(argument);
    const std::size_t bytes = array.bytes().size();
    const bool is_parameter =
        program_.values(static_cast<int>(id)).kind() == v1::VALUE_KIND_PARAMETER;
    if (is_parameter || bytes > kMostInline || inline_bytes_ + bytes > kMostInlineOfAll) {
      kept_.push_back(detail::upload(link_, array, {.device = device()}, link_->session(), {}));
      given.mutable_argument()->set_tensor(kept_.back()->id);
      if (is_parameter) parameters_.emplace_back(kept_.back()->id, array);
      return;
    }
    inline_bytes_ += bytes;
    v1::Inline& out = *given.mutable_argument()->mutable_inline_();
    out.set_type(static_cast<v1::DataType>(array.dtype()));
    for (const std::int64_t size : array.shape())
      out.add_shape(size);
    out.set_data(array.bytes().data(), bytes);
  }

  /// Where its arrays go.
  std::string device() const {
    if (!options_.device.empty()) return options_.device;
    return options_.target == "cuda" ? "cuda:0" : "cpu:0";
  }

  /// Not begun a second time unseen: parameters may have changed.
  void follow() {
    detail::CallControl control{.idempotent = false};
    if (options_.timeout.count() > 0) {
      control.deadline = std::chrono::system_clock::now() + options_.timeout + kGrace;
    }
    link_->retry(control, [&](grpc::ClientContext& context) {
      const auto reader = link_->programs().Run(&context, request_);
      v1::ProgramEvent event;
      while (reader->Read(&event)) {
        if (event.has_progress()) tell(event.progress());
        if (event.has_result()) take(event.result());
      }
      return reader->Finish();
    });
  }

  void tell(const v1::ProgramProgress& event) const {
    if (!options_.on_progress) return;
    ProgramProgress progress{
        .steps = event.steps(), .epochs = event.epochs(), .seconds = event.seconds()};
    for (int i = 0; i < event.means_size(); ++i)
      progress.means[state_.reports[static_cast<std::size_t>(i)]] = event.means(i);
    options_.on_progress(progress);
  }

  void take(const v1::ProgramResult& result) {
    result_.steps = result.steps();
    result_.timings = detail::from_wire(result.timings());
    for (int i = 0; i < result.reports_size(); ++i) {
      const auto& values = result.reports(i).values();
      result_.reports[state_.reports[static_cast<std::size_t>(i)]] = {values.begin(), values.end()};
    }
    for (const v1::Result& output : result.outputs()) {
      const std::string& name = state_.outputs.at(output.parameter());
      result_.outputs.insert_or_assign(name, detail::take_result(link_, output, {}, {}, {}));
    }
  }

  void write_back() const {
    for (const auto& [tensor, array] : parameters_)
      detail::download(*link_, tensor, array, {});
  }

  const std::shared_ptr<detail::Link> link_;
  const detail::ProgramState& state_;
  const v1::Program& program_;
  const ProgramOptions& options_;
  v1::RunProgramRequest request_;
  std::vector<std::shared_ptr<const detail::RemoteState>> kept_;
  std::vector<std::pair<std::string, Array>> parameters_;  // the tensor, and what it came from
  std::size_t inline_bytes_ = 0;
  ProgramResult result_;
};

}  // namespace

ProgramResult Connection::run(const Program& program, const std::map<std::string, Argument>& given,
                              const ProgramOptions& options, SourceLocation where) const {
  return detail::at_line(where, [&] {
    ProgramCall call(link_, *program.state(), options);
    call.give(given);
    return call.run();
  });
}

}  // namespace client
}  // namespace kiln
