#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/engine/compile_service.h"
#include "server/programs/plan_store.h"
#include "server/task_queue.h"

namespace kiln::server {

/// A program for one set of shapes, ready to run.
struct CompiledPlan {
  program::Plan plan;                                       // as CheckedPlan has it
  std::vector<std::shared_ptr<const KernelEntry>> kernels;  // in the order of the plan
  std::vector<BoundCall> bound;
  std::vector<v1::CacheLevel> levels;
  double seconds = 0;  // from the first question to the last kernel
};

using PlanDone = std::function<void(Outcome<std::shared_ptr<const CompiledPlan>>)>;

/// Of which parts of the service plans are made.
struct PlannerParts {
  std::function<CompileSetting()> setting;
  std::function<void(CheckedRequest, std::shared_ptr<Call>, CompileDone)> compile;
  std::vector<CacheLevel*> levels;  // that plans outlive the daemon in
  Counters& counters;
};

/// Plans of programs, the last used ones, and the compiles they need.
class Planner {
 public:
  explicit Planner(PlannerParts parts, size_t limit = 64)
      : parts_(std::move(parts)), limit_(limit), store_(parts_.levels, parts_.counters) {}

  /// `done` is told once, perhaps before this returns.
  void plan(const std::shared_ptr<const ProgramEntry>& program, const program::GivenTypes& given,
            std::shared_ptr<Call> call, PlanDone done);

  /// Does what was begun; nothing may be asked after it.
  void stop() { work_.stop(); }

 private:
  /// A plan whose kernels are being compiled.
  struct Flight {
    std::mutex mutex;
    std::shared_ptr<const ProgramEntry> program;
    std::shared_ptr<Call> call;
    std::shared_ptr<CompiledPlan> plan;
    std::vector<CheckedRequest> requests;  // by kernel
    std::string form;
    std::string packed;  // what caches are to keep; empty: they have it
    size_t missing = 0;  // kernels that have not come
    size_t next = 0;     // the first that has not been asked for
    bool asking = false;
    std::optional<Error> error;
    Clock::time_point begun = Clock::now();
    PlanDone done;
    std::string key;
  };

  std::shared_ptr<const CompiledPlan> find(const std::string& key);
  void keep(const std::string& key, std::shared_ptr<const CompiledPlan> plan);
  /// All but the kernels: from a cache, or made anew.
  void prepare(Flight& flight, const program::GivenTypes& given);
  void ask(const std::shared_ptr<Flight>& flight);
  void take(const std::shared_ptr<Flight>& flight, size_t kernel, Outcome<CompileResult> outcome);

  const PlannerParts parts_;
  const size_t limit_;
  PlanStore store_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<const CompiledPlan>>> plans_;  // last used first
  TaskQueue work_;  // last: its thread uses the above
};

}  // namespace kiln::server
