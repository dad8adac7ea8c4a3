#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "compiler/codegen/main_loop.h"

namespace kiln::codegen {

/// As reports have it: {"instructions": 771, "arithmetic": 512, "kind": "FFMA", "share": 0.66,
/// "barriers": 1, "spills": 0, "accesses": {"LDG": {"16": 4}, ..}}, how many of each width.
inline nlohmann::json main_loop_json(const MainLoop& loop) {
  nlohmann::json json = {{"is_loop", loop.is_loop},       {"instructions", loop.instructions},
                         {"arithmetic", loop.arithmetic}, {"kind", loop.kind},
                         {"share", loop.share()},         {"barriers", loop.barriers},
                         {"spills", loop.spills},         {"accesses", nlohmann::json::object()}};
  for (const MainLoop::Access& access : loop.accesses)
    json["accesses"][std::string(access.kind)][std::to_string(access.bytes)] = access.count;
  return json;
}

}  // namespace kiln::codegen
