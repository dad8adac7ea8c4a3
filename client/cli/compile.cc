// `kiln compile` and `kiln lower`: what a kernel becomes, without running it. Also for targets that
// the service has no device for.
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "client/cli/files.h"
#include "client/cli/kernel_file.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cpp/export_artifact.h"

namespace kiln::cli {
namespace {

void print_text(const std::string& text) {
  std::cout << text << (text.ends_with('\n') ? "" : "\n");
}

/// A value within a line: what is in an object stands in brackets behind its name.
std::string in_line(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.3g}", value.get<double>());
  if (!value.is_object()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [name, field] : value.items()) {
    const std::string text = in_line(field);
    parts.push_back(field.is_object() ? fmt::format("{} ({})", name, text)
                                      : fmt::format("{} {}", name, text));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// A report as indented lines: `name: value`, and lists with a dash an entry.
void print_report(const nlohmann::ordered_json& value, int depth) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      if (inner.is_structured() && !inner.empty()) {
        std::cout << indent << name << ":\n";
        print_report(inner, depth + 1);
      } else if (!inner.is_structured()) {
        std::cout << indent << name << ": " << in_line(inner) << "\n";
      }
    }
    return;
  }
  for (const auto& inner : value) {
    std::cout << indent << "- " << in_line(inner) << "\n";
  }
}

struct CompileCommand {
  KernelChoice kernel;
  std::string target = "llvm";
  std::string arch;
  bool report = false;
  CallChoice call;  // its sizes
  std::string emit;
  std::string file;

  int run(const Common& common) const {
    const std::string name = target_named(target);
    if (name != "cuda" && (emit == "cuda" || emit == "ptx" || emit == "tile")) {
      throw UsageError(fmt::format(
          "{} is code of a GPU: add --target cuda, and --arch sm_90 where the service has none",
          emit));
    }
    const Definition definition = kernel.load(name);
    BuildOptions options = kernel.options(name);
    options.arch = arch;
    const Kernel compiled = compile_anywhere(common, definition, options);
    std::string artifact;
    if (!file.empty()) {
      artifact = client::detail::exported(*compiled.state());
      write_through(file, [&](std::ostream& out) { out << artifact; });
    }
    const std::map<std::string, std::int64_t> given = call.options(definition).sizes;
    if (common.json) {
      print_json(compiled, given);
    } else if (!emit.empty()) {
      print_text(compiled.source(emit, SourceLocation::none()));
    } else if (report) {
      print_report(nlohmann::ordered_json::parse(compiled.report(given)), 0);
    } else {
      const Timings timings = compiled.build_timings();
      const std::string wrote =
          file.empty() ? "" : fmt::format("; {} bytes in {}", artifact.size(), file);
      std::cout << fmt::format("{}: compiled for {}{} in {} (cache: {}){}\n", compiled.name(), name,
                               arch.empty() ? "" : " " + arch, time_text(timings.compile),
                               timings.cache, wrote);
    }
    return 0;
  }

  /// With --report alone the report itself, as a program wants it.
  void print_json(const Kernel& compiled, const std::map<std::string, std::int64_t>& given) const {
    nlohmann::ordered_json object;
    if (report) {
      object = nlohmann::ordered_json::parse(compiled.report(given));
    } else {
      object = {{"kernel", compiled.name()}, {"timings", to_json(compiled.build_timings())}};
    }
    if (!file.empty()) object["file"] = file;
    if (!emit.empty()) object["source"] = compiled.source(emit, SourceLocation::none());
    std::cout << object.dump(2) << "\n";
  }
};

struct LowerCommand {
  KernelChoice kernel;
  std::string target = "llvm";
  LowerOptions options;

  int run(const Common& common) const {
    const std::string name = target_named(target);
    const std::string text = common.connect().lower(kernel.load(name), options,
                                                    kernel.options(name), SourceLocation::none());
    if (common.json) {
      std::cout << nlohmann::ordered_json{{"text", text}}.dump(2) << "\n";
    } else {
      print_text(text);
    }
    return 0;
  }
};

}  // namespace

void add_compile(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "compile",
                                  "compile a kernel, also for a device that the service lacks");
  const auto state = std::make_shared<CompileCommand>();
  state->kernel.add_to(command);
  command.add_option("--target", state->target, "llvm (or cpu), or cuda")->capture_default_str();
  command.add_option("--arch,--cpu", state->arch,
                     "sm_90, or a CPU's name; without it that of the device");
  command.add_flag("--report", state->report, "print guards, proofs, launches and kernels");
  command
      .add_option("--size", state->call.sizes,
                  "with --report for a GPU, what a call takes is predicted: NAME=NUMBER")
      ->allow_extra_args(false);
  command.add_option("--emit", state->emit, "print a source of the kernel")
      ->check(CLI::IsMember({"lowered", "llvm", "asm", "cuda", "ptx", "tile"}));
  command.add_option(
      "-o,--out", state->file,
      "write the compiled kernel to NAME.kart, which kiln run runs without a service");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

void add_lower(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "lower", "print the loops of a kernel");
  const auto state = std::make_shared<LowerCommand>();
  state->kernel.add_to(command);
  command.add_option("--target", state->target, "llvm (or cpu), or cuda")->capture_default_str();
  command.add_option("--after", state->options.after, "the loops after this pass");
  command.add_flag("--auto", state->options.automatic,
                   "the loops that will run, with untouched stages scheduled");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
