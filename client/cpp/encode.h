#pragma once

#include <string>
#include <vector>

#include <kiln/tensor.h>

#include "client/cpp/language_border.h"
#include "client/cpp/program_graph.h"

namespace kiln {
inline namespace client {
namespace detail {

struct ScheduleState;

/// The wire form of a kernel with these arguments. `schedule` may be null; its steps become the
/// block named "".
border::WireKernel encode(const std::vector<Tensor>& arguments, const std::string& name,
                          const ScheduleState* schedule);

/// The definition of one node of a program: its inputs are placeholders, then come its outputs.
border::WireKernel encode_node(const GraphNode& node);

/// What the ids of a definition stand for in the program.
struct EncodedNodes {
  std::vector<std::shared_ptr<const StageNode>> stages;
  std::vector<const AxisNode*> axes;
  std::vector<Expr> sizes;
};

/// All that these tensors are computed from, its placeholders and those that are computed as
/// arguments: what the steps of a schedule, which become the block named "", can be named in.
border::WireKernel encode_behind(const std::vector<Tensor>& outputs, const ScheduleState* schedule,
                                 EncodedNodes& nodes);

}  // namespace detail
}  // namespace client
}  // namespace kiln
