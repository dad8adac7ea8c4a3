#pragma once

#include <string>
#include <vector>

namespace kiln {
inline namespace client {
namespace detail {

/// A file of compiler/operators, which the build puts into the library.
struct OperatorText {
  const char* file;
  const char* text;
};
const std::vector<OperatorText>& operator_texts();

}  // namespace detail
}  // namespace client
}  // namespace kiln
