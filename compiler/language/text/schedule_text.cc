// Schedules apart from their kernel: parses and prints blocks, and puts those of a schedule file
// into a kernel file. Blocks are replaced by places in the text, so that comments and layout of the
// rest stay.
#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/language/check/check.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/build_text.h"
#include "compiler/language/text/text.h"
#include "compiler/language/text/text_names.h"

namespace kiln::language {
namespace {

using syntax::KernelText;
using syntax::ScheduleBlock;
using syntax::Source;
using syntax::Tree;

Tree parse_schedule_file(const Source& source, const Limits& limits) {
  check_limit("the file", "bytes", static_cast<int64_t>(source.text().size()), limits.text_bytes);
  Tree tree = syntax::parse(source, limits.depth, limits.expressions);
  if (!tree.kernels.empty()) {
    source.refuse(tree.kernels[0].place, "expected a schedule, but found kernel");
  }
  return tree;
}

/// The kernel of this name; with no name the only one.
const KernelText& find_kernel(const Tree& tree, std::string_view name, std::string_view file) {
  std::vector<std::string_view> names;
  for (const KernelText& kernel : tree.kernels) {
    if (kernel.name == name || (name.empty() && tree.kernels.size() == 1)) return kernel;
    names.push_back(kernel.name);
  }
  if (name.empty() && !names.empty()) {
    fail(ErrorKind::InvalidArgument, "KERNEL", "{} has several kernels: choose one of {}", file,
         fmt::join(names, ", "));
  }
  fail(ErrorKind::NotFound, "KERNEL", "{} has no kernel {}; it has {}", file, name,
       fmt::join(names, ", "));
}

std::string_view text_of(const Source& source, const ScheduleBlock& block) {
  return source.text().substr(block.place, block.end - block.place);
}

/// A part of a text and what stands there afterwards.
struct Edit {
  size_t begin = 0;
  size_t end = 0;
  std::string text;
};

/// What puts `block` into the kernel: in the place of its block for the same target, or at the end.
Edit edit_for(const KernelText& kernel, const Source& source, const ScheduleBlock& block) {
  for (const ScheduleBlock& own : kernel.schedules) {
    if (own.target != block.target) continue;
    return {own.place, own.end, std::string(text_of(source, block))};
  }
  return {kernel.closing, kernel.closing, fmt::format("\n\n{}\n", text_of(source, block))};
}

}  // namespace

TargetSchedules parse_schedules(std::string_view text, std::string_view file_name,
                                const Kernel& kernel, const Limits& limits) {
  const Source source(text, file_name);
  const Tree tree = parse_schedule_file(source, limits);
  return syntax::build_schedules(source, tree.schedules, kernel, limits);
}

std::string print_schedule(const Kernel& kernel, std::string_view target,
                           const Schedule& schedule) {
  std::string text = fmt::format("schedule {} {{\n", target);
  const SourceMap names = printable_names(kernel);
  for (const std::string& step : kernel_file_text(schedule, kernel.definition, names)) {
    text += fmt::format("  {}\n", step);
  }
  return text + "}\n";
}

std::string apply_schedules(std::string_view text, std::string_view file_name,
                            std::string_view kernel, std::string_view schedules,
                            std::string_view schedule_file, const Limits& limits) {
  check_limit("the file", "bytes", static_cast<int64_t>(text.size()), limits.text_bytes);
  const Source source(text, file_name);
  const Tree tree = syntax::parse(source, limits.depth, limits.expressions);
  if (!tree.schedules.empty()) {
    source.refuse(tree.schedules[0].place, "expected a kernel, but found schedule");
  }
  const KernelText& target = find_kernel(tree, kernel, file_name);
  // Its own blocks are not looked at: they may be what is to be mended.
  parse_schedules(schedules, schedule_file, syntax::build_kernel(source, tree, target, limits),
                  limits);

  const Source blocks(schedules, schedule_file);
  const Tree block_tree = parse_schedule_file(blocks, limits);
  std::vector<Edit> edits;
  for (const ScheduleBlock& block : block_tree.schedules) {
    edits.push_back(edit_for(target, blocks, block));
  }
  // From the back, so that places in front stay what they are.
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result(text);
  for (size_t i = edits.size(); i-- > 0;) {
    result.replace(edits[i].begin, edits[i].end - edits[i].begin, edits[i].text);
  }
  return format_text(result, file_name, limits);
}

}  // namespace kiln::language
