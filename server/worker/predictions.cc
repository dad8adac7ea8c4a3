// Predicts the schedules that a kernel may have: the one that is taken unmeasured, each other
// sketch with the values it prefers, and that one with a value changed.
#include "server/worker/predictions.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/backends.h"
#include "compiler/ir/vector_unit.h"
#include "compiler/language/text/text_names.h"
#include "compiler/lower.h"
#include "compiler/predict/predict.h"
#include "compiler/predict/predict_gpu.h"
#include "compiler/predict/predict_tiles.h"
#include "compiler/tile_code.h"
#include "compiler/tile_gain.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/error.h"
#include "runtime/cpu/host_speed.h"
#include "server/worker/compiler_input.h"

namespace kiln::server {

namespace {

using autoschedule::Candidate;

// Each is lowered, which takes milliseconds.
constexpr size_t kMostCandidates = 64;

/// Each sketch, and the one that is taken with a value changed.
std::vector<Candidate> candidates_of(const SketchSpace& space) {
  std::vector<Candidate> candidates = autoschedule::each_sketch(space.stages());
  const Candidate taken = space.preferred();
  for (size_t s = 0; s < space.stages().size(); ++s) {
    const std::vector<autoschedule::Parameter>& parameters =
        space.stages()[s].sketches[0].parameters;
    for (size_t p = 0; p < parameters.size(); ++p) {
      for (const int64_t value : parameters[p].values) {
        if (value == taken.stages[s].values[p]) continue;
        candidates.emplace_back(taken).stages[s].values[p] = value;
      }
    }
  }
  if (candidates.size() > kMostCandidates) candidates.resize(kMostCandidates);
  return candidates;
}

HostSpeed host_speed_of(const internal::HostSpeed& said) {
  return {.gigahertz = said.gigahertz(),
          .from_l2 = said.from_l2(),
          .from_l3 = said.from_l3(),
          .from_memory = said.from_memory(),
          .from_memory_of_all = said.from_memory_of_all(),
          .start_seconds = said.start_seconds(),
          .l3_bytes = said.l3_bytes()};
}

void say(const HostSpeed& speed, internal::HostSpeed& said) {
  said.set_gigahertz(speed.gigahertz);
  said.set_from_l2(speed.from_l2);
  said.set_from_l3(speed.from_l3);
  said.set_from_memory(speed.from_memory);
  said.set_from_memory_of_all(speed.from_memory_of_all);
  said.set_start_seconds(speed.start_seconds);
  said.set_l3_bytes(speed.l3_bytes);
}

/// What the task says, or, where that was not measured often enough to be sure that nothing
/// disturbed it, the best of that and of what is measured now, which is told.
HostSpeed host_speed_for(const internal::Predict& task, int threads, internal::Predicted& told) {
  constexpr uint32_t kTurns = 3;
  const uint32_t turns = task.host_speed().turns();
  const HostSpeed said = host_speed_of(task.host_speed());
  if (turns >= kTurns) return said;
  const HostSpeed now = measure_host(threads);
  const HostSpeed best = turns > 0 ? best_of(said, now) : now;
  say(best, *told.mutable_measured());
  told.mutable_measured()->set_turns(turns + 1);
  return best;
}

/// Of this host measured, of another CPU as the table has it.
predict::Surroundings surroundings_of(const std::string& arch, const autoschedule::Machine& cpu,
                                      const internal::Predict& task, int threads_here,
                                      internal::Predicted& told) {
  if (without_cores(arch) != host_cpu()) {
    return {.from_l2 = cpu.from_l2,
            .from_l3 = cpu.from_l3,
            .from_memory = cpu.from_memory,
            .from_memory_of_all = cpu.from_memory_of_all,
            .l3_bytes = cpu.l3_bytes};
  }
  const HostSpeed host = host_speed_for(task, threads_here, told);
  const double hertz = host.gigahertz * 1e9;
  predict::Surroundings around{.gigahertz = host.gigahertz,
                               .from_l2 = host.from_l2 / hertz,
                               .from_l3 = host.from_l3 / hertz,
                               .from_memory = host.from_memory / hertz,
                               .from_memory_of_all = host.from_memory_of_all / hertz,
                               .l3_bytes = host.l3_bytes,
                               .start_cycles = host.start_seconds * hertz,
                               .source = "measured on this host"};
  if (around.l3_bytes == 0) around.l3_bytes = cpu.l3_bytes;
  return around;
}

std::string text_of(const predict::Surroundings& around, int threads) {
  constexpr int64_t kMiB = 1024 * 1024;
  return fmt::format(
      "{:.2f} GHz; bytes a cycle: L2 {:.0f}, L3 {:.1f}, memory {:.1f} for one core and {:.1f} for "
      "all; L3 {} MiB; {} thread{}, {:.1f} us to start them ({})",
      around.gigahertz, around.from_l2, around.from_l3, around.from_memory,
      around.from_memory_of_all, around.l3_bytes / kMiB, threads, threads == 1 ? "" : "s",
      around.start_cycles / around.gigahertz / 1e3, around.source);
}

/// Of the target of a request.
struct Predictor {
  Predictor(const internal::Predict& task, const Target& target, int threads, int threads_here,
            internal::Predicted& told)
      : sizes(task.sizes().begin(), task.sizes().end()) {
    const Backend* const backend = find_backend(target);
    if (backend == nullptr) {
      fail(ErrorKind::Unsupported, "PREDICT_TARGET",
           "times are predicted on CPUs and GPUs; what is interpreted is a thousand times slower");
    }
    if (!ir::is_only_planned(target.arch)) backend->check_arch(target);
    if (target.traits().has_threads) {
      const autoschedule::GpuMachine gpu = autoschedule::gpu_machine(target.arch);
      machine = autoschedule::text_of(gpu);
      surroundings = "one H200 has confirmed predictions so far, most to a quarter (docs/gpu.md)";
      predict = [this, gpu, arch = ir::gpu_arch(target.arch)](const ir::Kernel& loops) {
        return predict::predict_gpu(loops, sizes, gpu, arch);
      };
      predict_tiles = [this, gpu](const tile::Sequence& sequence) {
        return predict::predict_tiles(sequence, sizes, gpu);
      };
      return;
    }
    const autoschedule::Machine cpu = autoschedule::machine_of(target.arch);
    const predict::Surroundings around =
        surroundings_of(target.arch, cpu, task, threads_here, told);
    machine = autoschedule::text_of(cpu);
    surroundings = text_of(around, threads);
    predict = [this, cpu, around, threads](const ir::Kernel& loops) {
      return predict::predict(loops, sizes, cpu, around, threads);
    };
  }

