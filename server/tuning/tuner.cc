// One search: compile, run once, compare bits, measure, challenge. A candidate is never trusted: it
// may fail, hang, end its worker or compute something else, and each only costs it the place.
//
//   0.9 of the best's time once  ->  seven turns of candidate, best, default  ->  a record, or not
//
// A single measurement cannot tell 2 % from noise; turns meet the same noise on both sides.
#include "server/tuning/tuner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/ranges.h>

#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text_names.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/called.h"
#include "server/tuning/answer.h"
#include "server/tuning/made_up_inputs.h"

namespace kiln::server {

namespace {

constexpr uint64_t kSeed = 1;  // of the search: the same budget finds the same candidates
constexpr uint32_t kMeasurements = 3;
constexpr uint32_t kTurns = 7;                 // of a candidate against the best
constexpr double kMeasurementSeconds = 0.002;  // as many runs as fit
constexpr double kMaxRepeat = 1000;
constexpr double kHopeless = 1.5;  // times the best: not measured further
constexpr double kHopeful = 1.02;  // a single measurement may be a little too long
constexpr double kSlowest = 20;    // times the default: longer runs are ended
constexpr auto kShortestLimit = std::chrono::milliseconds(500);
constexpr auto kCompileLimit = std::chrono::seconds(20);

/// The binary logarithms of the sizes, rounded down: "9,10".
std::string class_of(std::span<const int64_t> sizes) {
  std::vector<int> logarithms;
  for (const int64_t size : sizes)
    logarithms.push_back(
        static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(size, 1)))) - 1);
  return fmt::format("{}", fmt::join(logarithms, ","));
}

internal::Candidate to_wire(const Candidate& candidate) {
  internal::Candidate wire;
  for (const Candidate::Choice& choice : candidate.stages) {
    internal::StageChoice& written = *wire.add_stages();
    written.set_sketch(choice.sketch);
    written.mutable_values()->Add(choice.values.begin(), choice.values.end());
  }
  return wire;
}

std::vector<StageSketches> from_wire(const internal::SketchesDone& done) {
  std::vector<StageSketches> stages;
  for (const internal::StageSketches& stage : done.stages()) {
    StageSketches& read = stages.emplace_back();
    read.stage = stage.stage();
    for (const internal::Sketch& sketch : stage.sketches()) {
      autoschedule::Sketch& own = read.sketches.emplace_back();
      own.name = sketch.name();
      for (const internal::SketchParameter& parameter : sketch.parameters()) {
        own.parameters.push_back({parameter.name(),
                                  {parameter.values().begin(), parameter.values().end()},
                                  parameter.preferred()});
      }
    }
  }
  return stages;
}

}  // namespace

/// A candidate that compiled.
struct Tuner::Compiled {
  std::shared_ptr<const KernelEntry> kernel;
  v1::Schedule schedule;
};

struct Tuner::Best {
  Compiled compiled;
  std::optional<Candidate> candidate;  // nothing: the default
  double seconds = 0;                  // when it was last measured
  double speedup = 1;                  // against the default, measured in turns
  std::string record;
};

Tuner::~Tuner() = default;

Tuner::Tuner(const TuningParts& parts, TuningTask task, Observer observer)
    : parts_(parts), task_(std::move(task)), observer_(std::move(observer)), key_(task_.key) {}

void Tuner::require_uncancelled() const {
  if (cancelled_) fail(ErrorKind::Cancelled, "CANCELLED", "the search was cancelled");
}

void Tuner::run() {
  place_arguments();
  open_space();
  const Compiled compiled{default_kernel_, {}};
  // The default runs first: its outputs are the reference, and its time the measure of too slow.
  default_seconds_ = first_run(compiled);
  default_seconds_ = median(measure(compiled, default_seconds_, kMeasurements));
  best_ = std::make_unique<Best>(Best{compiled, std::nullopt, default_seconds_, 1, ""});
  resume();
  try_record();
  while (true) {
    require_uncancelled();
    if (measured_ >= task_.trials) return finish("trials");
    if (Clock::now() - started_ >= task_.time) return finish("seconds");
    const std::optional<Candidate> candidate = search_->next();
    if (!candidate) return finish("candidates");
    try_candidate(*candidate, kBetter);
  }
}

