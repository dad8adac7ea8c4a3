#include "client/cli/usage_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/language/suggest.h"

namespace kiln::cli {
namespace {

/// The command that was being read, as "kiln tune".
const CLI::App& innermost(const CLI::App& app, std::string& name) {
  const CLI::App* command = &app;
  name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  return *command;
}

/// CLI11's sentences, as ours are written: lower case, no period.
std::string own_style(std::string text) {
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
      std::isupper(static_cast<unsigned char>(text[1])) == 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  while (!text.empty() && (text.back() == '.' || text.back() == '\n'))
    text.pop_back();
  return text;
}

/// The first flag among what nothing takes, else the first word.
std::string unexpected(const CLI::App& command, const std::string& name) {
  const std::vector<std::string> extras = command.remaining(/*recurse=*/true);
  const auto flag =
      std::ranges::find_if(extras, [](const std::string& each) { return each.starts_with('-'); });
  if (flag == extras.end()) {
    return fmt::format("{} takes no {} here", name, extras.empty() ? "more" : extras.front());
  }
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& each : option->get_lnames())
      flags.push_back("--" + each);
  }
  const std::vector<std::string_view> known(flags.begin(), flags.end());
  const std::string_view near = language::nearest(flag->substr(0, flag->find('=')), known);
  return fmt::format("{} has no flag {}{}", name, *flag,
                     near.empty() ? "" : fmt::format("; did you mean {}", near));
}

/// What a value of the option must be, from the type that CLI11 keeps: "UINT", "FLOAT:NONNEGATIVE",
/// "TEXT:{a,b}".
std::string wanted_of(const std::string& type) {
  const size_t brace = type.find('{');
  if (brace != std::string::npos) {
    std::string choices = type.substr(brace + 1, type.find('}') - brace - 1);
    for (size_t at = 0; (at = choices.find(',', at)) != std::string::npos; at += 2)
      choices.replace(at, 1, ", ");
    return "one of " + choices;
  }
  const bool is_whole = !type.starts_with("FLOAT");
  const std::string number = is_whole ? "a whole number" : "a number";
  if (type.find("POSITIVE") != std::string::npos) return number + " above 0";
  const bool has_zero = type.starts_with("UINT") || type.find("NONNEGATIVE") != std::string::npos;
  return has_zero ? number + " of 0 or more" : number;
}

/// The option whose value was refused: CLI11's sentence has its name.
std::string refused_value(const CLI::App& command, const CLI::ParseError& error) {
  const std::string sentence = error.what();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (sentence.find(name + " =") == std::string::npos && !sentence.starts_with(name + ":")) {
      continue;
    }
    return fmt::format("{} must be {}, but got {}", name, wanted_of(option->get_type_name()),
                       fmt::join(option->results(), " "));
  }
  return own_style(sentence);
}

}  // namespace

std::string usage_text(const CLI::App& app, const CLI::ParseError& error) {
  std::string name;
  const CLI::App& command = innermost(app, name);
  std::string text;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    text = unexpected(command, name);
  } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr ||
             dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    text = refused_value(command, error);
  } else {
    text = own_style(error.what());
  }
  return fmt::format("{}; {} --help shows how", text, name);
}

}  // namespace kiln::cli
