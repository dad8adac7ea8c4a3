// `kiln tensors`: what the programs of a tenant keep on the service, and a way to be rid of it.
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "client/cli/outputs.h"
#include "client/cli/program.h"

namespace kiln::cli {
namespace {

std::string shape_text(const TensorState& state) {
  return state.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(state.shape, "x"));
}

/// "3 tensors, 1.2 GiB of 8.0 GiB; the 2 largest are listed".
std::string total_text(const Holdings& held) {
  std::string text = fmt::format("{} tensor{}, {}", held.count, held.count == 1 ? "" : "s",
                                 bytes_text(static_cast<double>(held.bytes)));
  if (held.limit_bytes > 0)
    text += fmt::format(" of {}", bytes_text(static_cast<double>(held.limit_bytes)));
  if (const auto listed = static_cast<std::int64_t>(held.tensors.size()); listed < held.count)
    text += listed == 1 ? "; the largest is listed"
                        : fmt::format("; the {} largest are listed", listed);
  return text;
}

nlohmann::ordered_json holdings_json(const Holdings& held) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TensorState& state : held.tensors) {
    list.push_back({{"tensor", state.id},
                    {"type", name_of(state.type)},
                    {"shape", state.shape},
                    {"bytes", state.bytes},
                    {"device", state.device},
                    {"session", state.session},
                    {"unused_seconds", state.unused_seconds}});
  }
  return {{"tensors", list},
          {"count", held.count},
          {"bytes", held.bytes},
          {"limit_bytes", held.limit_bytes}};
}

int list_tensors(const Common& common, std::uint32_t limit) {
  const Holdings held = common.connect().tensors(limit);
  if (common.json) {
    std::cout << holdings_json(held).dump(2) << "\n";
    return 0;
  }
  std::vector<std::vector<std::string>> rows{
      {"TENSOR", "TYPE", "SHAPE", "BYTES", "DEVICE", "UNUSED FOR", "SESSION"}};
  for (const TensorState& state : held.tensors) {
    rows.push_back({state.id, std::string(name_of(state.type)), shape_text(state),
                    bytes_text(static_cast<double>(state.bytes)), state.device,
                    time_text(state.unused_seconds),
                    state.session.empty() ? "none" : state.session});
  }
  if (!held.tensors.empty()) std::cout << table(rows);
  std::cout << total_text(held) << "\n";
  return 0;
}

int free_tensors(const Common& common, const std::vector<std::string>& ids) {
  const std::uint32_t freed = common.connect().free_tensors(ids);
  if (common.json) {
    std::cout << nlohmann::ordered_json{{"freed", freed}}.dump(2) << "\n";
  } else {
    std::cout << fmt::format("freed {} of {}\n", freed, ids.size());
  }
  return freed == ids.size() ? 0 : 1;
}

}  // namespace

void add_tensors(CLI::App& app, Program& program) {
  CLI::App& list =
      add_command(app, program, "tensors", "list what programs keep on the service, or free it");
  const auto limit = std::make_shared<std::uint32_t>(100);
  list.add_option("--limit", *limit, "list as many at most, the largest first")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  const auto freed = std::make_shared<std::vector<std::string>>();
  list.add_option("--free", *freed,
                  "free these instead: whose program still uses one is told that it was freed")
      ->type_name("ID");
  list.callback([&program, limit, freed] {
    program.run = [&program, limit, freed] {
      return freed->empty() ? list_tensors(program.common, *limit)
                            : free_tensors(program.common, *freed);
    };
  });
}

}  // namespace kiln::cli
