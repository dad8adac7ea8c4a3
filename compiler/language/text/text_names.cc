// Names that a file can have: any name of a client as an identifier, no two alike where they would
// be confused.
//
//   "a b"  ->  a_b     second "x"  ->  x_1     "true"  ->  true_
#include "compiler/language/text/text_names.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "compiler/language/state/schedule_state.h"

namespace kiln::language {
namespace {

constexpr auto kReserved = std::to_array<std::string_view>({"true", "false", "nan", "inf"});

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// "a b" -> "a_b", "1x" -> "_1x". Dots may stand between letters.
std::string identifier(std::string_view name) {
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool dot_inside = name[i] == '.' && i > 0 && result.back() != '.' &&
                            i + 1 < name.size() && in_name(name[i + 1]);
    result += in_name(name[i]) || dot_inside ? name[i] : '_';
  }
  if (result.empty() || (result[0] >= '0' && result[0] <= '9')) result.insert(0, "_");
  if (std::find(kReserved.begin(), kReserved.end(), result) != kReserved.end()) result += '_';
  return result;
}

using Taken = std::set<std::string, std::less<>>;

/// The name, with _1, _2 .. where it is taken; it is taken afterwards.
std::string unique(std::string name, Taken& taken) {
  const std::string first = name;
  for (int i = 1; taken.contains(name); ++i) {
    name = fmt::format("{}_{}", first, i);
  }
  taken.insert(name);
  return name;
}

void rename_stages(const Definition& definition, const SourceMap& given, const Taken& sizes,
                   SourceMap& names) {
  Taken taken = sizes;
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    const uint32_t outputs = output_count(definition.stages[id]);
    if (outputs == 1) {
      names.stages[id] = unique(identifier(names.stages[id]), taken);
      continue;
    }
    for (uint32_t i = 0; i < outputs; ++i) {
      const std::string output = given.tensor_name(definition, {id, i});
      names.tensors[{id, i}] = unique(identifier(output), taken);
    }
    // A schedule names the stage by its first output.
    names.stages[id] = names.tensors[{id, 0}];
  }
}

void rename_reducers(const Taken& sizes, SourceMap& names) {
  Taken reducers;
  for (const CombinerRow& row : combiner_table())
    reducers.emplace(row.spelling);
  for (SourceMap::ReducerNames& reducer : names.reducers) {
    // A dot would look like one of its results.
    std::replace(reducer.name.begin(), reducer.name.end(), '.', '_');
    reducer.name = unique(identifier(reducer.name), reducers);
    Taken values = sizes;
    for (std::string& name : reducer.parameters)
      name = unique(identifier(name), values);
  }
}

void rename_axes(const Definition& definition, const Taken& sizes, SourceMap& names) {
  std::vector<bool> used(definition.axes.size());
  for (const Expression& expression : definition.expressions) {
    if (const auto* use = std::get_if<AxisUse>(&expression.node)) used[use->axis] = true;
  }
  const std::vector<int> owners = owners_of_axes(definition);
  std::vector<Taken> taken_in(definition.stages.size(), sizes);
  std::vector<bool> has_blank(definition.stages.size());
  for (AxisId axis = 0; axis < definition.axes.size(); ++axis) {
    std::string& name = names.axes[axis];
    const bool is_blank = name == "_" && !used[axis];
    name = identifier(name);
    if (owners[axis] < 0) continue;
    const auto owner = static_cast<size_t>(owners[axis]);
    // A second blank gets a name, so that a step can tell the two apart.
    if (is_blank && !has_blank[owner]) {
      has_blank[owner] = true;
    } else {
      name = unique(std::move(name), taken_in[owner]);
    }
  }
}

}  // namespace

SourceMap printable_names(const Kernel& kernel) {
  const Definition& definition = kernel.definition;
  SourceMap names = kernel.names;
  names.kernel = identifier(names.kernel);
  std::replace(names.kernel.begin(), names.kernel.end(), '.', '_');
  Taken sizes = {"_"};  // several axes may be called so; what is used must not
  for (std::string& name : names.variables) {
    name = unique(identifier(name), sizes);
  }
  rename_stages(definition, kernel.names, sizes, names);
  rename_reducers(sizes, names);
  rename_axes(definition, sizes, names);
  return names;
}

}  // namespace kiln::language
