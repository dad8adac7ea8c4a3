#pragma once

#include <map>
#include <string>

#include "kiln/v1/service.pb.h"
#include "runtime/core/arguments.h"
#include "runtime/core/artifact.h"

namespace kiln::server {

/// Arguments for a call that only measures: inputs drawn for a fixed seed, outputs to be allocated.
/// Floats are in [0.5, 1) with random mantissas, so that sums in another order are other sums and
/// no function leaves its domain; integers are in [0, 8).
///
/// Throws InvalidArgument SIZE for a size that `sizes` does not have, ResourceExhausted
/// TENSOR_MEMORY past `limit_bytes`.
void make_up_arguments(const Artifact& artifact, const KernelNames& names,
                       const std::map<std::string, int64_t>& sizes, int64_t limit_bytes,
                       v1::RunRequest& request);

}  // namespace kiln::server
