// Programs of kernel files: what a run is given and what it gives, by name.
#include <kiln/program.h>

#include "client/cpp/language_border.h"
#include "client/cpp/program_state.h"
#include "client/cpp/text_file.h"

namespace kiln {
inline namespace client {
namespace {

/// The type of a value is what a definition that reads it says; float32 where none does.
DType type_of(const v1::Program& program, std::uint32_t value) {
  for (const v1::ProgramNode& node : program.nodes()) {
    if (node.gradient()) continue;
    const v1::Definition& definition = program.definitions(static_cast<int>(node.definition()));
    int input = 0;
    for (const v1::TensorId& parameter : definition.parameters()) {
      const v1::Stage& stage = definition.stages(static_cast<int>(parameter.stage()));
      if (!stage.has_placeholder()) continue;
      if (node.inputs(input++) == value) return static_cast<DType>(stage.placeholder().type());
    }
  }
  return float32;
}

template <typename Ids>
std::vector<std::string> names_of(const v1::Program& program, const Ids& ids) {
  std::vector<std::string> names;
  for (const std::uint32_t id : ids)
    names.push_back(program.values(static_cast<int>(id)).name());
  return names;
}

}  // namespace

const std::string& Program::name() const { return state_->wire.name(); }

std::vector<ProgramValue> Program::values() const {
  std::vector<ProgramValue> found;
  for (int id = 0; id < state_->wire.values_size(); ++id) {
    const v1::ProgramValue& value = state_->wire.values(id);
    const bool is_given = value.kind() == v1::VALUE_KIND_INPUT ||
                          value.kind() == v1::VALUE_KIND_BATCH ||
                          value.kind() == v1::VALUE_KIND_PARAMETER;
    if (!is_given) continue;
    const ProgramRole role = value.kind() == v1::VALUE_KIND_INPUT   ? ProgramRole::Input
                             : value.kind() == v1::VALUE_KIND_BATCH ? ProgramRole::Data
                                                                    : ProgramRole::Parameter;
    found.push_back({value.name(), role, type_of(state_->wire, static_cast<std::uint32_t>(id))});
  }
  return found;
}

std::vector<std::string> Program::outputs() const { return state_->outputs; }

std::vector<std::string> Program::reports() const { return state_->reports; }

bool Program::has_end() const { return state_->wire.has_until(); }

std::vector<Program> parse_programs(std::string_view text, const std::string& file_name) {
  std::vector<Program> programs;
  for (v1::Program& wire : border::parse_programs(text, file_name)) {
    auto state = std::make_shared<detail::ProgramState>();
    state->outputs = names_of(wire, wire.outputs());
    state->reports = names_of(wire, wire.reports());
    state->wire = std::move(wire);
    programs.emplace_back(std::shared_ptr<const detail::ProgramState>(std::move(state)));
  }
  return programs;
}

std::vector<Program> load_programs(const std::string& path) {
  return parse_programs(detail::read_text(path), path);
}

}  // namespace client
}  // namespace kiln
