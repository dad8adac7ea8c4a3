// `kiln differentiate FILE.kiln`: the gradients of a kernel, as a kernel file.
#include <iostream>
#include <memory>

#include "client/cli/kernel_file.h"
#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cpp/text_file.h"

namespace kiln::cli {
namespace {

struct DifferentiateCommand {
  std::string file;
  std::string kernel;
  std::vector<std::string> of;
  std::vector<std::string> by;
  std::string out;

  int run(const Common& common) const {
    const Definition definition = KernelChoice{.file = file, .kernel = kernel}.load("llvm");
    const std::string text = common.connect().differentiate(definition, of, by).text();
    if (!out.empty()) {
      detail::write_text(out, text);
    } else if (common.json) {
      std::cout << nlohmann::ordered_json{{"text", text}}.dump(2) << "\n";
    } else {
      std::cout << text;
    }
    return kDone;
  }
};

}  // namespace

void add_differentiate(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "differentiate",
                                  "print the gradients of a kernel, as a kernel file");
  const auto state = std::make_shared<DifferentiateCommand>();
  command.add_option("FILE", state->file, "a .kiln file")->required();
  command.add_option("--kernel", state->kernel, "which kernel, where the file has several");
  command.add_option("--of", state->of, "an output to differentiate; without it, all");
  command.add_option("--by", state->by,
                     "an input to differentiate with respect to; without it, all");
  command.add_option("--out", state->out, "write to this file");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
