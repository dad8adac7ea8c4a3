// The order of the checks of a definition: limits and tables first, so that later ones may index,
// then reducers, axes, bodies, scans, arguments, each relying on those before it.
#include "compiler/language/wire/decode.h"

#include "compiler/language/wire/decode_parts.h"

namespace kiln::language {

SourceLocation Checked::location(StageId id) const {
  const SourceMap::Line line = kernel.names.stage_lines[id];
  if (line.line == 0) return {};
  const std::string file =
      line.file < kernel.names.files.size() ? kernel.names.files[line.file] : "";
  return {file, static_cast<int>(line.line)};
}

std::string_view Checked::reducer(const Reduction& reduction) const {
  return reduction.combiner ? row_of(*reduction.combiner).spelling
                            : std::string_view(kernel.names.reducers[reduction.reducer].name);
}

void check_limit(std::string_view what, std::string_view unit, int64_t value, int64_t limit) {
  if (value <= limit) return;
  fail(ErrorKind::ResourceExhausted, "LIMIT", "{} has {} {}; the limit is {}", what, value, unit,
       limit);
}

Kernel decode(const v1::Definition& definition, const v1::SourceMap& source_map,
              const Limits& limits) {
  check_limit("the definition", "stages", definition.stages_size(), limits.stages);
  check_limit("the definition", "axes", definition.axes_size(), limits.axes);
  check_limit("the definition", "expressions", definition.expressions_size(), limits.expressions);
  check_limit("the definition", "sizes", definition.variables_size(), limits.axes);
  check_limit("the definition", "reducers", definition.reducers_size(), limits.stages);

  Checked checked = {
      .kernel = {{}, decode_names(source_map, definition, limits)}, .facts = {}, .limits = limits};
  decode_tables(definition, checked);
  decode_expressions(definition, checked);
  check_reducers(checked);
  check_axes(checked);
  check_stages(checked);
  check_scans(checked);
  check_parameters(checked);
  return std::move(checked.kernel);
}

}  // namespace kiln::language
