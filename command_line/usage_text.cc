// CLI11's refusals in our words: what is wrong, of which command, and the way out. Its sentences
// are recognised by the option's name at their beginning, since its exceptions carry no more.
//
//   kiln tune --trails 5  ->  kiln tune has no flag --trails; did you mean --trials; ...
//
// Of several mistakes the first is told: longer and longer beginnings of the line are parsed again.
#include "command_line/usage_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/language/suggest.h"

namespace kiln::command_line {
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

/// ", did you mean kiln wait", where a command is meant by `word`, a word in the wrong place.
std::string meant_command(const CLI::App& app, const std::string& word) {
  const size_t dashes = word.find_first_not_of('-');
  const std::string bare = dashes == std::string::npos ? "" : word.substr(dashes);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == bare)
      return fmt::format("; did you mean {} {}", app.get_name(), bare);
  }
  return "";
}

/// What follows a command that needs another behind it: "kiln cache needs one of list, size", or
/// "kiln cache has no lst; did you mean list".
std::string missing_command(const CLI::App& app, const CLI::App& command, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands(nullptr))
    names.push_back(each->get_name());
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (extras.empty()) return fmt::format("{} needs one of {}", name, fmt::join(names, ", "));
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fmt::format("{} has no {}{}", name, extras.front(),
                     language::suggestion(extras.front(), known));
}

/// ", did you mean --in X=x.npy", where a word reads as the value of such a flag.
std::string meant_flag(const CLI::App& command, const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == word.size()) return "";
  const bool is_number = word.find_first_not_of("0123456789", equals + 1) == std::string::npos;
  const std::string flag = is_number ? "--size" : "--in";
  if (command.get_option_no_throw(flag) == nullptr) return "";
  return fmt::format("; did you mean {} {}", flag, word);
}

bool is_flag(const std::string& word) { return word.starts_with('-'); }

/// The first flag among what nothing takes, else the first word.
std::string unexpected(const CLI::App& app, const CLI::App& command, const std::string& name) {
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  const auto flag = std::ranges::find_if(extras, is_flag);
  const std::string& word = flag != extras.end() ? *flag : extras.front();
  if (const std::string meant = meant_command(app, word); !meant.empty()) {
    return fmt::format("{} takes no {} here{}", name, word, meant);
  }
  if (flag == extras.end())
    return fmt::format("{} takes no {} here{}", name, word, meant_flag(command, word));
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
/// "TEXT:{a,b}", "INT:INT in [0 - 4096]", "TEXT:FILE".
std::string wanted_of(const std::string& type) {
  const size_t brace = type.find('{');
  if (brace != std::string::npos) {
    std::string choices = type.substr(brace + 1, type.find('}') - brace - 1);
    for (size_t at = 0; (at = choices.find(',', at)) != std::string::npos; at += 2)
      choices.replace(at, 1, ", ");
    return "one of " + choices;
  }
  if (type.ends_with(":FILE")) return "a file that exists";
  if (const size_t range = type.find('['); range != std::string::npos) {
    const size_t dash = type.find(" - ", range);
    return fmt::format("from {} to {}", type.substr(range + 1, dash - range - 1),
                       type.substr(dash + 3, type.find(']') - dash - 3));
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

std::string needs_value(const CLI::Option& option) {
  return fmt::format("{} needs a value: {}", option.get_name(), option.get_description());
}

/// An option with too few values or too many: CLI11's sentence begins with its name.
std::string miscounted(const CLI::App& command, const CLI::ParseError& error) {
  const std::string sentence = error.what();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!sentence.starts_with(name + ":")) continue;
    const size_t given = option->results().size();
    if (given > 1) return fmt::format("{} is given {} times; give it once", name, given);
    return needs_value(*option);
  }
  return own_style(sentence);
}

}  // namespace

std::string first_mistake(CLI::App& app, const std::vector<std::string>& arguments,
                          const CLI::ParseError& error) {
  std::string text = usage_text(app, error);
  for (size_t count = 1; count < arguments.size(); ++count) {
    // CLI11 reads from the back.
    std::vector<std::string> beginning(arguments.rend() - static_cast<ptrdiff_t>(count),
                                       arguments.rend());
    try {
      app.parse(std::move(beginning));
      if (const std::string missing = missing_value(app); !missing.empty()) return missing;
    } catch (const CLI::Success&) {
      break;
    } catch (const CLI::RequiredError& missing) {  // what may follow yet
      if (std::ranges::any_of(app.remaining(true), is_flag)) return usage_text(app, missing);
    } catch (const CLI::ArgumentMismatch& mismatch) {  // so may the value of the last flag
      if (!is_flag(arguments[count - 1])) return usage_text(app, mismatch);
    } catch (const CLI::ParseError& first) {
      return usage_text(app, first);
    }
  }
  return text;
}

std::string usage_text(const CLI::App& app, const CLI::ParseError& error) {
  std::string name;
  const CLI::App& command = innermost(app, name);
  std::string text;
  const bool has_extras = std::ranges::any_of(app.remaining(true), is_flag);
  if (has_extras || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    text = unexpected(app, command, name);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    text = miscounted(command, error);
  } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr ||
             dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    text = refused_value(command, error);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
             command.get_require_subcommand_min() > 0 && command.get_subcommands().empty()) {
    text = missing_command(app, command, name);
  } else {
    text = own_style(error.what());
  }
  return fmt::format("{}; {} --help shows how", text, name);
}

std::string missing_value(const CLI::App& app) {
  std::string name;
  for (const CLI::Option* option : innermost(app, name).get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    for (const std::string& value : option->results()) {
      if (!value.starts_with("--")) continue;
      return fmt::format("{}; {} --help shows how", needs_value(*option), name);
    }
  }
  return "";
}

}  // namespace kiln::command_line
