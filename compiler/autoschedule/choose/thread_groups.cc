// Stages that are computed in the loop of the one that reads them last.
#include "compiler/autoschedule/choose/thread_groups.h"

#include <optional>
#include <set>

#include "compiler/autoschedule/templates/across_threads.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/row_threads.h"

namespace kiln::autoschedule {
namespace {

using schedule::Attach;

/// Rows that a block has for itself, or lines across them of which a thread has one each.
std::optional<Group> group_of(const Chooser& chooser, StageId last) {
  const StageGraph& graph = chooser.graph;
  if (const auto rows = row_threads_of(chooser, last)) {
    return Group{
        {{.name = "a block a row",
          .parameters = {},
          .write = [&graph, rows = *rows](StepWriter& steps,
                                          const Values&) { bind_rows(graph, steps, rows); }}},
        joined({rows->reductions, rows->inlined})};
  }
  if (const auto lines = across_threads_of(chooser, last)) {
    return Group{{{.name = "a thread a line",
                   .parameters = {block_parameter()},
                   .write =
                       [&graph, lines = *lines](StepWriter& steps, const Values& values) {
                         bind_across(graph, steps, lines, values.get("block", 256));
                       }}},
                 joined({lines->reductions, lines->inlined})};
  }
  return std::nullopt;
}

}  // namespace

bool has_group(const Chooser& chooser, StageId stage) {
  return group_of(chooser, stage).has_value();
}

std::map<StageId, Group> groups_for_threads(const Chooser& chooser,
                                            const std::vector<bool>& touched,
                                            const std::map<StageId, Tiles>& tiles) {
  const StageGraph& graph = chooser.graph;
  std::map<StageId, Group> found;
  std::set<StageId> taken;
  for (const auto& [id, of_stage] : tiles)
    if (of_stage.epilogue) taken.insert(of_stage.epilogue->stage);
  for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
    const Stage& stage = graph[*id];
    const bool is_root = stage.is_live && stage.kind == Stage::Kind::Compute &&
                         stage.attach.kind == Attach::Kind::Root && !stage.part_of &&
                         !stage.role.is_init && stage.role.base_of < 0 && stage.role.cell_of < 0;
    if (!is_root || touched[*id] || taken.contains(*id)) continue;
    std::optional<Group> group = group_of(chooser, *id);
    if (!group) continue;
    taken.insert(group->members.begin(), group->members.end());
    found.emplace(*id, *std::move(group));
  }
  return found;
}

}  // namespace kiln::autoschedule
