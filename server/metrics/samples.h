#pragma once

#include <vector>

#include "server/metrics/metrics.h"

namespace kiln::server {

class Engine;

/// The metrics of an engine that it counts or knows anyway.
std::vector<Sample> samples_of(const Engine& engine);
/// Those of this process, as all Prometheus clients call them.
std::vector<Sample> process_samples();

}  // namespace kiln::server
