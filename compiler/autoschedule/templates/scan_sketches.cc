// How a recurrence runs: columns that do not depend on each other are vectors and blocks, each of
// which goes through all of time before the next.
//
//   S[t, x] = S[t - 1, x] + X[t, x]  ->  for x_block (parallel): for t: for x in vectors
//
// With time innermost in memory some rows run side by side instead, so that the latency of one
// addition hides behind the others. Scans whose columns mix have each stage of their cell
// scheduled.
#include <algorithm>

#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {
namespace {

// Four registers of 64 bytes or eight of 32, whose chains of additions overlap, and which are
// stored meanwhile. With half, running sums down 2000 x 64 take 23 us on a Zen 3 instead of 14.
constexpr int64_t kScanColumnBytes = 256;
// Rows whose running sums are computed side by side, as many as an addition takes cycles, so that
// one need not wait for the other. A row may be a power of two bytes long: more of such rows would
// be conflict misses of L1.
constexpr int64_t kScanRows = 4;
/// Whether one step of a stage inside a scan is worth several cores: they are woken at each.
bool is_worth_waking(const Chooser& chooser, StageId stage) {
  return chooser.graph[stage].is_reduction() &&
         stage_cycles(chooser, stage).value_or(0) >= chooser.machine.wake_cycles;
}

/// Whether columns go through time in a loop that cores share: all of them together are worth it,
/// or it costs nothing.
bool shares_columns(const Chooser& chooser, StageId scan) {
  const StageGraph& graph = chooser.graph;
  const StageId id = graph[scan].as_scan.update[0].stage;
  const Stage& update = graph[id];
  const std::optional<int64_t> steps = constant_extent(graph, graph[scan].as_scan.time);
  const std::optional<double> cycles = stage_cycles(chooser, id, steps.value_or(1));
  if (!steps || !cycles) return true;
  if (has_time_last(update)) {
    // Along a row each element waits for the one before, some rows side by side. In a loop of one
    // core each step goes through all rows, and has a line of the cache for each element.
    constexpr double kLinesAgain = 4;
    const double chain = chooser.machine.latency / kScanRows;
    const auto elements = static_cast<double>(*steps * constant_work(graph, id).value_or(0));
    return kLinesAgain * std::max(*cycles, chain * elements) >= chooser.machine.wake_cycles;
  }
  // A single vector has no loop that could be shared; what one step leaves stays in registers.
  const std::vector<AxisId> columns = columns_of(update);
  const int64_t lanes = kScanColumnBytes / size_of(update.types[0]);
  const bool is_single =
      columns.size() == 1 && constant_extent(graph, columns[0]).value_or(lanes + 1) <= lanes;
  return is_single || *cycles >= chooser.machine.wake_cycles;
}

/// The stages of a scan's cell and inits that have loops of their own.
struct ScanNests {
  std::vector<StageId> nests;
  bool simple = false;  // columns that have nothing to do with each other, without reductions
};

ScanNests nests_of(const StageGraph& graph, StageId scan) {
  const auto is_named = [&](StageId id) {
    return std::ranges::find(graph.stage_of_id, id) != graph.stage_of_id.end();
  };
  ScanNests found{.nests = {}, .simple = has_independent_columns(graph, scan)};
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    const bool is_init = stage.role.is_init && stage.role.init_of == scan;
    if (!stage.is_live || (!is_init && stage.role.cell_of != static_cast<int>(scan))) continue;
    if (stage.kind != Stage::Kind::Compute || stage.attach.kind == schedule::Attach::Kind::Inline) {
      continue;
    }
    found.simple = found.simple && is_named(id) && !stage.is_reduction() && stage.data.size() > 1 &&
                   !has_indirect_reads(stage);
    if (is_named(id) && stage.data.size() > 1) found.nests.push_back(id);
  }
  return found;
}

void write_columns(const StageGraph& graph, const std::vector<StageId>& nests, StepWriter& steps,
                   const Values& values) {
  for (const StageId id : nests) {
    const Stage& stage = graph[id];
    std::vector<AxisId> outer = columns_of(stage);
    const AxisId last = outer.back();
    if (has_time_last(stage)) {
      const std::optional<int64_t> extent = constant_extent(graph, last);
      if (const int64_t rows = values.get("rows", 1); rows > 1 && extent.value_or(rows) >= rows) {
        const auto [groups, row] = steps.split(id, last, rows);
        steps.unroll(id, row);
        outer.back() = groups;
      }
    } else {
      const std::optional<int64_t> factor =
          vector_factor(graph, id, last, values.get("bytes", kScanColumnBytes));
      if (factor) {
        AxisId columns = last;
        if (const int64_t block = values.get("columns", 0); block > *factor) {
          const auto [blocks, column] = steps.split(id, last, block);
          outer.back() = blocks;
          columns = column;
        }
        const auto [tiles, lanes] = steps.split(id, columns, *factor);
        steps.vectorize(id, lanes);
        if (columns == last) outer.back() = tiles;
      }
      if (!factor || outer.size() > 1) outer.pop_back();
    }
    // All nests of a scan must agree, so the work of its update decides for all.
    if (values.get("parallel", 0) != 0 && !outer.empty()) steps.parallel(id, outer[0]);
  }
}

/// The sketch that is taken unmeasured, for each stage inside of a scan.
Sketch cells_sketch(const Chooser& chooser, const std::vector<StageId>& nests) {
  std::vector<Sketch> parts;
  for (const StageId id : nests) {
    std::vector<Sketch> sketches = compute_sketches(chooser, id, is_worth_waking(chooser, id));
    if (!sketches.empty()) parts.push_back(std::move(sketches[0]));
  }
  return {.name = "cells", .parameters = {}, .write = [parts](StepWriter& steps, const Values&) {
            for (const Sketch& part : parts)
              part.write(steps, Values(part.parameters, part.preferred()));
          }};
}

}  // namespace

std::vector<Sketch> scan_sketches(const Chooser& chooser, StageId scan) {
  const StageGraph& graph = chooser.graph;
  const ScanNests found = nests_of(graph, scan);
  if (!found.simple) return {cells_sketch(chooser, found.nests)};
  const Stage& update = graph[graph[scan].as_scan.update[0].stage];
  std::vector<Parameter> parameters = {{"bytes", {64, 128, 256, 512}, kScanColumnBytes},
                                       parallel_parameter(shares_columns(chooser, scan))};
  if (has_time_last(update)) {
    parameters.push_back({"rows", {1, 2, 4, 8, 16}, kScanRows});
  } else {
    const auto columns =
        columns_of_block(chooser, graph[scan].as_scan.update[0].stage, columns_of(update).back());
    const int64_t preferred = columns.value_or(1);
    // Columns of four bytes: a block of no more is the one vector.
    if (preferred > kScanColumnBytes / 4) {
      parameters.push_back({"columns", {preferred / 2, preferred, preferred * 2}, preferred});
    }
  }
  return {{.name = "columns through time",
           .parameters = std::move(parameters),
           .write = [&graph, nests = found.nests](StepWriter& steps, const Values& values) {
             write_columns(graph, nests, steps, values);
           }}};
}

}  // namespace kiln::autoschedule
