#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "server/engine/device_call.h"
#include "server/programs/planner.h"
#include "server/tensors/arena_pool.h"

namespace kiln::server {

/// Memory by the value that lies in it.
using ValueSlices = std::map<program::ValueId, std::shared_ptr<Slice>>;

/// What constant kernels of plans have made of the parameters of a run, for the runs that follow.
/// It goes when somebody writes one of these parameters, or when one is gone.
class KeptValues {
 public:
  explicit KeptValues(size_t limit = 64) : limit_(limit) {}

  /// Parameters of a run that constant kernels read, as they are at this moment.
  class Sources {
   public:
    Sources(const CompiledPlan& plan, const ValueSlices& given);
    /// Whether they are what they were, and those of a run on `given`.
    bool are_in(const ValueSlices& given) const;
    bool are_unchanged() const;

   private:
    struct Source {
      std::weak_ptr<Slice> slice;
      uint64_t version = 0;
    };
    std::map<program::ValueId, Source> sources_;
  };

  /// Empty: nobody has made them, or they are stale.
  ValueSlices find(const std::shared_ptr<const CompiledPlan>& plan, const ValueSlices& given);
  void keep(const std::shared_ptr<const CompiledPlan>& plan, Sources sources, ValueSlices made);

 private:
  struct Entry {
    std::weak_ptr<const CompiledPlan> plan;
    Sources sources;
    ValueSlices made;
  };
  void drop_stale();

  const size_t limit_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // last used first
};

/// Whether a step of the plan reads what constant kernels make.
bool has_constants(const CompiledPlan& plan);

/// Memory for what constant kernels make.
ValueSlices allocate_constants(const CompiledPlan& plan, ArenaPool& arenas);

/// The constant kernels of a plan as a step of their own, on these parameters and that memory.
std::shared_ptr<const ProgramSteps> constant_steps(const std::string& name,
                                                   const CompiledPlan& plan,
                                                   const ValueSlices& slices);

}  // namespace kiln::server
