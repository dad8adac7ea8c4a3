// Runs candidates. One is never trusted: it may fail, hang, end its worker or compute something
// else.
#include <algorithm>
#include <cstring>

#include "runtime/core/called.h"
#include "server/tuning/answer.h"
#include "server/tuning/judge.h"
#include "server/tuning/made_up_inputs.h"

namespace kiln::server {

namespace {

constexpr uint32_t kMeasurements = 3;
constexpr double kMeasurementSeconds = 0.002;  // as many runs as fit
constexpr double kMaxRepeat = 1000;
constexpr double kHopeless = 1.5;  // times the best: not measured further
constexpr double kSlowest = 20;    // times the default: longer runs are ended
constexpr auto kShortestLimit = std::chrono::milliseconds(500);

class MeasuringJudge : public Judge {
 public:
  explicit MeasuringJudge(const SearchContext& search) : search_(search), compiler_(search) {}

  std::vector<int64_t> prepare() override;

  /// The default runs first: its outputs are the reference, and its time the measure of too slow.
  double begin() override {
    default_seconds_ = execute(default_kernel_, 1, 1).kernel_seconds;
    has_reference_ = true;
    default_seconds_ = median(measure(default_kernel_, default_seconds_, kMeasurements));
    return default_seconds_;
  }

  CompiledCandidate compile(const Candidate& candidate) override {
    return compiler_.compile(candidate, std::nullopt);
  }

  bool is_default(const CompiledCandidate& candidate) const override {
    const Artifact& own = candidate.kernel->artifact();
    const Artifact& other = default_kernel_->artifact();
    return own.code == other.code && std::ranges::equal(own.variants, other.variants, {},
                                                        &Variant::tile_code, &Variant::tile_code);
  }

  double seconds_of(const CompiledCandidate& candidate, double best) override {
    const double first = first_run(candidate);
    require_same_outputs();
    // The first run also pays for what the later ones find in the caches.
    if (first >= kHopeless * best + 1e-3) return first;
    return median(measure(candidate.kernel, first, kMeasurements));
  }

  Turns compare(const CompiledCandidate& candidate, double seconds, const CompiledCandidate* best,
                double best_seconds) override {
    Turns turns;
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const double of_best = measure(best ? best->kernel : default_kernel_, best_seconds, 1)[0];
      turns.best.push_back(of_best);
      turns.own.push_back(std::max(measure(candidate.kernel, seconds, 1)[0], kShortestRun));
      turns.defaults.push_back(best ? measure(default_kernel_, default_seconds_, 1)[0] : of_best);
    }
    return turns;
  }

 private:
  using Kernel = std::shared_ptr<const KernelEntry>;

  void place_arguments(const Call& call);
  double first_run(const CompiledCandidate& candidate);
  DeviceResult execute(const Kernel& kernel, uint32_t repeat, uint32_t measurements);
  std::vector<double> measure(const Kernel& kernel, double seconds_a_run, uint32_t measurements);
  void require_same_outputs() const;
  Clock::duration limit_of_run() const;

