// Looks up the numbers of a sketch by name, and says whether some are of its space: records of
// `tune` outlive the program that wrote them.
#include "compiler/autoschedule/templates/sketch.h"

#include <algorithm>

namespace kiln::autoschedule {

int64_t Values::get(std::string_view name, int64_t otherwise) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return values_[i];
  }
  return otherwise;
}

std::vector<int64_t> Sketch::preferred() const {
  std::vector<int64_t> values;
  for (const Parameter& parameter : parameters)
    values.push_back(parameter.preferred);
  return values;
}

bool Sketch::has(std::span<const int64_t> values) const {
  if (values.size() != parameters.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::ranges::binary_search(parameters[i].values, values[i])) return false;
  }
  return true;
}

}  // namespace kiln::autoschedule
