#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <kiln/client.h>
#include <nlohmann/json.hpp>

namespace kiln::cli {

struct NamedArray {
  std::string name;
  Array value;
};

/// Where the outputs of a call go.
struct OutputChoice {
  std::vector<std::string> files;  // NAME=FILE
  bool timings = false;

  void add_to(CLI::App& command);
  /// Throws UsageError for a name that is no output, and where two things go to standard output.
  /// `kernel` is what the message calls it.
  void check(const std::vector<std::string>& outputs, const std::string& kernel, bool json) const;
  /// Whether this output goes to a file.
  bool has_file(const std::string& output) const;
  /// Writes the files; prints the outputs that have none, and the timings when asked for.
  void deliver(const std::vector<NamedArray>& outputs, const Timings& timings, bool json) const;
};

/// "kernel 12 us, compile 210 ms (compiled), ..."
std::string text_of(const Timings& timings);
nlohmann::ordered_json to_json(const Timings& timings);
/// "12 us", "210 ms", "1.5 s"
std::string time_text(double seconds);
/// "12 B", "1.5 GiB"
std::string bytes_text(double bytes);

}  // namespace kiln::cli
