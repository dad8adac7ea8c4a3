#pragma once

#include <cstddef>

#include "compiler/predict/nest.h"
#include "compiler/predict/warp_access.h"

namespace kiln::predict {

/// Threads of a warp.
constexpr double kWarp = 32;

/// What one thread of a launch does.
struct ThreadWork {
  double multiply_adds = 0;
  double products = 0;  // multiplications, of any type but indices
  double instructions = 0;
  double shared_cycles = 0;  // of a warp, at 128 bytes a cycle
  double global_bytes = 0;   // of a warp, in sectors
  double waits = 0;          // cycles in which an operation waits for the one before
  double load_waits = 0;     // and for memory, which goes on beside that
  bool takes_turns = false;  // a block waits for what it fetches, and computes then
  // Of a warp: matrix instructions, and their multiply-adds, of factors of so many bytes.
  double matrix_instructions = 0;
  double matrix_products = 0;
  // What is left of sums beside them, that lanes multiply from shared memory.
  double rest_instructions = 0;
  double rest_shared_cycles = 0;
  int64_t matrix_bytes = 2;

  ThreadWork& operator+=(const ThreadWork& other) {
    multiply_adds += other.multiply_adds;
    products += other.products;
    instructions += other.instructions;
    shared_cycles += other.shared_cycles;
    global_bytes += other.global_bytes;
    waits += other.waits;
    load_waits += other.load_waits;
    takes_turns = takes_turns || other.takes_turns;
    if (other.matrix_products > 0) matrix_bytes = other.matrix_bytes;
    matrix_instructions += other.matrix_instructions;
    matrix_products += other.matrix_products;
    rest_instructions += other.rest_instructions;
    rest_shared_cycles += other.rest_shared_cycles;
    return *this;
  }
  ThreadWork times(double count) const {
    return {.multiply_adds = multiply_adds * count,
            .products = products * count,
            .instructions = instructions * count,
            .shared_cycles = shared_cycles * count,
            .global_bytes = global_bytes * count,
            .waits = waits * count,
            .load_waits = load_waits * count,
            .takes_turns = takes_turns,
            .matrix_instructions = matrix_instructions * count,
            .matrix_products = matrix_products * count,
            .rest_instructions = rest_instructions * count,
            .rest_shared_cycles = rest_shared_cycles * count,
            .matrix_bytes = matrix_bytes};
  }
};

/// A launch in numbers, for sizes that are known.
struct LaunchWork {
  double blocks = 1;
  double threads = 1;  // of a block
  ThreadWork work;
  double memory_bytes = 0;  // of the buffers in memory that it touches
  int64_t registers = 0;    // of a thread, estimated
};

/// How the threads of a warp meet in one access of memory, or in one load of matrices.
struct AccessRow {
  ir::BufferRef buffer;
  bool is_store = false;
  bool is_matrix = false;
  int64_t bytes = 0;  // of a thread
  WarpAccess takes;

  bool is_shared() const { return buffer->scope == ir::Scope::Shared; }
};

/// Those of a launch, each that differs once.
std::vector<AccessRow> accesses_of_launch(const Nest& nest, size_t depth);

/// Of the loops over the threads of a launch, which have `depth` loops of the host around them, on
/// a GPU with so many multiprocessors.
LaunchWork launch_work(const Nest& nest, size_t depth, int64_t multiprocessors);

}  // namespace kiln::predict
