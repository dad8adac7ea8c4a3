#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <kiln/client.h>

namespace kiln::cli {

/// Which kernel of which file, and how it is compiled.
struct KernelChoice {
  std::string file;
  std::string kernel;
  bool no_schedule = false;
  bool no_auto = false;
  bool strict = false;
  bool fast = false;
  std::string schedule;  // a file of schedule blocks, in the place of those of the file

  void add_to(CLI::App& command);
  /// The same without FILE, which the command has by another name.
  void add_flags_to(CLI::App& command);
  /// The kernel, with the schedule block for the target. Throws UsageError when the file has
  /// several and none is named, or not the one named.
  Definition load(const std::string& target) const;
  /// The text of the file, and what messages call it.
  std::pair<std::string, std::string> read() const;
  /// The kernel of that definition, with the schedule block that the flags choose.
  Definition scheduled(const Definition& definition, const std::string& target) const;
  /// load() of a text that is read already.
  Definition choose(const std::string& text, const std::string& name,
                    const std::string& target) const;
  BuildOptions options(const std::string& target) const;
};

/// What a call is given.
struct CallChoice {
  std::vector<std::string> inputs;  // NAME=FILE
  std::vector<std::string> sizes;   // NAME=NUMBER
  std::string device = "cpu";
  double timeout = 0;  // seconds
  bool interpret = false;
  bool check_nan = false;

  void add_to(CLI::App& command);
  /// "llvm", "cuda" or "interpreter". Throws UsageError for other devices.
  std::string target() const;
  /// "cuda:1", where a GPU is named by its number; else empty.
  std::string numbered_gpu() const;
  /// How the kernel is built for this call.
  BuildOptions build_options(const KernelChoice& kernel) const;
  /// The inputs in the order of the parameters. Throws UsageError for a name the kernel does not
  /// have and for inputs that are not given.
  std::vector<Argument> load(const Definition& definition) const {
    return load(definition.name(), definition.parameters());
  }
  std::vector<Argument> load(const std::string& kernel,
                             const std::vector<Parameter>& parameters) const;
  /// The sizes that are given, of a kernel that has these. Throws UsageError.
  std::map<std::string, std::int64_t> sizes_among(const std::string& kernel,
                                                  const std::vector<std::string>& known) const;
  CallOptions options(const Definition& definition) const;
};

/// Steps, as reports have them, as the text of a schedule file.
std::string schedule_block(const std::string& target, const std::vector<std::string>& steps);

/// "llvm" for llvm and cpu, "cuda". Throws UsageError for other names.
std::string target_named(const std::string& name);

/// "A: float32[n, l]"
std::string text_of(const Parameter& parameter);
/// NAME=VALUE. Throws UsageError, naming the flag.
std::pair<std::string, std::string> split_pair(const std::string& text, const std::string& flag);

}  // namespace kiln::cli
