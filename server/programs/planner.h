#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/program/plan.h"
#include "server/engine/compile_service.h"
#include "server/programs/program_table.h"

namespace kiln::server {

/// A program for one set of shapes, ready to run.
struct CompiledPlan {
  program::Plan plan;
  std::vector<std::shared_ptr<const KernelEntry>> kernels;  // in the order of the plan
  std::vector<BoundCall> bound;
  std::vector<v1::CacheLevel> levels;
  double seconds = 0;  // from the first question to the last kernel
};

using PlanDone = std::function<void(Outcome<std::shared_ptr<const CompiledPlan>>)>;

/// Plans of programs, the last used ones, and the compiles they need.
class Planner {
 public:
  explicit Planner(CompileCall compile, size_t limit = 64)
      : compile_(std::move(compile)), limit_(limit) {}

  /// `done` is told once, perhaps before this returns; wrong shapes are thrown.
  void plan(const std::shared_ptr<const ProgramEntry>& program, const program::GivenTypes& given,
            std::shared_ptr<Call> call, PlanDone done);

 private:
  /// A plan whose kernels are being compiled.
  struct Flight {
    std::mutex mutex;
    std::shared_ptr<const ProgramEntry> program;
    std::shared_ptr<Call> call;
    std::shared_ptr<CompiledPlan> plan;
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
  void ask(const std::shared_ptr<Flight>& flight);
  void take(const std::shared_ptr<Flight>& flight, size_t kernel, Outcome<CompileResult> outcome);

  const CompileCall compile_;
  const size_t limit_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<const CompiledPlan>>> plans_;  // last used first
};

}  // namespace kiln::server
