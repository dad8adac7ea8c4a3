#pragma once

#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/kernel.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/emit/thread_reduction.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// Which statements of a stage a walk through its loops makes. A reduction is one walk down to its
/// first reduction loop, then two: the start values, over the data loops that are left, and the
/// update.
enum class Part : uint8_t { Whole, Init, Update };

/// One walk through the loops of a nest.
struct Walk {
  StageId stage;
  const Nest& nest;
  Part part = Part::Whole;
  ir::Substitution renamed = {};  // loops that a walk of Part::Init makes anew
  // Of Part::Update: whose parts the threads add up, and whether that is inside a thread.
  const ThreadReduction* threads = nullptr;
  bool in_thread = false;
};

/// What stands innermost in the loops of a stage: its stores, with the checks of what they read.
///
/// What the loops around say is in `facts`, which grow and shrink with them. Rows of run-time
/// checks are added to `checks`.
class Innermost {
 public:
  Innermost(const StageGraph& graph, const NestPlan& plan, TargetKind target,
            analysis::Facts& facts, std::vector<RuntimeCheck>& checks)
      : graph_(graph), plan_(plan), target_(target), facts_(facts), checks_(checks) {}

  /// One iteration of all loops.
  ir::Stmt iteration(const Walk& walk);
  /// The result of threads that reduce a part each, where the guards of its place allow.
  ir::Stmt result_of_threads(const Walk& walk, const ThreadReduction& threads);
  /// A bound of a loop or a guard in terms of loops, with its reads as loads. Checks go to
  /// `before`.
  ir::Expr lowered(const Walk& walk, const ir::Expr& bound, std::vector<ir::Stmt>& before);

 private:
  /// The axes of a stage in terms of its loops. Checks go to `before`.
  ir::Substitution values_of(const Walk& walk, std::vector<ir::Stmt>& before);
  ir::Stmt scatter(const Walk& walk, const ir::Substitution& values);
  std::vector<ir::Expr> store_indices(const Walk& walk, const Storage& storage,
                                      const ir::Substitution& values) const;
  /// Checks go to `before`: all outputs read first.
  ir::Stmt store(const Walk& walk, uint32_t output, const ir::Expr& body,
                 const ir::Substitution& values, std::vector<ir::Stmt>& before);
  ir::Expr read(const Walk& walk, const ir::Expr& body, const ir::Substitution& values,
                std::vector<ir::Stmt>& before);
  /// One step of the reduction whose first value is `output`. Where it has a condition, nothing is
  /// read unless that holds.
  ir::Stmt update(const Walk& walk, uint32_t output, const ir::Substitution& values,
                  std::vector<ir::Stmt>& before);
  ir::Stmt combined(const Walk& walk, uint32_t output, const ir::Substitution& values,
                    std::vector<ir::Stmt>& before);

  const StageGraph& graph_;
  const NestPlan& plan_;
  const TargetKind target_;
  analysis::Facts& facts_;
  std::vector<RuntimeCheck>& checks_;
};

}  // namespace kiln::schedule
