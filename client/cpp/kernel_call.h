#pragma once

#include <vector>

#include "client/cpp/kernel_state.h"

namespace kiln {
inline namespace client {
namespace detail {

/// Packs a call, runs it and takes its results.
Outputs call_kernel(KernelState& kernel, const std::vector<Argument>& arguments,
                    const CallOptions& options, const CallControl& control);

/// The results of a call that has run; notes where its time went.
Outputs take_outputs(KernelState& kernel, const PreparedCall& call, const RunReply& reply,
                     const CallControl& control);

/// A call that reads and writes one tensor of the service gives another result the second time.
bool is_idempotent(const v1::RunRequest& request, const std::vector<Parameter>& parameters);

}  // namespace detail
}  // namespace client
}  // namespace kiln
