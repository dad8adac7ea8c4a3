// What each role can do, as functions: the border between the service and compiler, runtime and
// CUDA. Nothing here knows of sockets or queues.
#include "server/worker/roles.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/codegen/nvrtc.h"
#include "compiler/compile.h"
#include "compiler/target.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/gpu_name.h"
#include "runtime/cpu/cpu_topology.h"
#include "runtime/cpu/cpus.h"
#include "runtime/cuda/device_properties.h"
#include "server/errors.h"
#include "server/worker/compiler_input.h"
#include "server/worker/interpreted.h"
#include "server/worker/predictions.h"
#include "server/worker/readings.h"

namespace kiln::server {

namespace {

autoschedule::Candidate from_wire(const internal::Candidate& wire) {
  autoschedule::Candidate candidate;
  for (const internal::StageChoice& choice : wire.stages()) {
    candidate.stages.push_back({choice.sketch(), {choice.values().begin(), choice.values().end()}});
  }
  return candidate;
}

std::vector<int64_t> values_of(const internal::Sizes& sizes) {
  return {sizes.values().begin(), sizes.values().end()};
}

/// Notes whether code of tiles was not to be had, but may be another time.
class WatchedAssembler : public codegen::TileAssembler {
 public:
  explicit WatchedAssembler(const codegen::TileAssembler& assembler) : assembler_(assembler) {}

  std::vector<std::string> assemble(std::span<const std::string> modules,
                                    std::string_view arch) const override {
    try {
      return assembler_.assemble(modules, arch);
    } catch (const Error& error) {
      is_lacking_ = error.reason() == "TILEIRAS_NOW";
      throw;
    }
  }
  std::string program() const override { return assembler_.program(); }
  bool is_lacking() const { return is_lacking_; }

