// Definitions as values: the wire form, made when the definition is, so that errors name the line
// that made it, and cheap to copy afterwards.
#include <utility>

#include <kiln/definition.h>

#include "client/cpp/definition_state.h"
#include "client/cpp/encode.h"
#include "client/cpp/fail.h"
#include "client/cpp/schedule_state.h"
#include "client/cpp/text_file.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

std::shared_ptr<const DefinitionState> make_state(const std::vector<Tensor>& arguments,
                                                  const std::string& name,
                                                  const ScheduleState* schedule,
                                                  const SourceLocation& where) {
  auto state = std::make_shared<DefinitionState>();
  state->kernel = at_line(where, [&] { return encode(arguments, name, schedule); });
  if (!state->kernel.schedules.empty()) {
    state->schedule = std::move(state->kernel.schedules[0].second);
    state->kernel.schedules.clear();
  }
  return state;
}

}  // namespace
}  // namespace detail

Definition::Definition(std::initializer_list<Tensor> arguments, SourceLocation where)
    : Definition(std::vector<Tensor>(arguments), detail::kUnnamedKernel, where) {}

Definition::Definition(const std::vector<Tensor>& arguments, const std::string& name,
                       SourceLocation where)
    : state_(detail::make_state(arguments, name, nullptr, where)) {}

Definition::Definition(const Schedule& schedule, const std::vector<Tensor>& arguments,
                       const std::string& name, SourceLocation where)
    : state_(detail::make_state(arguments, name, schedule.state().get(), where)) {}

const std::string& Definition::name() const { return state_->kernel.names.kernel(); }

std::vector<Parameter> Definition::parameters() const {
  std::vector<Parameter> parameters;
  for (border::WireParameter& parameter : border::parameters_of(state_->kernel)) {
    parameters.push_back({.name = std::move(parameter.name),
                          .type = static_cast<DType>(parameter.type),
                          .output = parameter.output,
                          .shape = std::move(parameter.shape)});
  }
  return parameters;
}

std::vector<std::string> Definition::sizes() const {
  const auto& names = state_->kernel.names.variables();
  return {names.begin(), names.end()};
}

std::vector<std::string> Definition::schedules() const {
  std::vector<std::string> names;
  for (const auto& [name, schedule] : state_->kernel.schedules)
    names.push_back(name);
  return names;
}

Definition Definition::with_schedule(std::string_view name) const {
  auto state = std::make_shared<detail::DefinitionState>(*state_);
  state->schedule.Clear();
  for (const auto& [block, schedule] : state_->kernel.schedules) {
    if (block == name) state->schedule = schedule;
  }
  return Definition(std::move(state));
}

Definition Definition::without_schedule() const {
  auto state = std::make_shared<detail::DefinitionState>(*state_);
  state->schedule.Clear();
  return Definition(std::move(state));
}

Definition Definition::with_schedules(std::string_view text, const std::string& file_name) const {
  auto state = std::make_shared<detail::DefinitionState>(*state_);
  state->schedule.Clear();
  state->kernel.schedules = border::parse_schedules(text, file_name, state->kernel);
  return Definition(std::move(state));
}

std::string Definition::schedule_text(std::string_view target) const {
  return border::print_schedule(state_->kernel, target, state_->schedule);
}

std::string Definition::text() const {
  border::WireKernel kernel = state_->kernel;
  // Steps of a program have no block of their own.
  if (kernel.schedules.empty() && state_->schedule.steps_size() > 0) {
    kernel.schedules.emplace_back("cpu", state_->schedule);
  }
  return border::print_text(kernel);
}

std::vector<Definition> parse(std::string_view text, const std::string& file_name) {
  std::vector<Definition> definitions;
  for (border::WireKernel& kernel : border::parse_text(text, file_name)) {
    auto state = std::make_shared<detail::DefinitionState>();
    state->kernel = std::move(kernel);
    definitions.emplace_back(std::shared_ptr<const detail::DefinitionState>(std::move(state)));
  }
  return definitions;
}

std::vector<Definition> load_file(const std::string& path) {
  return parse(detail::read_text(path), path);
}

std::string format_text(std::string_view text, const std::string& file_name) {
  return border::format_text(text, file_name);
}

std::string apply_schedules(std::string_view text, const std::string& file_name,
                            std::string_view kernel, std::string_view schedules,
                            const std::string& schedule_file) {
  return border::apply_schedules(text, file_name, kernel, schedules, schedule_file);
}

}  // namespace client
}  // namespace kiln
