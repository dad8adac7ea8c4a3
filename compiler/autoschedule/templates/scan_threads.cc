// Scans on a GPU. A thread has a column, which it goes through step by step; of a running sum that
// has so few columns that threads would wait for memory, steps are in parts that run at once.
//
//   S[t] = S[t - 1] + X[t], t < 1048576  ->  pragma(S.idx, scan_in_parts, 512)
//
// What is compared: the loads that a thread waits for, one group of steps after the other, and
// memory, which parts read once more. Sums of floats are in parts where `fast` is asked for; their
// parts have one length then, so that all schedules have the same bits.
#include "compiler/autoschedule/templates/scan_threads.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/steps_at_once.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/running_scan.h"

namespace kiln::autoschedule {
namespace {

using schedule::Attach;

// Steps whose elements a thread has under way at once at least: along a row four vectors, as
// step_in_groups does it.
constexpr int64_t kStepsOfRow = 16;
constexpr int64_t kStepsOfColumn = 32;
// The same where parts are added up.
constexpr int64_t kStepsOfSums = 32;
constexpr double kAddCycles = 4;  // from one step to the next
// What a call is taken to bring where it brings the number of steps.
constexpr int64_t kUnknownSteps = 1 << 20;
constexpr int64_t kFewestSteps = 64;
constexpr int64_t kMostSteps = 1 << 16;
constexpr int64_t kMostColumnsOfBlock = 64;

/// Threads of a block that runs columns through time, which are mostly few: so many that there are
/// as many blocks as multiprocessors.
int64_t block_of_columns(const Chooser& chooser, StageId nest) {
  const std::optional<int64_t> columns =
      constant_extent_of(chooser.graph, columns_of(chooser.graph[nest]));
  if (!columns) return block_parameter().preferred;
  const int64_t multiprocessors = gpu_machine(chooser.arch).multiprocessors;
  int64_t threads = block_parameter().preferred;
  while (threads > ir::kWarp && *columns / threads < multiprocessors)
    threads /= 2;
  return threads;
}

/// What takes how long in a scan of one tensor, in cycles.
class ScanTimes {
 public:
  ScanTimes(const StageGraph& graph, const Stage& update, int64_t steps, int64_t columns,
            const GpuMachine& machine)
      : steps_(static_cast<double>(steps)),
        columns_(columns),
        fewest_(has_time_last(update) ? kStepsOfRow : kStepsOfColumn),
        bytes_(size_of(update.types[0])),
        launch_(kLaunchSeconds * machine.gigahertz * 1e9) {
    double read = 0;
    schedule::for_each_read(update.bodies[0], [&](const ir::TensorRead& each) {
      if (!graph.scan_output_of({each.stage, each.output}))
        read += static_cast<double>(size_of(each.type.element));
    });
    const double elements = steps_ * static_cast<double>(columns);
    const double rate = machine.memory_bytes * static_cast<double>(machine.multiprocessors);
    read_ = elements * read / rate;
    stored_ = elements * static_cast<double>(size_of(update.types[0])) / rate;
  }

  double whole() const {
    return launch_ + std::max(steps_ * wait_of(steps_at_once(1)), read_ + stored_);
  }

  /// In parts of `part` steps.
  double in_parts(int64_t part) const {
    const auto length = static_cast<double>(part);
    const double parts = steps_ / length;
    const double sums = std::max(length * wait_of(kStepsOfSums), read_);
    const double starts = parts * wait_of(steps_at_once(1));
    const double all = std::max(length * wait_of(steps_at_once(parts)), read_ + stored_);
    return 3 * launch_ + sums + starts + all;
  }

 private:
  /// Where time is in so many parts.
  int64_t steps_at_once(double parts) const {
    const auto threads = static_cast<int64_t>(static_cast<double>(columns_) * parts);
    return analysis::steps_at_once(fewest_, threads, bytes_, 1);
  }
  /// Of a step.
  static double wait_of(int64_t at_once) {
    return kLoadCycles / static_cast<double>(at_once) + kAddCycles;
  }

