// `kiln devices`: what the service describes of its devices, as a table for people, or as JSON with
// the bytes unrounded for programs.
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/cli/program.h"

namespace kiln::cli {
namespace {

std::string memory_text(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

int list_devices(const Common& common) {
  const Description description = common.connect().describe();
  if (common.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Device& device : description.devices) {
      list.push_back({{"name", device.name},
                      {"target", device.target},
                      {"arch", device.arch},
                      {"state", device.state},
                      {"memory_bytes", device.memory_bytes},
                      {"description", device.description}});
    }
    std::cout << nlohmann::ordered_json{{"devices", list}}.dump(2) << "\n";
    return 0;
  }
  std::vector<std::vector<std::string>> rows{
      {"DEVICE", "TARGET", "ARCH", "STATE", "MEMORY", "DESCRIPTION"}};
  for (const Device& device : description.devices) {
    rows.push_back({device.name, device.target, device.arch, device.state,
                    memory_text(device.memory_bytes), device.description});
  }
  std::cout << table(rows);
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "devices", "list the devices of the service");
  command.callback(
      [&program] { program.run = [&program] { return list_devices(program.common); }; });
}

}  // namespace kiln::cli
