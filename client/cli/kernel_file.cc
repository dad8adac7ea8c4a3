#include "client/cli/kernel_file.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "client/cli/npy.h"
#include "client/cli/report.h"

namespace kiln::cli {
namespace {

template <typename... Args>
[[noreturn]] void usage(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

std::string names_of(const std::vector<Definition>& kernels) {
  std::vector<std::string> names;
  for (const Definition& kernel : kernels)
    names.push_back(kernel.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::map<std::string, std::string> pairs_of(const std::vector<std::string>& texts,
                                            const std::string& flag) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const auto [name, value] = split_pair(text, flag);
    if (!pairs.emplace(name, value).second) usage("{} names {} twice", flag, name);
  }
  return pairs;
}

}  // namespace

std::pair<std::string, std::string> split_pair(const std::string& text, const std::string& flag) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    usage("{} {}: write NAME={}", flag, text, flag == "--size" ? "NUMBER" : "FILE.npy");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string text_of(const Parameter& parameter) {
  return fmt::format("{}: {}[{}]", parameter.name, name_of(parameter.type),
                     fmt::join(parameter.shape, ", "));
}

void KernelChoice::add_to(CLI::App& command) {
  command.add_option("FILE", file, "a .kiln file")->required();
  command.add_option("--kernel", kernel, "which kernel, where the file has several");
  command.add_flag("--no-schedule", no_schedule, "ignore the schedule blocks of the file");
  command.add_flag("--no-auto", no_auto, "leave stages without a step as plain loops");
  command.add_flag("--strict", strict, "never reassociate");
  command.add_flag("--fast", fast, "reassociate float scans and reductions where it helps");
}

Definition KernelChoice::load(const std::string& target) const {
  const std::vector<Definition> kernels = load_file(file);
  if (kernels.empty()) usage("{} has no kernel", file);
  auto chosen = kernels.begin();
  if (!kernel.empty()) {
    chosen = std::find_if(kernels.begin(), kernels.end(),
                          [&](const Definition& each) { return each.name() == kernel; });
    if (chosen == kernels.end()) {
      usage("{} has no kernel {}; it has {}", file, kernel, names_of(kernels));
    }
  } else if (kernels.size() > 1) {
    usage("{} has several kernels: choose one of {} with --kernel", file, names_of(kernels));
  }
  if (no_schedule) return chosen->without_schedule();
  return chosen->with_schedule(target == "llvm" ? "cpu" : target);
}

BuildOptions KernelChoice::options(const std::string& target) const {
  return {.target = target, .automatic = !no_auto, .strict = strict, .fast = fast};
}

void CallChoice::add_to(CLI::App& command) {
  command.add_option("--in", inputs, "an input: NAME=FILE.npy")->allow_extra_args(false);
  command.add_option("--size", sizes, "a size that no input gives: NAME=NUMBER")
      ->allow_extra_args(false);
  command.add_option("--device", device, "cpu, cuda or cuda:0")->capture_default_str();
  command.add_option("--timeout", timeout, "seconds that the call may take");
}

std::string CallChoice::target() const {
  if (device == "cpu" || device == "cpu:0") return "llvm";
  if (device == "cuda" || device == "cuda:0") return "cuda";
  usage("there is no device {}; known are cpu and cuda:0", device);
}

std::vector<Argument> CallChoice::load(const Definition& definition) const {
  std::map<std::string, std::string> files = pairs_of(inputs, "--in");
  std::vector<std::string> missing;
  std::vector<Argument> arguments;
  for (const Parameter& parameter : definition.parameters()) {
    if (parameter.output) continue;
    const auto file = files.find(parameter.name);
    if (file == files.end()) {
      missing.push_back(text_of(parameter));
      continue;
    }
    if (missing.empty()) arguments.emplace_back(read_npy(file->second, parameter.type));
    files.erase(file);
  }
  if (!files.empty()) usage("{} has no input {}", definition.name(), files.begin()->first);
  if (!missing.empty()) {
    usage("{} needs {}: give {} with --in NAME=FILE.npy", definition.name(),
          fmt::join(missing, ", "), missing.size() == 1 ? "it" : "them");
  }
  return arguments;
}

CallOptions CallChoice::options(const Definition& definition) const {
  const std::vector<std::string> known = definition.sizes();
  CallOptions options;
  for (const auto& [name, text] : pairs_of(sizes, "--size")) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      usage("--size {}={}: {} is no whole number", name, text, text);
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      usage("{} has no size {}", definition.name(), name);
    }
    options.sizes[name] = value;
  }
  options.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
  return options;
}

}  // namespace kiln::cli