void Tuner::place_arguments() {
  Answer<CompileResult> answer;
  auto call = std::make_shared<Call>(task_.caller);
  parts_.compiles.compile(task_.request, call, answer.taker());
  auto outcome = answer.wait([&] { return cancelled_.load(); });
  if (!outcome) {
    call->cancel();
    require_uncancelled();
  }
  if (const Error* error = std::get_if<Error>(&*outcome)) throw *error;
  default_kernel_ = std::get<CompileResult>(*outcome).kernel;

  v1::RunRequest request;
  request.set_kernel_id(default_kernel_->id);
  request.set_session(task_.wire.session());
  *request.mutable_sizes() = task_.wire.sizes();
  *request.mutable_arguments() = task_.wire.arguments();
  const bool made_up = request.arguments().empty();
  if (made_up) {
    const std::map<std::string, int64_t> sizes(request.sizes().begin(), request.sizes().end());
    make_up_arguments(default_kernel_->artifact(), default_kernel_->names, sizes,
                      parts_.tensor_bytes, request);
  }
  call_ = parts_.runs.place_call(request, *call);
  // Outputs are compared here.
  call_.stays.clear();
  Answer<std::monostate> home;
  parts_.devices.bring_home(call_.tensors, home.taker());
  const auto brought = home.wait([&] { return cancelled_.load(); });
  if (!brought) require_uncancelled();
  if (const Error* error = std::get_if<Error>(&*brought)) throw *error;
  for (size_t i = 0; i < call_.tensors.size(); ++i) {
    const bool is_output = default_kernel_->artifact().parameters[i].is_output;
    outputs_.push_back(is_output ? parts_.arenas->allocate(call_.tensors[i]->bytes()) : nullptr);
  }
  const auto size_count = static_cast<size_t>(default_kernel_->artifact().size_count);
  key_.sizes = class_of(std::span(call_.bound.scalars).first(size_count));
}

internal::FromWorker Tuner::ask_compiler(internal::ToWorker message, std::string key,
                                         Clock::duration limit) const {
  CompilerTask task;
  task.message = std::move(message);
  task.kernel = task_.request.names.kernel;
  task.key = std::move(key);
  task.caller = task_.caller;
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  task.wanted = [gone] { return !*gone; };
  Answer<internal::FromWorker> answer;
  task.done = answer.taker();
  parts_.compilers.submit(std::move(task));
  const Clock::time_point begun = Clock::now();
  auto outcome = answer.wait([&] { return cancelled_ || Clock::now() - begun > limit; });
  *gone = true;
  require_uncancelled();
  if (!outcome) {
    fail(ErrorKind::ResourceExhausted, "COMPILE_TIME", "it took longer than {:.0f} s to compile",
         std::chrono::duration<double>(limit).count());
  }
  if (const Error* error = std::get_if<Error>(&*outcome)) throw *error;
  return std::get<internal::FromWorker>(*std::move(outcome));
}

void Tuner::open_space() {
  internal::ToWorker message;
  *message.mutable_sketches()->mutable_request() = task_.request.wire;
  std::vector<StageSketches> space = from_wire(
      ask_compiler(std::move(message), task_.request.key, Clock::duration::max()).sketches());
  if (space.empty()) {
    fail(ErrorKind::Unsupported, "NOTHING_TO_TUNE",
         "{} leaves nothing open: every stage has steps, or one way to run; tune measures "
         "schedules for stages without steps",
         called(task_.request.names.kernel));
  }
  search_.emplace(std::move(space), kSeed);
  v1::TuneEvent event;
  v1::TuneStart& start = *event.mutable_start();
  start.set_candidates(search_->candidates());
  start.set_trials(task_.trials);
  start.set_seconds(std::chrono::duration<double>(task_.time).count());
  observer_(event);
}

void Tuner::resume() {
  for (const TuningTrial& trial : parts_.records.trials(key_)) {
    const std::optional<Candidate> candidate = candidate_of(trial.candidate, search_->space());
    if (!candidate) continue;
    const bool failed = !trial.failure.empty();
    search_->tried(*candidate, failed ? std::nullopt : std::optional(trial.seconds));
    tell(trial, failed ? fmt::format("it failed before ({})", trial.failure) : "", true);
  }
}

