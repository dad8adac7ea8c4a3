// The flags that choose a kernel and give its arguments, with every mistake found before the
// service is asked.
//
//   --in A=a.npy --size n=8  ->  arguments in the order of the parameters
#include "client/cli/kernel_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "client/cli/files.h"
#include "client/cli/npy.h"
#include "client/cli/report.h"
#include "client/cpp/text_file.h"

namespace kiln::cli {
namespace {

template <typename... Args>
[[noreturn]] void usage(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

/// "cuda:1"
bool is_numbered_gpu(std::string_view device) {
  constexpr std::string_view kBefore = "cuda:";
  return device.starts_with(kBefore) && device.size() > kBefore.size() &&
         device.find_first_not_of("0123456789", kBefore.size()) == std::string_view::npos;
}

std::vector<std::string> names_of(const std::vector<Definition>& kernels) {
  std::vector<std::string> names;
  names.reserve(kernels.size());
  for (const Definition& kernel : kernels)
    names.push_back(kernel.name());
  return names;
}

/// The kernel called `wanted`, or the only one.
std::string choose_kernel(const std::vector<std::string>& kernels, const std::string& file,
                          const std::string& wanted) {
  if (!wanted.empty()) {
    const bool known = std::find(kernels.begin(), kernels.end(), wanted) != kernels.end();
    if (known) return wanted;
    usage("{} has no kernel {}; it has {}", file, wanted, fmt::join(kernels, ", "));
  }
  if (kernels.size() > 1) {
    usage("{} has several kernels: choose one of {} with --kernel", file, fmt::join(kernels, ", "));
  }
  return kernels[0];
}

/// NAME=VALUE flags by name, each name once.
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
    usage("{} {}: write NAME={}", flag, text,
          flag == "--size"    ? "NUMBER"
          : flag == "--shape" ? "ROWS,COLUMNS"
                              : "FILE.npy");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string text_of(const Parameter& parameter) {
  return fmt::format("{}: {}[{}]", parameter.name, name_of(parameter.type),
                     fmt::join(parameter.shape, ", "));
}

std::string schedule_block(const std::string& target, const std::vector<std::string>& steps) {
  return fmt::format("schedule {} {{\n{}\n}}\n", target, fmt::join(steps, "\n"));
}

std::string target_named(const std::string& name) {
  if (name == "llvm" || name == "cpu") return "llvm";
  if (name == "cuda") return "cuda";
  usage("there is no target {}; known are llvm (or cpu) and cuda", name);
}

void KernelChoice::add_to(CLI::App& command) {
  command.add_option("FILE", file, "a .kiln file; - for standard input")->required();
  add_flags_to(command);
}

void KernelChoice::add_flags_to(CLI::App& command) {
  command.add_option("--kernel", kernel, "which kernel, where the file has several");
  CLI::Option* const from =
      command.add_option("--schedule", schedule,
                         "a file of schedule blocks, in the place of those of the kernel file");
  command.add_flag("--no-schedule", no_schedule, "ignore the schedule blocks of the file")
      ->excludes(from);
  command.add_flag("--no-auto", no_auto, "leave stages without a step as plain loops");
  command.add_flag("--strict", strict, "never reassociate");
  command.add_flag("--fast", fast,
                   "reassociate float scans and reductions where it helps, and keep sums of "
                   "8-bit floats in the fewer bits of tensor cores");
}

std::pair<std::string, std::string> KernelChoice::read() const {
  if (file.ends_with(".npy")) {
    usage("{} is an array, but FILE is a kernel file; give arrays with --in NAME={}", file, file);
  }
  if (file == kStandard) return {read_standard_input("the kernel file"), "standard input"};
  return {detail::read_text(file), file};
}

Definition KernelChoice::load(const std::string& target) const {
  const auto [text, name] = read();
  return choose(text, name, target);
}

Definition KernelChoice::choose(const std::string& text, const std::string& file_name,
                                const std::string& target) const {
  const std::vector<Definition> kernels = parse(text, file_name);
  const std::string name = choose_kernel(names_of(kernels), file, kernel);
  const auto chosen = std::find_if(kernels.begin(), kernels.end(),
                                   [&](const Definition& each) { return each.name() == name; });
  return scheduled(*chosen, target);
}

Definition KernelChoice::scheduled(const Definition& definition, const std::string& target) const {
  if (no_schedule) return definition.without_schedule();
  const std::string block = target == "cuda" ? target : "cpu";
  if (schedule.empty()) return definition.with_schedule(block);
  const Definition with_blocks = definition.with_schedules(detail::read_text(schedule), schedule);
  const std::vector<std::string> blocks = with_blocks.schedules();
  if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) {
    usage("{} has no schedule for {}; it has one for {}", schedule, block, fmt::join(blocks, ", "));
  }
  return with_blocks.with_schedule(block);
}

BuildOptions KernelChoice::options(const std::string& target) const {
  return {.target = target, .automatic = !no_auto, .strict = strict, .fast = fast};
}

void CallChoice::add_to(CLI::App& command) {
  command.add_option("--in", inputs, "an input: NAME=FILE.npy; - for standard input")
      ->allow_extra_args(false);
  command.add_option("--size", sizes, "a size that no input gives: NAME=NUMBER")
      ->allow_extra_args(false);
  command.add_option("--device", device, "cpu, cuda, or a GPU by its number: cuda:1")
      ->capture_default_str();
  command.add_option("--timeout", timeout, "seconds that the call may take")
      ->check(CLI::PositiveNumber);
  command.add_flag("--interpret", interpret,
                   "run the loops as they are written, every index checked; slow");
  command.add_flag("--check-nan", check_nan,
                   "name the first element that becomes NaN; interprets the loops");
}

std::string CallChoice::target() const {
  const bool interprets = interpret || check_nan;
  if (device == "cpu" || device == "cpu:0") return interprets ? "interpreter" : "llvm";
  if (interprets) usage("the interpreter runs on the CPU; leave --device {} out", device);
  if (device == "cuda" || is_numbered_gpu(device)) return "cuda";
  usage("there is no device {}; known are cpu, cuda:0 and further GPUs by their numbers", device);
}

std::string CallChoice::numbered_gpu() const { return is_numbered_gpu(device) ? device : ""; }

BuildOptions CallChoice::build_options(const KernelChoice& kernel) const {
  BuildOptions options = kernel.options(target());
  options.check_nan = check_nan;
  return options;
}

std::vector<Argument> CallChoice::load(const std::string& kernel,
                                       const std::vector<Parameter>& parameters) const {
  std::map<std::string, std::string> files = pairs_of(inputs, "--in");
  std::vector<std::string> missing;
  std::vector<Argument> arguments;
  for (const Parameter& parameter : parameters) {
    if (parameter.output) continue;
    const auto file = files.find(parameter.name);
    if (file == files.end()) {
      missing.push_back(text_of(parameter));
      continue;
    }
    if (missing.empty()) arguments.emplace_back(read_npy(file->second, parameter.type));
    files.erase(file);
  }
  if (!files.empty()) usage("{} has no input {}", kernel, files.begin()->first);
  if (!missing.empty()) {
    usage("{} needs {}: give {} with --in NAME=FILE.npy", kernel, fmt::join(missing, ", "),
          missing.size() == 1 ? "it" : "them");
  }
  return arguments;
}

std::map<std::string, std::int64_t> CallChoice::sizes_among(
    const std::string& kernel, const std::vector<std::string>& known) const {
  std::map<std::string, std::int64_t> found;
  for (const auto& [name, text] : pairs_of(sizes, "--size")) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      usage("--size {}={}: {} is no whole number", name, text, text);
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      usage("{} has no size {}; {}", kernel, name,
            known.empty() ? "it has no sizes"
                          : fmt::format("its sizes are {}", fmt::join(known, ", ")));
    }
    found[name] = value;
  }
  return found;
}

CallOptions CallChoice::options(const Definition& definition) const {
  CallOptions options;
  options.device = numbered_gpu();
  options.sizes = sizes_among(definition.name(), definition.sizes());
  // Rounded up, since 0 would be no deadline.
  options.deadline =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(timeout * 1000)));
  return options;
}

}  // namespace kiln::cli
