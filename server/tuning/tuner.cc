// One search: compile, judge, challenge. What fails as a candidate only costs it the place.
//
//   0.9 of the best's time once  ->  seven turns of candidate, best, default  ->  a record, or not
//
// A single measurement cannot tell 2 % from noise; turns meet the same noise on both sides.
#include "server/tuning/tuner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/ranges.h>

#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text_names.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/gpu_name.h"

namespace kiln::server {

namespace {

constexpr uint64_t kSeed = 1;      // of the search: the same budget finds the same candidates
constexpr double kHopeful = 1.02;  // a single measurement may be a little too long

/// The binary logarithms of the sizes, rounded down: "9,10".
std::string class_of(std::span<const int64_t> sizes) {
  std::vector<int> logarithms;
  for (const int64_t size : sizes)
    logarithms.push_back(
        static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(size, 1)))) - 1);
  return fmt::format("{}", fmt::join(logarithms, ","));
}

}  // namespace

struct Tuner::Best {
  std::optional<CompiledCandidate> compiled;  // nothing: the default
  std::optional<Candidate> candidate;         // likewise
  double seconds = 0;                         // when it was last judged
  double speedup = 1;                         // against the default, in turns
  std::string record;
};

Tuner::~Tuner() = default;

Tuner::Tuner(const TuningParts& parts, TuningTask task, Observer observer)
    : parts_(parts),
      task_(std::move(task)),
      observer_(std::move(observer)),
      context_{parts_, task_, cancelled_},
      judge_(task_.key.read_for().empty() ? measuring_judge(context_) : reading_judge(context_)),
      key_(task_.key) {}

void Tuner::run() {
  key_.sizes = class_of(judge_->prepare());
  open_space();
  default_seconds_ = judge_->begin();
  best_ = std::make_unique<Best>(Best{std::nullopt, std::nullopt, default_seconds_, 1, ""});
  resume();
  try_record();
  try_read_record();
  while (true) {
    context_.require_uncancelled();
    if (measured_ >= task_.trials) return finish("trials");
    if (Clock::now() - started_ >= task_.time) return finish("seconds");
    const std::optional<Candidate> candidate = search_->next();
    if (!candidate) return finish("candidates");
    try_candidate(*candidate, kBetter);
  }
}

void Tuner::open_space() {
  search_.emplace(CandidateCompiler(context_).space(), kSeed);
  v1::TuneEvent event;
  v1::TuneStart& start = *event.mutable_start();
  start.set_candidates(search_->candidates());
  start.set_trials(task_.trials);
  start.set_seconds(std::chrono::duration<double>(task_.time).count());
  start.set_read_for(key_.read_for());
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

// What was found by reading code serves builds for a device where nothing was measured. Measured,
// it becomes a record of the device, or none.
void Tuner::try_read_record() {
  if (!key_.read_for().empty()) return;
  TuningKey read = key_;
  read.device =
      TuningKey::code_for(std::string(without_figures(task_.request.wire.target().arch())));
  const std::optional<TuningRecord> record = parts_.records.find(read);
  if (!record) return;
  const std::optional<Candidate> candidate = candidate_of(record->candidate, search_->space());
  const bool is_known = best_->candidate && candidate == best_->candidate;
  if (candidate && !is_known) try_candidate(*candidate, kKept);
  if (!candidate || best_->candidate != candidate) parts_.records.remove(read);
}

void Tuner::try_candidate(const Candidate& candidate, const Bar& bar) {
  TuningTrial trial{.candidate = key_of(candidate), .seconds = 0, .failure = ""};
  std::string failure;
  ++measured_;
  try {
    const CompiledCandidate compiled = judge_->compile(candidate);
    trial.seconds = judge_->seconds_of(compiled, best_->seconds);
    const bool may_win = trial.seconds < best_->seconds * bar.part * kHopeful;
    if (may_win && !judge_->is_default(compiled))
      challenge(candidate, compiled, trial.seconds, bar);
  } catch (const Error& error) {
    context_.require_uncancelled();
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

void Tuner::challenge(const Candidate& candidate, const CompiledCandidate& compiled, double seconds,
                      const Bar& bar) {
  const Turns turns = judge_->compare(
      compiled, seconds, best_->compiled ? &*best_->compiled : nullptr, best_->seconds);
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
         language::kernel_file_text(language::decode_schedule(best_->compiled->schedule, kernel),
                                    kernel.definition, language::printable_names(kernel)))
      result.add_schedule(step);
  }
  result.set_record(best_->record);
  result.set_trials(measured_);
  result.set_failures(failures_);
  result.set_end(end);
  result.set_read_for(key_.read_for());
  result.set_problem(parts_.records.problem());
  observer_(event);
}

}  // namespace kiln::server
