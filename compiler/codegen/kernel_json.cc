#include "compiler/codegen/kernel_json.h"

#include <string>

#include "compiler/codegen/main_loop.h"
#include "compiler/codegen/occupancy.h"

namespace kiln::codegen {
namespace {

nlohmann::json main_loop_json(const MainLoop& loop) {
  nlohmann::json json = {{"is_loop", loop.is_loop},       {"instructions", loop.instructions},
                         {"arithmetic", loop.arithmetic}, {"kind", loop.kind},
                         {"share", loop.share()},         {"barriers", loop.barriers},
                         {"spills", loop.spills},         {"accesses", nlohmann::json::object()}};
  for (const MainLoop::Access& access : loop.accesses)
    json["accesses"][std::string(access.kind)][std::to_string(access.bytes)] = access.count;
  return json;
}

}  // namespace

nlohmann::json kernel_json(const CubinKernel& kernel, std::string_view arch) {
  nlohmann::json json = {{"name", kernel.name},
                         {"registers", kernel.registers},
                         {"spill_bytes", kernel.stack_bytes},
                         {"shared_bytes", kernel.shared_bytes},
                         {"instructions", kernel.instructions},
                         {"main_loop", main_loop_json(main_loop_of(kernel.code, arch))}};
  if (kernel.threads > 0) add_occupancy(json, kernel, kernel.threads, 0, arch);
  return json;
}

void add_occupancy(nlohmann::json& json, const CubinKernel& kernel, int64_t threads,
                   int64_t dynamic_bytes, std::string_view arch) {
  const Occupancy occupancy = occupancy_of(kernel, threads, dynamic_bytes, ir::gpu_arch(arch));
  json["threads"] = threads;
  if (dynamic_bytes > 0) json["dynamic_shared_bytes"] = dynamic_bytes;
  json["occupancy_percent"] = occupancy.percent;
  json["occupancy_bound"] = occupancy.bound;
}

}  // namespace kiln::codegen
