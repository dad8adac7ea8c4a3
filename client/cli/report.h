#pragma once

#include <string>

#include <kiln/error.h>
#include <nlohmann/json.hpp>

namespace kiln::cli {

/// What a command leaves to the shell.
enum ExitCode : int { kDone = 0, kWrongRequest = 1, kUsage = 2, kService = 3, kStopped = 4 };

ExitCode exit_code_of(ErrorKind kind);

/// A mistake in how the command is written, found after its flags were read.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool is_terminal(int fd);
/// Whether colours may be written there: a terminal, and NO_COLOR is not set.
bool has_colour(int fd);

/// To stderr: `error: MESSAGE` with the notes indented below; with `json`, an object to stdout.
void print_error(const Error& error, bool json);
void print_usage_error(const std::string& message, bool json);

nlohmann::ordered_json to_json(const Error& error);

}  // namespace kiln::cli
