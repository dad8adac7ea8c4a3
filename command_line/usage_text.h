#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kiln::command_line {

/// What is wrong with a command line that CLI11 refuses, in our words, with the way out. `app` is
/// what parsed it.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

/// The same of the first mistake among several, which is the one that a reader looks for. `app`
/// parses the arguments again.
std::string first_mistake(CLI::App& app, const std::vector<std::string>& arguments,
                          const CLI::ParseError& error);

/// What is wrong with a command line in which an option took the next flag for its value, else
/// empty.
std::string missing_value(const CLI::App& app);

}  // namespace kiln::command_line
