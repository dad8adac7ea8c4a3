#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::autoschedule {

/// What a GPU does in a cycle of a multiprocessor, as far as schedules are chosen by it.
struct GpuMachine {
  int64_t multiprocessors = 0;
  int64_t float_lanes = 0;  // float32 multiply-adds a cycle
  double l2_bytes = 0;      // a cycle, from L2
};

/// A GPU of this architecture ("sm_90", "sm_90a"; empty: the default), or of the nearest one.
const GpuMachine& gpu_machine(std::string_view arch);

}  // namespace kiln::autoschedule
