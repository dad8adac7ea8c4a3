#pragma once

#include <optional>

#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The type of what cache_padded makes a stage of: a choice between an element of the tensor and
/// something else in the reader's expressions, or else the most that they compute of an element.
/// Nothing where they have neither, which the service says.
std::optional<DType> type_of_padded(const StageNode& reader, const Tensor& tensor);

}  // namespace detail
}  // namespace client
}  // namespace kiln
