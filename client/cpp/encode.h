#pragma once

#include <string>
#include <vector>

#include <kiln/tensor.h>

#include "client/cpp/language_border.h"

namespace kiln {
inline namespace client {
namespace detail {

struct ScheduleState;

/// The wire form of a kernel with these arguments. `schedule` may be null; its steps become the
/// block named "".
border::WireKernel encode(const std::vector<Tensor>& arguments, const std::string& name,
                          const ScheduleState* schedule);

}  // namespace detail
}  // namespace client
}  // namespace kiln
