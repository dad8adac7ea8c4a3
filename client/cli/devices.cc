// `kiln devices` and `kiln describe`: what the service says of its devices, and of itself, for
// people, or as JSON with the bytes unrounded for programs.
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/cli/program.h"

namespace kiln::cli {
namespace {

std::string memory_text(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

nlohmann::ordered_json json_of(const std::vector<Device>& devices) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Device& device : devices) {
    list.push_back({{"name", device.name},
                    {"target", device.target},
                    {"arch", device.arch},
                    {"state", device.state},
                    {"memory_bytes", device.memory_bytes},
                    {"description", device.description}});
  }
  return list;
}

std::string devices_table(const std::vector<Device>& devices) {
  std::vector<std::vector<std::string>> rows{
      {"DEVICE", "TARGET", "ARCH", "STATE", "MEMORY", "DESCRIPTION"}};
  for (const Device& device : devices) {
    rows.push_back({device.name, device.target, device.arch, device.state,
                    memory_text(device.memory_bytes), device.description});
  }
  return table(rows);
}

int list_devices(const Common& common) {
  const Description description = common.connect().describe();
  if (common.json) {
    std::cout << nlohmann::ordered_json{{"devices", json_of(description.devices)}}.dump(2) << "\n";
  } else {
    std::cout << devices_table(description.devices);
  }
  return 0;
}

int describe_service(const Common& common) {
  const Description description = common.connect().describe();
  if (common.json) {
    nlohmann::ordered_json components = nlohmann::ordered_json::array();
    for (const Component& part : description.components)
      components.push_back({{"name", part.name}, {"ok", part.ok}, {"message", part.message}});
    std::cout << nlohmann::ordered_json{{"version", description.version},
                                        {"pid", description.pid},
                                        {"devices", json_of(description.devices)},
                                        {"components", components},
                                        {"counters", description.counters}}
                     .dump(2)
              << "\n";
    return 0;
  }
  std::cout << fmt::format("kilnd {}, process {}\n\n", description.version, description.pid)
            << devices_table(description.devices);
  std::vector<std::vector<std::string>> rows{{"COUNTER", "SINCE IT STARTED"}};
  for (const auto& [name, count] : description.counters) {
    if (count != 0) rows.push_back({name, std::to_string(count)});
  }
  if (rows.size() > 1) std::cout << "\n" << table(rows);
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "devices", "list the devices of the service");
  command.callback(
      [&program] { program.run = [&program] { return list_devices(program.common); }; });
  CLI::App& whole = add_command(app, program, "describe",
                                "what the service is: its version, its devices, what it has done");
  whole.callback(
      [&program] { program.run = [&program] { return describe_service(program.common); }; });
}

}  // namespace kiln::cli
