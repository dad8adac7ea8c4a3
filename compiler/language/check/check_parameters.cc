// What the argument list must have: an output, nothing twice, and every placeholder that some
// output needs. Stages that no output needs are not looked at: clients may leave them in.
#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/language/check/check.h"

namespace kiln::language {
namespace {

/// What a stage reads: the tensors in its bodies, or those a scan is made of.
std::vector<TensorId> reads_of(const Checked& checked, StageId id) {
  const auto* scan = std::get_if<Scan>(&checked.definition().stages[id]);
  if (scan == nullptr) return checked.facts.stage_reads[id];
  std::vector<TensorId> reads = scan->init;
  reads.insert(reads.end(), scan->update.begin(), scan->update.end());
  return reads;
}

}  // namespace

void check_parameters(Checked& checked) {
  const Definition& definition = checked.definition();
  std::vector<bool> reached(definition.stages.size());
  std::vector<TensorId> sorted = definition.parameters;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    fail(ErrorKind::InvalidArgument, "PARAMETER_TWICE", "{} is listed twice among the arguments",
         checked.tensor(*twice));
  }
  bool has_output = false;
  for (const TensorId parameter : definition.parameters) {
    if (!definition.is_output(parameter)) continue;
    has_output = true;
    reached[parameter.stage] = true;
  }
  if (definition.parameters.empty()) {
    fail(ErrorKind::InvalidArgument, "NO_OUTPUT",
         "there are no arguments; list the inputs, and a computed tensor");
  }
  if (!has_output) {
    std::vector<std::string> names;
    for (const TensorId parameter : definition.parameters)
      names.push_back(checked.tensor(parameter));
    fail(ErrorKind::InvalidArgument, "NO_OUTPUT",
         "there is no output among the arguments ({}); list a computed tensor, too",
         fmt::join(names, ", "));
  }
  const auto is_argument = [&](TensorId tensor) {
    return std::binary_search(sorted.begin(), sorted.end(), tensor);
  };
  // Stages read earlier ones only, so one sweep from the back reaches all.
  for (size_t i = definition.stages.size(); i-- > 0;) {
    const auto id = static_cast<StageId>(i);
    if (!reached[id]) continue;
    at_stage(checked, id, [&] {
      for (const TensorId tensor : reads_of(checked, id)) {
        reached[tensor.stage] = true;
        const bool given = !std::holds_alternative<Placeholder>(definition.stages[tensor.stage]) ||
                           checked.facts.state_of[tensor.stage] != kNoOwner || is_argument(tensor);
        if (given) continue;
        fail(ErrorKind::InvalidArgument, "PLACEHOLDER_NOT_GIVEN",
             "{} reads placeholder {}, which is not an argument; list {} among the arguments",
             checked.stage(id), checked.tensor(tensor), checked.tensor(tensor));
      }
    });
  }
}

}  // namespace kiln::language