  const double steps_;
  const int64_t columns_;
  const int64_t fewest_;
  const int64_t bytes_;
  const double launch_;
  double read_ = 0;
  double stored_ = 0;
};

/// Lengths of parts in which a scan takes less time than as a whole, the best first; none where it
/// may not be in parts.
std::vector<int64_t> lengths_of_parts(const Chooser& chooser, StageId scan) {
  const StageGraph& graph = chooser.graph;
  const auto running = schedule::running_scan(graph, scan);
  if (!running || !schedule::may_regroup(*running, chooser.options) ||
      schedule::other_in_steps(graph, scan))
    return {};
  const Stage& update = graph[graph[scan].as_scan.update[0].stage];
  const std::optional<int64_t> columns = constant_extent_of(graph, columns_of(update));
  if (!columns || *columns == 0) return {};
  const std::optional<int64_t> steps = constant_extent(graph, graph[scan].as_scan.time);
  const ScanTimes times(graph, update, steps.value_or(kUnknownSteps), *columns,
                        gpu_machine(chooser.arch));
  std::vector<int64_t> lengths;
  for (int64_t length = kFewestSteps; length <= kMostSteps; length *= 2)
    if (times.in_parts(length) < times.whole()) lengths.push_back(length);
  std::ranges::stable_sort(lengths, {}, [&](int64_t each) { return times.in_parts(each); });
  return lengths;
}

/// Columns around time, which are bound alike in the init and in the update: neighbours side by
/// side, as many as a part of a block has. The parts get what is free.
void write_parts(const StageGraph& graph, StepWriter& steps, StageId scan,
                 const std::vector<StageId>& nests, int64_t length) {
  for (const StageId nest : nests) {
    const std::vector<AxisId> columns = columns_of(graph[nest]);
    if (columns.empty()) continue;
    const int64_t count = constant_extent_of(graph, columns).value_or(kMostColumnsOfBlock);
    const AxisId all = steps.fuse(nest, columns);
    const auto [block, thread] = steps.split(nest, all, std::min(count, kMostColumnsOfBlock));
    steps.bind(nest, block, "blockIdx.y");
    steps.bind(nest, thread, "threadIdx.x");
  }
  steps.pragma(scan, graph[scan].as_scan.time, "scan_in_parts", length);
}

}  // namespace

std::vector<StageId> nests_of_scan(const StageGraph& graph, StageId scan) {
  std::vector<StageId> nests;
  for (const StageId id : graph.stage_of_id) {
    const Stage& stage = graph[id];
    const bool is_init = stage.role.is_init && stage.role.init_of == scan;
    const bool in_time = stage.attach.kind == Attach::Kind::At && stage.attach.stage == scan;
    if (stage.is_live && (is_init || in_time)) nests.push_back(id);
  }
  return nests;
}

std::vector<Sketch> scan_thread_sketches(const Chooser& chooser, StageId scan) {
  const StageGraph& graph = chooser.graph;
  const std::vector<StageId> nests = nests_of_scan(graph, scan);
  std::vector<Parameter> parameters = {block_parameter()};
  if (!nests.empty()) parameters[0].preferred = block_of_columns(chooser, nests.back());
  Sketch whole = {.name = "threads",
                  .parameters = std::move(parameters),
                  .write = [&graph, nests](StepWriter& steps, const Values& values) {
                    for (const StageId nest : nests)
                      bind_elements(graph, steps, nest, values.get("block", 256));
                  }};
  // An init and an update; a cell besides is no running sum by itself.
  std::vector<int64_t> lengths;
  if (nests.size() == 2) lengths = lengths_of_parts(chooser, scan);
  if (lengths.empty()) return {std::move(whole)};
  const int64_t best = lengths[0];
  const bool is_exact = !is_float(graph[scan].types[0]);
  if (!is_exact) lengths = {best};
  std::ranges::sort(lengths);
  Sketch parts = {.name = "parts of time at once",
                  .parameters = {{"steps", lengths, best}},
                  .write = [&graph, scan, nests, best](StepWriter& steps, const Values& values) {
                    write_parts(graph, steps, scan, nests, values.get("steps", best));
                  }};
  if (!is_exact) return {std::move(parts)};
  return {std::move(parts), std::move(whole)};
}

}  // namespace kiln::autoschedule