  const std::vector<int64_t> sizes;  // of a call
  std::string machine;
  std::string surroundings;
  std::function<predict::Prediction(const ir::Kernel&)> predict;
  std::function<predict::Prediction(const tile::Sequence&)> predict_tiles;  // on a GPU
};

v1::PredictedSchedule& add(v1::PredictResponse& response, const std::string& name,
                           const predict::Prediction& prediction) {
  v1::PredictedSchedule& written = *response.add_schedules();
  written.set_name(name);
  written.set_seconds(prediction.seconds());
  for (const predict::Term& term : prediction.terms) {
    v1::PredictedTerm& told = *written.add_terms();
    told.set_name(std::string(term.name));
    told.set_seconds(prediction.in_seconds(term.cycles));
    told.set_on_top(term.on_top);
  }
  return written;
}

}  // namespace

void predict_task(const internal::Predict& task, internal::Predicted& predicted, bool has_tiles,
                  int threads) {
  CompilerInput input(task.request());
  // Schedules for so many cores, not for those of this host.
  if (task.threads() > 0 && !input.target.traits().has_threads)
    input.target.arch =
        with_cores(without_cores(input.target.arch), static_cast<int>(task.threads()));
  const Predictor predictor(task, input.target,
                            task.threads() > 0 ? static_cast<int>(task.threads()) : threads,
                            threads, predicted);
  v1::PredictResponse& response = *predicted.mutable_response();
  response.set_machine(predictor.machine);
  response.set_surroundings(predictor.surroundings);
  const SketchSpace space = input.space();
  std::vector<TileCandidate> tiles;
  if (has_tiles && input.target.traits().has_threads)
    tiles = tile_candidates(input.kernel, input.target, input.options, predictor.sizes);
  const auto add_tiles = [&] {
    for (const TileCandidate& each : std::exchange(tiles, {}))
      add(response, fmt::format("on tiles: {}", each.what), predictor.predict_tiles(each.sequence));
  };
  LoweringObserver observer;
  for (const Candidate& candidate : candidates_of(space)) {
    const language::Schedule schedule = space.schedule(candidate);
    const ir::Kernel loops =
        lower(input.kernel, schedule, input.target, input.options, Layout::Compact, observer);
    // What is taken comes first.
    const bool comes_first =
        response.schedules().empty() && !tiles.empty() &&
        where_tiles_pay(tiles[0].sequence, loops, input.target.arch).evaluate(predictor.sizes) == 0;
    if (!comes_first) add_tiles();
    const std::string name = autoschedule::text_of(candidate, space.stages(), space.stage_names());
    v1::PredictedSchedule& written =
        add(response, name.empty() ? "as written" : name, predictor.predict(loops));
    for (const std::string& step : language::kernel_file_text(
             schedule, input.kernel.definition, language::printable_names(input.kernel)))
      written.add_steps(step);
    add_tiles();
  }
  std::stable_sort(response.mutable_schedules()->begin() + 1, response.mutable_schedules()->end(),
                   [](const auto& a, const auto& b) { return a.seconds() < b.seconds(); });
}

}  // namespace kiln::server