  const SearchContext& search_;
  const CandidateCompiler compiler_;
  Kernel default_kernel_;
  DeviceCall call_;  // of the default, whose first run leaves the reference in its outputs
  std::vector<std::shared_ptr<Slice>> outputs_;  // of candidates, one a parameter; null: an input
  double default_seconds_ = 0;
  bool has_reference_ = false;
};

std::vector<int64_t> MeasuringJudge::prepare() {
  Answer<CompileResult> answer;
  auto call = std::make_shared<Call>(search_.task.caller);
  search_.parts.compiles.compile(search_.task.request, call, answer.taker());
  auto outcome = answer.wait([&] { return search_.cancelled.load(); });
  if (!outcome) {
    call->cancel();
    search_.require_uncancelled();
  }
  if (const Error* error = std::get_if<Error>(&*outcome)) throw *error;
  default_kernel_ = std::get<CompileResult>(*outcome).kernel;
  place_arguments(*call);
  const auto count = static_cast<size_t>(default_kernel_->artifact().size_count);
  const std::span<const int64_t> sizes = std::span(call_.bound.scalars).first(count);
  return {sizes.begin(), sizes.end()};
}

void MeasuringJudge::place_arguments(const Call& call) {
  v1::RunRequest request;
  request.set_kernel_id(default_kernel_->id);
  request.set_session(search_.task.wire.session());
  *request.mutable_sizes() = search_.task.wire.sizes();
  *request.mutable_arguments() = search_.task.wire.arguments();
  const bool made_up = request.arguments().empty();
  if (made_up) {
    const std::map<std::string, int64_t> sizes(request.sizes().begin(), request.sizes().end());
    make_up_arguments(default_kernel_->artifact(), default_kernel_->names, sizes,
                      search_.parts.tensor_bytes, request);
  }
  call_ = search_.parts.runs.place_call(request, call);
  // Outputs are compared here.
  call_.stays.clear();
  Answer<std::monostate> home;
  search_.parts.devices.bring_home(call_.tensors, home.taker());
  const auto brought = home.wait([&] { return search_.cancelled.load(); });
  if (!brought) search_.require_uncancelled();
  if (const Error* error = std::get_if<Error>(&*brought)) throw *error;
  for (size_t i = 0; i < call_.tensors.size(); ++i) {
    const bool is_output = default_kernel_->artifact().parameters[i].is_output;
    outputs_.push_back(is_output ? search_.parts.arenas->allocate(call_.tensors[i]->bytes())
                                 : nullptr);
  }
}

Clock::duration MeasuringJudge::limit_of_run() const {
  const std::chrono::duration<double> slow(kSlowest * default_seconds_);
  return kShortestLimit + std::chrono::duration_cast<Clock::duration>(slow);
}

DeviceResult MeasuringJudge::execute(const Kernel& kernel, uint32_t repeat, uint32_t measurements) {
  DeviceCall work = call_;
  const bool is_default = kernel == default_kernel_;
  const auto runs = static_cast<int64_t>(repeat) * measurements;
  work.kernel = kernel;
  work.repeat = repeat;
  work.measurements = measurements;
  work.may_retry = is_default;  // a candidate that ends its worker is not tried a second time
  for (size_t i = 0; i < outputs_.size(); ++i) {
    // All that is timed writes to the same memory: of tensors that caches hold its place counts.
    if (outputs_[i] && has_reference_) work.tensors[i] = outputs_[i];
  }
  // Not the time in which the worker is started again that the candidate before has ended.
  if (!is_default) work.limit = runs * limit_of_run();
  work.call = std::make_shared<Call>(search_.task.caller);
  Answer<DeviceResult> answer;
  work.done = answer.taker();
  const std::shared_ptr<Call> call = work.call;
  search_.parts.devices.of(default_kernel_->artifact().target).submit(std::move(work));
  bool told = false;
  auto outcome = answer.wait([&] {
    if (search_.cancelled && !told) {
      told = true;
      call->cancel();
    }
    return false;  // the worker writes into memory that must live until it has ended
  });
  search_.require_uncancelled();
  if (const Error* error = std::get_if<Error>(&*outcome)) {
    if (error->kind() != ErrorKind::DeadlineExceeded) throw *error;
    fail(ErrorKind::DeadlineExceeded, "TOO_SLOW", "it took more than {:.0f} times the default",
         kSlowest);
  }
  return std::get<DeviceResult>(std::move(*outcome));
}

double MeasuringJudge::first_run(const CompiledCandidate& candidate) {
  for (const std::shared_ptr<Slice>& output : outputs_) {
    // What a candidate leaves out must not be there from the one before.
    if (output) std::memset(output->data(), 0xA5, static_cast<size_t>(output->bytes()));
  }
  return execute(candidate.kernel, 1, 1).kernel_seconds;
}

std::vector<double> MeasuringJudge::measure(const Kernel& kernel, double seconds_a_run,
                                            uint32_t measurements) {
  const double fit =
      // A short kernel is run many times, or the clock would be what is measured.
      std::clamp(kMeasurementSeconds / std::max(seconds_a_run, 1e-9), 1.0, kMaxRepeat);
  return execute(kernel, static_cast<uint32_t>(fit), measurements).measured;
}

void MeasuringJudge::require_same_outputs() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i]) continue;
    // A slice is longer than its tensor, up to the next line of the cache.
    const DType type = default_kernel_->artifact().parameters[i].type;
    const auto bytes = static_cast<size_t>(byte_size(type, call_.bound.shapes[i]));
    if (std::memcmp(outputs_[i]->data(), call_.tensors[i]->data(), bytes) == 0) continue;
    fail(ErrorKind::Internal, "OTHER_RESULT", "its {} differs from that of the default",
         search_.task.request.names.parameters[i]);
  }
}

}  // namespace

std::unique_ptr<Judge> measuring_judge(const SearchContext& search) {
  return std::make_unique<MeasuringJudge>(search);
}

}  // namespace kiln::server