void Tuner::try_record() {
  const std::optional<TuningRecord> record = parts_.records.find(key_);
  if (!record) return;
  const std::optional<Candidate> candidate = candidate_of(record->candidate, search_->space());
  if (candidate) try_candidate(*candidate, kKept);
  if (!best_->candidate) parts_.records.remove(key_);
}

void Tuner::try_candidate(const Candidate& candidate, const Bar& bar) {
  TuningTrial trial{.candidate = key_of(candidate), .seconds = 0, .failure = ""};
  std::string failure;
  ++measured_;
  try {
    const Compiled compiled = compile(candidate);
    trial.seconds = first_run(compiled);
    require_same_outputs();
    // The first run also pays for what the later ones find in the caches.
    if (trial.seconds < kHopeless * best_->seconds + 1e-3) {
      trial.seconds = median(measure(compiled, trial.seconds, kMeasurements));
    }
    // What is taken unmeasured is the default under another name.
    const bool is_default = candidate == search_->preferred();
    const bool may_win = trial.seconds < best_->seconds * bar.part * kHopeful;
    if (may_win && !is_default) challenge(candidate, compiled, trial.seconds, bar);
  } catch (const Error& error) {
    require_uncancelled();
    if (error.reason() == "DRAINING") throw;
    trial.seconds = 0;
    trial.failure = error.reason();
    failure = error.message();
    ++failures_;
  }
  const bool failed = !trial.failure.empty();
  search_->tried(candidate, failed ? std::nullopt : std::optional(trial.seconds));
  parts_.records.add_trial(key_, trial);
  // What is counted is kept, whatever becomes of the daemon.
  if (failed) parts_.counters.tuning_failures.fetch_add(1);
  parts_.counters.tuning_trials.fetch_add(1);
  tell(trial, failure, false);
}

void Tuner::challenge(const Candidate& candidate, const Compiled& compiled, double seconds,
                      const Bar& bar) {
  const Compiled without{default_kernel_, {}};
  Turns turns;
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    const double best = measure(best_->compiled, best_->seconds, 1)[0];
    turns.best.push_back(best);
    turns.own.push_back(std::max(measure(compiled, seconds, 1)[0], kShortestRun));
    turns.defaults.push_back(best_->candidate ? measure(without, default_seconds_, 1)[0] : best);
  }
  if (!bar.is_passed(turns)) return;
  const double own = median(turns.own);
  best_ = std::make_unique<Best>(Best{compiled, candidate, own, turns.speedup(), ""});
  TuningRecord record{.candidate = key_of(candidate),
                      .schedule = compiled.schedule,
                      .seconds = own,
                      .default_seconds = median(turns.defaults),
                      .id = {},
                      .written = 0};
  best_->record = parts_.records.put(key_, std::move(record)).id;
}

Tuner::Compiled Tuner::compile(const Candidate& candidate) {
  internal::ToWorker message;
  *message.mutable_compile()->mutable_request() = task_.request.wire;
  *message.mutable_compile()->mutable_candidate() = to_wire(candidate);
  const std::string key = fmt::format("tuning {} {}", task_.request.key, key_of(candidate));
  internal::FromWorker reply = ask_compiler(std::move(message), key, kCompileLimit);
  internal::Compiled& compiled = *reply.mutable_compiled();
  KernelEntry entry;
  entry.key = key;
  entry.compiled = cached_artifact("", std::move(*compiled.mutable_artifact()));
  entry.names = task_.request.names;
  return {parts_.kernels.number(std::move(entry)), std::move(*compiled.mutable_schedule())};
}

Clock::duration Tuner::limit_of_run() const {
  const std::chrono::duration<double> slow(kSlowest * default_seconds_);
  return kShortestLimit + std::chrono::duration_cast<Clock::duration>(slow);
}

