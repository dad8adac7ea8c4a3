// Candidates on their way through the compilers: each is a task as any other, so that a compiler
// that dies of one costs that one.
#include "server/tuning/candidate_compiler.h"

#include "runtime/core/called.h"
#include "server/tuning/answer.h"

namespace kiln::server {

namespace {

constexpr auto kCompileLimit = std::chrono::seconds(20);

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

std::vector<StageSketches> CandidateCompiler::space() const {
  const CheckedRequest& request = search_.task.request;
  internal::ToWorker message;
  *message.mutable_sketches()->mutable_request() = request.wire;
  std::vector<StageSketches> space =
      from_wire(ask(std::move(message), request.key, Clock::duration::max()).sketches());
  if (space.empty()) {
    fail(ErrorKind::Unsupported, "NOTHING_TO_TUNE",
         "{} leaves nothing open: every stage has steps, or one way to run; tune measures "
         "schedules for stages without steps",
         called(request.names.kernel));
  }
  return space;
}

CompiledCandidate CandidateCompiler::compile(
    const std::optional<Candidate>& candidate,
    const std::optional<std::vector<int64_t>>& read_at) const {
  const CheckedRequest& request = search_.task.request;
  internal::ToWorker message;
  internal::Compile& task = *message.mutable_compile();
  *task.mutable_request() = request.wire;
  if (candidate) *task.mutable_candidate() = to_wire(*candidate);
  if (read_at) task.mutable_read_at()->mutable_values()->Add(read_at->begin(), read_at->end());
  const std::string key =
      candidate ? fmt::format("tuning {} {}", request.key, key_of(*candidate)) : request.key;
  internal::FromWorker reply = ask(std::move(message), key, kCompileLimit);
  internal::Compiled& compiled = *reply.mutable_compiled();
  if (read_at)
    return {nullptr, std::move(*compiled.mutable_schedule()), compiled.predicted_seconds()};
  KernelEntry entry;
  entry.key = key;
  entry.compiled = cached_artifact("", std::move(*compiled.mutable_artifact()));
  entry.names = request.names;
  return {search_.parts.kernels.number(std::move(entry)), std::move(*compiled.mutable_schedule()),
          0};
}

internal::FromWorker CandidateCompiler::ask(internal::ToWorker message, std::string key,
                                            Clock::duration limit) const {
  CompilerTask task;
  task.message = std::move(message);
  task.kernel = search_.task.request.names.kernel;
  task.key = std::move(key);
  task.caller = search_.task.caller;
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  task.wanted = [gone] { return !*gone; };
  Answer<internal::FromWorker> answer;
  task.done = answer.taker();
  search_.parts.compilers.submit(std::move(task));
  const Clock::time_point begun = Clock::now();
  auto outcome = answer.wait([&] { return search_.cancelled || Clock::now() - begun > limit; });
  *gone = true;
  search_.require_uncancelled();
  if (!outcome) {
    fail(ErrorKind::ResourceExhausted, "COMPILE_TIME", "it took longer than {:.0f} s to compile",
         std::chrono::duration<double>(limit).count());
  }
  if (const Error* error = std::get_if<Error>(&*outcome)) throw *error;
  return std::get<internal::FromWorker>(*std::move(outcome));
}

}  // namespace kiln::server