 private:
  const codegen::TileAssembler& assembler_;
  mutable bool is_lacking_ = false;
};

/// Of a candidate that is made of tiles there is nothing to be said where it is not.
void require_tiles(const Artifact& artifact) {
  if (!artifact.variants[0].tile_code.empty()) return;
  const nlohmann::json report = nlohmann::json::parse(artifact.report);
  fail(ErrorKind::Unsupported, "TILE_FORM", "it is not made of tiles: {}",
       report["generator"].value("why", "there is no assembler"));
}

/// Sizes that are known are no part of how the schedule is chosen: every variant of a kernel has
/// the same steps, and so computes the same bits.
Artifact compile_task(const internal::Compile& task, internal::Compiled& compiled,
                      const codegen::TileAssembler& assembler) {
  CompilerInput input(task.request());
  const language::Schedule schedule =
      task.has_candidate() ? input.space_with_tiles().schedule(from_wire(task.candidate()))
                           : input.chosen();
  if (task.has_candidate()) *compiled.mutable_schedule() = language::encode(schedule);
  input.options.untouched = input.options.untouched && !task.has_candidate();
  const WatchedAssembler watched(assembler);
  input.options.assembler = &watched;
  input.options.sizes = {task.sizes().begin(), task.sizes().end()};
  Artifact artifact = compile(input.kernel, schedule, input.target, input.options);
  compiled.set_for_now(watched.is_lacking());
  if (task.has_candidate() && tile_block_of(schedule)) require_tiles(artifact);
  if (task.has_read_at()) {
    compiled.set_predicted_seconds(
        reading_of(input, schedule, artifact, values_of(task.read_at())).seconds());
  }
  return artifact;
}

internal::Sketch to_wire(const autoschedule::Sketch& sketch) {
  internal::Sketch wire;
  wire.set_name(sketch.name);
  for (const autoschedule::Parameter& parameter : sketch.parameters) {
    internal::SketchParameter& written = *wire.add_parameters();
    written.set_name(parameter.name);
    written.mutable_values()->Add(parameter.values.begin(), parameter.values.end());
    written.set_preferred(parameter.preferred);
  }
  return wire;
}

std::vector<internal::StageSketches> sketches_of(const v1::CompileRequest& request,
                                                 bool has_tiles) {
  const CompilerInput input(request);
  const SketchSpace space = has_tiles ? input.space_with_tiles() : input.space();
  std::vector<internal::StageSketches> stages;
  for (const autoschedule::StageSketches& stage : space.stages()) {
    internal::StageSketches& written = stages.emplace_back();
    written.set_stage(stage.stage);
    for (const autoschedule::Sketch& sketch : stage.sketches)
      *written.add_sketches() = to_wire(sketch);
  }
  return stages;
}

/// Lowered loops or a source, of the schedule that would run or of the given steps alone.
std::string text_of(const internal::Text& task) {
  CompilerInput input(task.request());
  if (!task.loops()) {
    const language::Schedule schedule = input.chosen();
    std::string text =
        source_of(input.kernel, schedule, input.target, input.options, task.source());
    if (!task.has_read_at()) return text;
    const Artifact artifact = deserialize_artifact(task.artifact());
    return with_reading(text, reading_of(input, schedule, artifact, values_of(task.read_at())),
                        input.target.arch);
  }
  if (!task.auto_()) {
    input.options.automatic = false;
    return lowered_text(input.kernel, input.schedule, input.target, input.options, task.after());
  }
  return lowered_text(input.kernel, input.chosen(), input.target, input.options, task.after());
}

/// A part of the installation: ok with `found`, unless `look` throws.
template <typename Look>
v1::Component component(const char* name, Look&& look) {
  v1::Component part;
  part.set_name(name);
  try {
    part.set_message(look());
    part.set_ok(true);
  } catch (...) {
    part.set_message(current_error().message());
  }
  return part;
}

/// Of the compiler and of what it has code of tiles made by: where that is new, kernels are
/// compiled anew.
std::string build_id_with(const v1::Component& tiles) {
  return tiles.ok() ? compiler_build_id() + "-tiles" : compiler_build_id();
}

/// What kernels run on where so many threads were asked for; 0: one on each core.
int threads_of(int asked) { return asked > 0 ? asked : available_cores(); }

/// "2 threads on 2 cores, 1 socket"
std::string text_of_threads(int threads) {
  const auto counted = [](size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const CpuTopology& host = host_topology();
  std::string text = fmt::format("{} on {}, {}", counted(static_cast<size_t>(threads), "thread"),
                                 counted(static_cast<size_t>(host.cores), "core"),
                                 counted(static_cast<size_t>(host.sockets), "socket"));
  if (host.nodes.size() > 1) text += ", " + counted(host.nodes.size(), "memory node");
  return text;
}

}  // namespace

CompilerWorker kiln_compiler(std::shared_ptr<const codegen::TileAssembler> assembler, int threads) {
  CompilerWorker worker;
  const v1::Component tiles = component("tileiras", [&assembler] { return assembler->program(); });
  worker.build_id = build_id_with(tiles);
  worker.host_arch = with_cores(host_cpu(), threads_of(threads));
  worker.compile = [assembler = std::move(assembler)](const internal::Compile& task,
                                                      internal::Compiled& compiled) {
    return compile_task(task, compiled, *assembler);
  };
  worker.text = text_of;
  worker.sketches = [has_tiles = tiles.ok()](const v1::CompileRequest& request) {
    return sketches_of(request, has_tiles);
  };
  worker.predictions = [has_tiles = tiles.ok(), used = threads_of(threads)](
                           const internal::Predict& task, internal::Predicted& predicted) {
    predict_task(task, predicted, has_tiles, used);
  };
  worker.components = [tiles] {
    return std::vector<v1::Component>{component("nvrtc", codegen::describe_nvrtc), tiles};
  };
  return worker;
}

DeviceWorker cpu_worker(int threads) {
  DeviceWorker worker;
  const int used = threads_of(threads);
  worker.open = [threads, used] {
    return with_interpreter(
        open_cpu_device({.threads = threads, .arch = with_cores(runnable_cpu(), used)}));
  };
  worker.describe = [used](v1::Device& device) {
    device.set_memory_bytes(available_memory());
    device.set_description(
        fmt::format("{}; {}", text_of_threads(used),
                    autoschedule::text_of(autoschedule::machine_of(with_cores(host_cpu(), used)))));
  };
  worker.components = [used](const std::optional<Error>&) {
    return std::vector<v1::Component>{component(
        "cpu", [used] { return fmt::format("{}, kernels run on {} threads", host_cpu(), used); })};
  };
  return worker;
}

/// The GPU that kernels are planned for: the one that KILN_GPU names, as an arch, or the device's
/// own.
std::string planned_as(const cuda::DeviceProperties& properties) {
  const std::string arch = cuda::arch_of(properties.capability);
  const char* const asked = std::getenv("KILN_GPU");
  if (asked == nullptr || *asked == '\0') return autoschedule::arch_for(arch, properties.figures);
  figures_of(asked);
  if (without_figures(asked) != arch) {
    fail(ErrorKind::Unsupported, "KILN_GPU",
         "KILN_GPU is {}, but {} is {}; name a GPU of this architecture, as {}, or leave it unset",
         asked, properties.name, arch, arch);
  }
  return asked;
}

DeviceWorker cuda_worker(int index) {
  DeviceWorker worker;
  worker.open = [index] { return open_cuda_device(index); };
  worker.describe = [index](v1::Device& device) {
    const cuda::DeviceProperties properties = cuda::properties_of(cuda::driver_api(), index);
    device.set_memory_bytes(properties.memory_bytes);
    device.set_description(properties.name);
    device.set_planned_as(planned_as(properties));
  };
  worker.count = [] { return cuda::device_count(cuda::driver_api()); };
  worker.components = [index](const std::optional<Error>& absent) {
    const auto library = [] {
      int version = 0;
      cuda::driver_api().driver_version(&version);
      return fmt::format("the CUDA driver for CUDA {}.{}", version / 1000, version % 1000 / 10);
    };
    const auto device = [&] {
      if (absent) throw *absent;
      const cuda::DeviceProperties properties = cuda::properties_of(cuda::driver_api(), index);
      return fmt::format("cuda:{} ({}), {}", index, cuda::arch_of(properties.capability),
                         properties.name);
    };
    // The driver is that of all, and the first speaks of it.
    if (index != 0) return std::vector<v1::Component>{component("cuda device", device)};
    return std::vector<v1::Component>{component("libcuda", library),
                                      component("cuda device", device)};
  };
  return worker;
}

}  // namespace kiln::server
