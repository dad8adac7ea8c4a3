// The artifact of the interpreter: loops after the first simplify, as text. Stages are renamed
// after their numbers before lowering, so that equal definitions give equal bytes; messages are
// translated back when a call has a caller.
#include "compiler/loops_artifact.h"

#include <charconv>

#include "compiler/codegen/artifact_parts.h"
#include "compiler/ir/print.h"
#include "compiler/report.h"
#include "compiler/requirements.h"

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "stage";  // stage3, and stage3.local of its buffers

}  // namespace

Artifact compile_loops(const language::Kernel& kernel, const language::Schedule& schedule,
                       const Target& target, const CompileOptions& options) {
  language::Kernel numbered = kernel;
  for (size_t stage = 0; stage < numbered.names.stages.size(); ++stage)
    numbered.names.stages[stage] = fmt::format("{}{}", kPrefix, stage);
  numbered.names.tensors.clear();

  CountAccesses count;
  const ir::Kernel loops = plain_loops(numbered, schedule, target, options, count);
  Artifact artifact;
  artifact.target = TargetKind::Interpreter;
  artifact.arch = options.check_nan ? kLoopsWithoutNan : kCheckedLoops;
  artifact.code = ir::print(loops);
  artifact.size_count = static_cast<int32_t>(loops.sizes.size());
  artifact.parameters = codegen::parameters_of(loops);
  artifact.checks = loops.checks;
  Variant variant;
  variant.condition = codegen::is_compact(artifact.parameters, artifact.size_count);
  variant.launches = {Launch{"loops", {}, {}}};
  artifact.variants = {std::move(variant)};
  artifact.requirements = size_requirements(kernel.definition, loops.sizes);
  artifact.report = report_of(loops, artifact, count.accesses);
  return artifact;
}

std::optional<size_t> stage_of_buffer(std::string_view buffer) {
  if (!buffer.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = buffer.substr(kPrefix.size());
  size_t stage = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), stage);
  if (error != std::errc{}) return std::nullopt;
  return stage;
}

// What passes append to a name stays: ".local", "_1".
std::string user_name(std::string_view buffer, const KernelNames& names) {
  const std::optional<size_t> stage = stage_of_buffer(buffer);
  if (!stage || *stage >= names.stages.size()) return std::string(buffer);
  const size_t end = buffer.find_first_not_of("0123456789", kPrefix.size());
  return names.stages[*stage] +
         std::string(end == std::string_view::npos ? "" : buffer.substr(end));
}

}  // namespace kiln
