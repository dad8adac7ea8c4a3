// Judges by predictions, which are the same each time: one turn tells as much as seven.
#include "runtime/core/called.h"
#include "server/engine/given_sizes.h"
#include "server/tuning/judge.h"

namespace kiln::server {

namespace {

class ReadingJudge : public Judge {
 public:
  explicit ReadingJudge(const SearchContext& search) : search_(search), compiler_(search) {}

  std::vector<int64_t> prepare() override {
    const TuningTask& task = search_.task;
    const std::string name = called(task.request.names.kernel);
    if (!task.wire.arguments().empty()) {
      fail(ErrorKind::InvalidArgument, "TUNE_INPUTS",
           "there is no {} here to run {} on, so that its schedules are judged by their code; give "
           "its sizes instead of inputs",
           task.request.wire.target().arch(), name);
    }
    sizes_ = given_sizes(task.request.names, {task.wire.sizes().begin(), task.wire.sizes().end()},
                         fmt::format("{} is tuned", name), "");
    return sizes_;
  }
  double begin() override {
    default_seconds_ = compiler_.compile(std::nullopt, sizes_).predicted_seconds;
    return default_seconds_;
  }

  CompiledCandidate compile(const Candidate& candidate) override {
    return compiler_.compile(candidate, sizes_);
  }
  bool is_default(const CompiledCandidate& candidate) const override {
    return candidate.predicted_seconds == default_seconds_;
  }
  double seconds_of(const CompiledCandidate& candidate, double) override {
    return candidate.predicted_seconds;
  }
  Turns compare(const CompiledCandidate&, double seconds, const CompiledCandidate*,
                double best_seconds) override {
    // As if they had been measured.
    return {.own = std::vector<double>(kTurns, seconds),
            .best = std::vector<double>(kTurns, best_seconds),
            .defaults = std::vector<double>(kTurns, default_seconds_)};
  }

 private:
  const SearchContext& search_;
  const CandidateCompiler compiler_;
  std::vector<int64_t> sizes_;
  double default_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Judge> reading_judge(const SearchContext& search) {
  return std::make_unique<ReadingJudge>(search);
}

}  // namespace kiln::server
