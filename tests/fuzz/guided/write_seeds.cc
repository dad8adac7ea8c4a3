// write_seeds FOLDER KERNEL_FILE...: first inputs for coverage-guided fuzzing, from kernel files.

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "kiln/v1/service.pb.h"
#include "tests/fuzz/guided/targets.h"
#include "tests/support/tensors.h"

namespace kiln::testing {
namespace {

namespace fs = std::filesystem;
using language::TextKernel;

/// A call with all sizes the same.
v1::RunRequest call_of(const language::Kernel& kernel, int64_t size) {
  v1::RunRequest run;
  const language::Definition& definition = kernel.definition;
  const std::vector<int64_t> sizes(definition.variables.size(), size);
  for (const std::string& name : kernel.names.variables)
    (*run.mutable_sizes())[name] = size;
  for (const language::TensorId parameter : definition.parameters) {
    v1::Argument& argument = *run.add_arguments();
    if (definition.is_output(parameter)) {
      argument.mutable_output();
      continue;
    }
    v1::Inline& value = *argument.mutable_inline_();
    value.set_type(static_cast<v1::DataType>(definition.type_of(parameter)));
    for (const language::ExprId extent : definition.shape_of(parameter))
      value.add_shape(language::evaluate_size(definition, extent, sizes));
  }
  return run;
}

class Writer {
 public:
  explicit Writer(fs::path folder) : folder_(std::move(folder)) {
    for (const FuzzTarget& target : fuzz_targets())
      fs::create_directories(folder_ / target.name);
  }

  void write(const char* target, const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / target / name, std::ios::binary) << bytes;
  }

  void write(const TextKernel& kernel, const std::string& name) const {
    v1::KernelText text;
    *text.mutable_definition() = encode(kernel.kernel.definition);
    *text.mutable_source_map() = encode(kernel.kernel.names);
    for (const auto& [target, schedule] : kernel.schedules) {
      v1::ScheduleBlock& block = *text.add_schedules();
      block.set_target(target);
      *block.mutable_schedule() = encode(schedule);
    }
    write("kernel", name, text.SerializeAsString());
    v1::SubmitRequest request;
    *request.mutable_kernel()->mutable_definition() = text.definition();
    *request.mutable_kernel()->mutable_source_map() = text.source_map();
    request.mutable_kernel()->mutable_target()->set_name("llvm");
    *request.mutable_run() = call_of(kernel.kernel, 3);
    write("request", name, request.SerializeAsString());
    const std::string file = language::print_text({kernel.kernel, {}});
    for (const auto& [target, schedule] : kernel.schedules) {
      const std::string of_target = fmt::format("{}.{}", name, target);
      *request.mutable_kernel()->mutable_schedule() = encode(schedule);
      request.mutable_kernel()->mutable_target()->set_name(target == "cuda" ? "cuda" : "llvm");
      write("request", of_target, request.SerializeAsString());
      write("schedule", of_target,
            file + "\n----\n" + language::print_schedule(kernel.kernel, target, schedule));
    }
  }

 private:
  const fs::path folder_;
};

int run(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: write_seeds FOLDER KERNEL_FILE...\n");
    return 2;
  }
  const Writer writer(argv[1]);
  for (int i = 2; i < argc; ++i) {
    const fs::path path = argv[i];
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string name = path.parent_path().filename().string() + "." + path.stem().string();
    writer.write("text", name, text.str());
    for (const TextKernel& kernel : language::parse_text(text.str(), path.string()))
      writer.write(kernel, name + "." + kernel.kernel.names.kernel);
  }
  return 0;
}

}  // namespace
}  // namespace kiln::testing

int main(int argc, char** argv) { return kiln::testing::run(argc, argv); }
