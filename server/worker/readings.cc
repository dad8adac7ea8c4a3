// Reads code that was just made, or comes back with a request for a report: the loops or tiles that
// it was made of are made again, which takes milliseconds.
#include "server/worker/readings.h"

#include <nlohmann/json.hpp>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/lower.h"
#include "compiler/read_code.h"
#include "compiler/tile_block.h"
#include "compiler/tile_code.h"
#include "runtime/core/error.h"

namespace kiln::server {

predict::Prediction reading_of(const CompilerInput& input, const language::Schedule& schedule,
                               const Artifact& artifact, std::span<const int64_t> sizes) {
  KILN_CHECK(input.target.traits().has_threads);
  const autoschedule::GpuMachine machine = autoschedule::gpu_machine(input.target.arch);
  CompileOptions options = input.options;
  options.block = tile_block_of(schedule);
  const std::optional<TileCode> tiles = tile_code_of(input.kernel, artifact, sizes, options);
  if (tiles) return prediction_of_tile_code(*tiles, artifact.arch, machine, sizes);
  LoweringObserver silent;
  const ir::Kernel loops =
      lower(input.kernel, schedule, input.target, input.options, Layout::Compact, silent);
  return prediction_of_code(loops, artifact, machine, sizes);
}

std::string with_reading(const std::string& report, const predict::Prediction& prediction,
                         const std::string& arch) {
  nlohmann::json json = nlohmann::json::parse(report);
  nlohmann::json terms = nlohmann::json::object();
  for (const predict::Term& term : prediction.terms)
    if (term.cycles > 0) terms[std::string(term.name)] = prediction.in_seconds(term.cycles);
  json["predicted"] = {{"seconds", prediction.seconds()},
                       {"largest", prediction.largest().name},
                       {"terms", std::move(terms)},
                       {"gpu", autoschedule::gpu_machine(arch).name},
                       {"measured", false}};
  return json.dump();
}

}  // namespace kiln::server