DeviceResult Tuner::execute(const Compiled& compiled, uint32_t repeat, uint32_t measurements) {
  DeviceCall work = call_;
  const bool is_default = compiled.kernel == default_kernel_;
  const auto runs = static_cast<int64_t>(repeat) * measurements;
  work.kernel = compiled.kernel;
  work.repeat = repeat;
  work.measurements = measurements;
  work.may_retry = is_default;  // a candidate that ends its worker is not tried a second time
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] && search_ && !is_default) work.tensors[i] = outputs_[i];
  }
  // Not the time in which the worker is started again that the candidate before has ended.
  if (!is_default) work.limit = runs * limit_of_run();
  work.call = std::make_shared<Call>(task_.caller);
  Answer<DeviceResult> answer;
  work.done = answer.taker();
  const std::shared_ptr<Call> call = work.call;
  parts_.devices.of(default_kernel_->artifact().target).submit(std::move(work));
  bool told = false;
  auto outcome = answer.wait([&] {
    if (cancelled_ && !told) {
      told = true;
      call->cancel();
    }
    return false;  // the worker writes into memory that must live until it has ended
  });
  require_uncancelled();
  if (const Error* error = std::get_if<Error>(&*outcome)) {
    if (error->kind() != ErrorKind::DeadlineExceeded) throw *error;
    fail(ErrorKind::DeadlineExceeded, "TOO_SLOW", "it took more than {:.0f} times the default",
         kSlowest);
  }
  return std::get<DeviceResult>(std::move(*outcome));
}

double Tuner::first_run(const Compiled& compiled) {
  for (const std::shared_ptr<Slice>& output : outputs_) {
    // What a candidate leaves out must not be there from the one before.
    if (output) std::memset(output->data(), 0xA5, static_cast<size_t>(output->bytes()));
  }
  return execute(compiled, 1, 1).kernel_seconds;
}

std::vector<double> Tuner::measure(const Compiled& compiled, double seconds_a_run,
                                   uint32_t measurements) {
  const double fit =
      // A short kernel is run many times, or the clock would be what is measured.
      std::clamp(kMeasurementSeconds / std::max(seconds_a_run, 1e-9), 1.0, kMaxRepeat);
  return execute(compiled, static_cast<uint32_t>(fit), measurements).measured;
}

void Tuner::require_same_outputs() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i]) continue;
    // A slice is longer than its tensor, up to the next line of the cache.
    const DType type = default_kernel_->artifact().parameters[i].type;
    const auto bytes = static_cast<size_t>(byte_size(type, call_.bound.shapes[i]));
    if (std::memcmp(outputs_[i]->data(), call_.tensors[i]->data(), bytes) == 0) continue;
    fail(ErrorKind::Internal, "OTHER_RESULT", "its {} differs from that of the default",
         task_.request.names.parameters[i]);
  }
}

std::string Tuner::text_of(const Candidate& candidate) const {
  return autoschedule::text_of(candidate, search_->space(), task_.request.names.stages);
}

void Tuner::tell(const TuningTrial& trial, const std::string& failure, bool recorded) {
  v1::TuneEvent event;
  v1::TuneTrial& told = *event.mutable_trial();
  told.set_number(number_++);
  told.set_candidate(text_of(*candidate_of(trial.candidate, search_->space())));
  told.set_seconds(trial.seconds);
  told.set_failure(failure);
  told.set_recorded(recorded);
  told.set_elapsed(seconds_between(started_, Clock::now()));
  told.set_best(default_seconds_ / best_->speedup);
  observer_(event);
}

void Tuner::finish(const std::string& end) {
  v1::TuneEvent event;
  v1::TuneResult& result = *event.mutable_result();
  result.set_default_seconds(default_seconds_);
  result.set_best_seconds(default_seconds_ / best_->speedup);
  if (best_->candidate) result.set_candidate(text_of(*best_->candidate));
  if (best_->candidate) {
    const language::Kernel kernel =
        language::decode(task_.request.wire.definition(), task_.request.wire.source_map());
    for (const std::string& step :
         language::kernel_file_text(language::decode_schedule(best_->compiled.schedule, kernel),
                                    kernel.definition, language::printable_names(kernel)))
      result.add_schedule(step);
  }
  result.set_record(best_->record);
  result.set_trials(measured_);
  result.set_failures(failures_);
  result.set_end(end);
  result.set_problem(parts_.records.problem());
  observer_(event);
}

}  // namespace kiln::server
