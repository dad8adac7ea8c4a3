// Producers go into the loops of what reads them, from the last stage backwards.
//
//   E = exp(X - M); S = sum(E); Y = E / S     M, E and S at Y's loop over rows: a row stays in L1
//
// Loop fusion as Halide's autoscheduler groups stages (Mullapudi et al., SIGGRAPH 2016), without
// its cost model: nothing is ever recomputed, so whatever may move gains.
#include "compiler/autoschedule/choose/fusion.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/autoschedule/choose/inline_elements.h"
#include "compiler/autoschedule/recognise/inner_reductions.h"
#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/autoschedule/templates/short_rows.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

class Fusion {
 public:
  Fusion(const language::Kernel& kernel, const CompileOptions& options, const Machine& machine)
      : kernel_(kernel), options_(options), machine_(machine) {}

  // Backwards: a stage that reads last has the loops over rows, and takes all that only it needs.
  OpenSchedule run(OpenSchedule given) {
    given = with_inline_elements(kernel_, std::move(given), Reads::Once);
    const Parts parts = add_parts_of_short_rows(given);
    const StageGraph graph = graph_of(kernel_, given);
    StepWriter steps(std::move(given.schedule), graph);
    const Chooser chooser{graph, options_, machine_};
    std::vector<bool> done(graph.stages.size(), false);
    for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
      if (done[*id] || !may_be_last(graph, *id)) continue;
      const std::optional<RowStages> rows = rows_for(chooser, *id, parts);
      if (!rows) continue;
      write(chooser, steps, *rows);
      for (const StageId member : rows->members)
        done[member] = true;
    }
    given.schedule = std::move(steps).schedule();
    return given;
  }

 private:
  /// Reductions taken out of expressions, and the dimensions of the rows of the stages that read
  /// them last.
  struct Parts {
    std::vector<StageId> stages;
    std::unordered_map<StageId, size_t> dimensions_of;
  };

  static bool may_be_last(const StageGraph& graph, StageId id) {
    return is_free(graph, id) && !is_product(graph, id) && !has_dependent_extents(graph, id) &&
           !has_indirect_reads(graph[id]);
  }

  /// The most rows there are: the least is kept of each.
  static std::optional<RowStages> rows_for(const Chooser& chooser, StageId last,
                                           const Parts& parts) {
    const StageGraph& graph = chooser.graph;
    const auto known = parts.dimensions_of.find(last);
    if (known != parts.dimensions_of.end())
      return rows_of(graph, last, known->second, parts.stages);
    for (size_t dimensions = graph[last].data.size(); dimensions > 0; --dimensions) {
      if (!has_rows(graph, last, dimensions) || has_few_rows(graph, last, dimensions)) continue;
      RowStages rows = rows_of(graph, last, dimensions);
      if (!rows.members.empty() && keeps_its_loop(chooser, rows)) return rows;
    }
    return std::nullopt;
  }

  /// Whether the loop that the others go into is still there when the last stage has its vectors:
  /// a reduction over columns, sum[i](X[i, j]), splits its loop over j.
  static bool keeps_its_loop(const Chooser& chooser, const RowStages& rows) {
    const Stage& last = chooser.graph[rows.last];
    return rows.dimensions < last.data.size() || !last.is_reduction() ||
           !has_vectors_along_data(chooser.graph, rows.last) || are_short(chooser, rows);
  }

  /// A reduction inside of an expression has vectors along itself at most. Where that makes short
  /// rows, it becomes a stage, whose vectors can be across rows.
  Parts add_parts_of_short_rows(OpenSchedule& given) const {
    Parts parts;
    StageGraph graph = graph_of(kernel_, given);
    const std::vector<StageId> order = graph.order;
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (!may_be_last(graph, *id)) continue;
      for (size_t dimensions = graph[*id].data.size(); dimensions > 0; --dimensions) {
        const RowStages rows = rows_of(graph, *id, dimensions, parts.stages);
        OpenSchedule with = given;
        std::vector<StageId> stages = parts.stages;
        if (add_parts(graph, rows, with, stages)) {
          StageGraph changed = graph_of(kernel_, with);
          const RowStages all = rows_of(changed, *id, dimensions, stages);
          if (all.members.size() == rows.members.size() + stages.size() - parts.stages.size() &&
              are_short({changed, options_, machine_}, all)) {
            given = std::move(with);
            graph = std::move(changed);
            parts.stages = std::move(stages);
            parts.dimensions_of.emplace(*id, dimensions);
            break;
          }
        }
        if (has_rows(graph, *id, dimensions) && !rows.members.empty()) break;
      }
    }
    return parts;
  }

  /// Whether there are reductions inside of the stages, all of which became stages themselves.
  static bool add_parts(const StageGraph& graph, const RowStages& rows, OpenSchedule& with,
                        std::vector<StageId>& parts) {
    std::vector<StageId> stages = rows.members;
    stages.push_back(rows.last);
    const size_t before = parts.size();
    for (const StageId stage : stages) {
      for (const StageId part : reductions_inside(graph, stage)) {
        std::optional<language::Step> step = reduction_stage_of(graph, part);
        if (!step) return false;
        with.schedule.steps.push_back(*std::move(step));
        parts.push_back(part);
      }
    }
    return parts.size() > before;
  }

  static void write(const Chooser& chooser, StepWriter& steps, const RowStages& rows) {
    const auto& [members, last, dimensions] = rows;
    std::vector<AxisId> loops = chooser.graph[last].data;
    loops.resize(dimensions);
    if (are_short(chooser, rows)) {
      loops.back() = write_short_rows(chooser, steps, rows);
    } else {
      for (const StageId member : members)
        schedule_row(chooser, steps, member, dimensions);
      schedule_row(chooser, steps, last, dimensions);
      for (const StageId member : members)
        steps.compute_at(member, last, loops.back());
    }
    std::vector<StageId> all = members;
    all.push_back(last);
    if (!is_worth_sharing(chooser, all)) return;
    for (const AxisId loop : loops)
      steps.parallel(last, loop);
  }

  const language::Kernel& kernel_;
  const CompileOptions& options_;
  const Machine machine_;
};

}  // namespace

OpenSchedule fuse_stages(const language::Kernel& kernel, OpenSchedule given,
                         const CompileOptions& options, const Machine& machine) {
  return Fusion(kernel, options, machine).run(std::move(given));
}

}  // namespace kiln::autoschedule
