#include "compiler/codegen/kernel_json.h"

#include <string>

#include "compiler/codegen/main_loop.h"

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
  return {{"name", kernel.name},
          {"registers", kernel.registers},
          {"spill_bytes", kernel.stack_bytes},
          {"shared_bytes", kernel.shared_bytes},
          {"instructions", kernel.instructions},
          {"main_loop", main_loop_json(main_loop_of(kernel.code, arch))}};
}

}  // namespace kiln::codegen
