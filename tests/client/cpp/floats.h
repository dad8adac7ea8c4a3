#pragma once

#include <vector>

#include <kiln/array.h>

namespace kiln::test {

inline Array array_of(const std::vector<float>& values) {
  return {values, {static_cast<std::int64_t>(values.size())}};
}

inline std::vector<float> values_of(const Array& array) {
  return {array.values<float>().begin(), array.values<float>().end()};
}

}  // namespace kiln::test
