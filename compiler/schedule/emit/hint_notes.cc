// Says of each hint that has no effect on this target why: one that is passed over in silence
// would be taken for one that works.
#include "compiler/schedule/emit/hint_notes.h"

#include <algorithm>

#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {
namespace {

class HintNotes {
 public:
  HintNotes(const StageGraph& graph, const NestPlan& plan, TargetKind target,
            std::vector<std::string>& notes)
      : graph_(graph), plan_(plan), has_threads_(traits_of(target).has_threads), notes_(notes) {}

  void operator()() const {
    notes_.insert(notes_.end(), graph_.notes.begin(), graph_.notes.end());
    for (const StageId id : graph_.order) {
      if (!graph_[id].is_live) continue;
      if (graph_[id].memory.doubled_by >= 0) note_single_copy(id);
      if (graph_[id].memory.swizzle != 0) note_plain_memory(id);
      for (const ir::ThreadAxis thread : graph_[id].as_scan.env_threads)
        note_env_thread(id, thread);
    }
    if (has_threads_) return;
    for (const Pipeline& pipeline : graph_.pipelines)
      note_pipeline(pipeline);
  }

 private:
  const std::string& axis(AxisId id) const { return graph_.axes[id].name; }

  void note_single_copy(StageId id) const {
    if (plan_.storage.at({id, 0}).copy) return;
    const Attach& attach = graph_[id].attach;
    const Nest& nest = plan_.nests[attach.stage];
    const bool runs_once = nest.loops[loop_of_axis(nest, attach.axis)].is_elided;
    notes_.push_back(fmt::format(
        "{} has its memory once: {}", graph_[id].name,
        runs_once ? axis(attach.axis) + " runs once"
                  : fmt::format("the iterations of {} run at once, each with memory of its own",
                                axis(attach.axis))));
  }

  void note_plain_memory(StageId id) const {
    const auto storage = plan_.storage.find({id, 0});
    // What is inline has none.
    if (storage == plan_.storage.end() || storage->second.buffer->swizzle != 0) return;
    notes_.push_back(fmt::format("{} lies as it is: only the shared memory of a GPU has banks",
                                 graph_[id].name));
  }

  void note_env_thread(StageId id, ir::ThreadAxis thread) const {
    const std::vector<Loop>& loops = plan_.nests[id].loops;
    const bool is_around = std::ranges::any_of(loops, [&](const Loop& loop) {
      return loop.is_shared && graph_.axes[loop.axis].thread == thread;
    });
    notes_.push_back(
        is_around
            ? fmt::format("{} stands around the whole of {}", ir::name_of(thread), graph_[id].name)
            : fmt::format("{} starts anew at each step of {}: its initial steps and its "
                          "update are bound differently, or one thread reads what another "
                          "computed",
                          ir::name_of(thread), graph_[id].name));
  }

  void note_pipeline(const Pipeline& pipeline) const {
    if (!graph_[pipeline.stage].is_live) return;
    notes_.push_back(
        fmt::format("the {} stages of {} of {} run one after the other: a CPU makes no copies in "
                    "the background",
                    pipeline.stages, axis(pipeline.axis), graph_[pipeline.stage].name));
  }

  const StageGraph& graph_;
  const NestPlan& plan_;
  const bool has_threads_;
  std::vector<std::string>& notes_;
};

}  // namespace

void add_hint_notes(const StageGraph& graph, const NestPlan& plan, TargetKind target,
                    std::vector<std::string>& notes) {
  HintNotes(graph, plan, target, notes)();
}

}  // namespace kiln::schedule
