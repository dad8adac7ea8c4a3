#pragma once

#include <cstdint>

namespace kiln::predict {

/// What the machine code of a launch says of it, which its loops leave to the compiler.
struct LaunchFacts {
  /// Who multiplies in its main loop: float32 lanes, or tensor cores, told by a warp at a time.
  enum class Unit { Lanes, Warps };

  Unit unit = Unit::Lanes;
  int64_t instructions = 0;    // of a kernel without a main loop; 0: it has one
  double share = 0;            // of the instructions of the main loop, those that multiply
  double products = 1;         // multiply-adds of one of these, for a warp
  double shared_cycles = 0;    // of shared memory, for one of these
  double spills = 0;           // accesses of the stack, for one of these
  int64_t element_bytes = 2;   // of the factors that tensor cores multiply
  int64_t blocks_at_once = 0;  // on a multiprocessor; 0: not known
};

/// What the machine code of a program on tiles says of it.
struct TileFacts {
  double issue = 0;            // cycles of the schedulers for 1024 products of tensor cores
  int64_t blocks_at_once = 1;  // on a multiprocessor
};

}  // namespace kiln::predict
