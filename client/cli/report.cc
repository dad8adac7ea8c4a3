// Errors as people and scripts read them, and exit codes that say who must act: 1 the request, 2
// the command line, 3 the service, 4 nobody (time or a cancel).
#include "client/cli/report.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include <unistd.h>

namespace kiln::cli {
namespace {

constexpr std::size_t kLongestLineShown = 200;

void print_heading(const std::string& message) {
  const bool colour = has_colour(STDERR_FILENO);
  std::cerr << (colour ? "\x1b[1;31merror:\x1b[0m " : "error: ") << message << "\n";
}

/// A note may have several lines, as the one that shows the place of a syntax error.
void print_note(const std::string& note) {
  std::istringstream lines(note);
  for (std::string line; std::getline(lines, line);) {
    const bool caret =
        line.find_first_not_of(" |~^") == std::string::npos && line.find('^') != std::string::npos;
    const bool colour = caret && has_colour(STDERR_FILENO);
    std::cerr << "  " << (colour ? "\x1b[1;32m" : "") << line << (colour ? "\x1b[0m" : "") << "\n";
  }
}

/// The line of the file, without the blanks around it; empty where it cannot be read.
std::string line_of(const std::string& file, int number) {
  std::ifstream in(file);
  std::string line;
  for (int i = 0; i < number; ++i) {
    if (!std::getline(in, line)) return "";
  }
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

bool shows_the_place(const Error& error) {
  return std::any_of(error.notes().begin(), error.notes().end(),
                     [](const std::string& note) { return note.find('^') != std::string::npos; });
}

}  // namespace

ExitCode exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
    case ErrorKind::Unsupported:
    case ErrorKind::NotFound:
    case ErrorKind::Unauthenticated: return kWrongRequest;
    case ErrorKind::HandleLost:
    case ErrorKind::ResourceExhausted:
    case ErrorKind::Unavailable:
    case ErrorKind::Internal: return kService;
    case ErrorKind::DeadlineExceeded:
    case ErrorKind::Cancelled: return kStopped;
  }
  return kService;
}

bool is_terminal(int fd) { return isatty(fd) != 0; }

bool has_colour(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal(fd) && (no_colour == nullptr || *no_colour == '\0') &&
         (term == nullptr || std::string_view(term) != "dumb");
}

nlohmann::ordered_json to_json(const Error& error) {
  return {{"error",
           {{"kind", name_of(error.kind())},
            {"reason", error.reason()},
            {"message", error.message()},
            {"notes", error.notes()},
            {"file", error.file()},
            {"line", error.line()}}}};
}

void print_error(const Error& error, bool json) {
  if (json) {
    std::cout << to_json(error).dump(2) << std::endl;
    return;
  }
  print_heading(error.message());
  for (const std::string& note : error.notes())
    print_note(note);
  if (!error.file().empty() && error.line() > 0) {
    std::cerr << "  at " << error.file() << ":" << error.line() << "\n";
    if (shows_the_place(error)) return;
    const std::string line = line_of(error.file(), error.line());
    if (line.empty() || line.size() > kLongestLineShown) return;
    print_note(line + "\n" + std::string(line.size(), '^'));
  }
}

void print_usage_error(const std::string& message, bool json) {
  if (json) {
    const nlohmann::ordered_json object{{"error",
                                         {{"kind", "InvalidArgument"},
                                          {"reason", "USAGE"},
                                          {"message", message},
                                          {"notes", nlohmann::json::array()},
                                          {"file", ""},
                                          {"line", 0}}}};
    std::cout << object.dump(2) << std::endl;
    return;
  }
  print_heading(message);
}

}  // namespace kiln::cli
