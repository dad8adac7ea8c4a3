#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace kiln::cli {

/// What is wrong with a command line that CLI11 refuses, in our words, with the way out. `app` is
/// what parsed it.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

}  // namespace kiln::cli
