#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/ir/gpu_arch.h"
#include "runtime/core/gpu_name.h"

namespace kiln::autoschedule {

/// What a GPU does in a cycle of a multiprocessor.
struct GpuMachine {
  std::string name = {};
  int64_t multiprocessors = 0;
  int64_t float_lanes = 0;  // float32 multiply-adds a cycle
  /// Multiply-adds of 16-bit floats a cycle by tensor cores; of bytes there are twice as many. And
  /// what instructions of single warps (mma.sync) come to of these.
  int64_t matrix_lanes = 0;
  double warp_share = 1;
  double l2_bytes = 0;      // a cycle, from L2
  double memory_bytes = 0;  // a cycle, from memory, where all of them read
  int64_t l2_size = 0;      // bytes, of all of them together
  double gigahertz = 0;
  bool bytes_along_sums = false;  // as ir::GpuArch has it
};

/// Of each multiprocessor: instructions that it starts in a cycle, one a scheduler, and bytes that
/// it moves to or from shared memory (CUDA C++ programming guide).
constexpr double kSchedulers = 4;
constexpr double kSharedBytes = 128;
/// That one multiprocessor gets of L2 in a cycle at most, however few others ask for theirs (Z. Jia
/// et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018).
constexpr double kL2BytesOfOne = 64;
/// Of a thread: what one access moves at most.
constexpr int64_t kVectorBytesOfThread = 16;
using ir::kBankBytes;
using ir::kBanks;

/// Cycles that a load from memory takes: estimated. And one from L2, where all of it is: 193 on
/// Volta, 200 on Ampere, 260 on Hopper (the same; W. Luo et al., 2024), with what stores it then.
constexpr double kLoadCycles = 600;
constexpr double kL2LoadCycles = 300;

/// Loads of a loop that a thread has under way at once, where a launch has so many threads for each
/// multiprocessor: as many as it is given registers for (codegen/launch_bounds.cc).
double loads_under_way(double threads);

/// What a launch takes beside its work: estimated.
constexpr double kLaunchSeconds = 2e-6;

/// A GPU of this architecture ("sm_90", "sm_90a"; empty: the default), or of the nearest one, with
/// the figures that the name says of it (runtime/core/gpu_name.h).
GpuMachine gpu_machine(std::string_view arch);

/// The name of an architecture for a GPU of it: with its figures, where they are others than those
/// of the table by more than a few percent. Figures of 0 are not known.
std::string arch_for(std::string_view arch, const GpuFigures& figures);

/// "H100 SXM: 132 multiprocessors of 128 float32 lanes, .."
std::string text_of(const GpuMachine& machine);

}  // namespace kiln::autoschedule
