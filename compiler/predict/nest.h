#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compiler/autoschedule/recognise/instructions.h"
#include "compiler/ir/kernel.h"

namespace kiln::predict {

/// Elements that one statement reads or writes in each iteration of the loops around it.
struct Touch {
  ir::BufferRef buffer;
  double buffer_bytes = 0;  // of all of it
  int64_t element_bytes = 4;
  int64_t lanes = 1;  // side by side; of a gather, each somewhere
  bool is_gather = false;
  int64_t lane_stride = 1;  // elements from lane to lane; of a gather by indices that are read, 0
  bool is_store = false;
  bool is_background = false;    // no thread waits for it here
  int64_t first = 0;             // the element of the first iteration of all loops
  std::vector<int64_t> strides;  // elements, one a loop around, from the outside in
  // Of each thread of a GPU's first warp, where divisions make their distances others than strides.
  std::vector<int64_t> elements_of_warp;
};

using autoschedule::Operations;

/// A sum that an iteration adds to, `updates` times one after the other.
struct Chain {
  int64_t updates = 0;
  bool is_float = true;
};

/// Loads of four matrices of 8 rows of 16 bytes each, or of a word of each lane four times.
struct MatrixLoads {
  ir::BufferRef buffer;
  int64_t count = 0;
  int64_t bytes = 0;            // of a row, or of a word
  std::vector<int64_t> places;  // in bytes, of what is loaded at once
};

/// What a warp of a GPU does for one iteration by matrix instructions: so many of them, and loads
/// of their factors. Each multiplies and adds `products` times.
struct Matrices {
  int64_t instructions = 0;
  std::vector<MatrixLoads> loads;
  int64_t products = 0;
  int64_t element_bytes = 2;  // of a factor
};

/// A loop, or the body of the kernel, in numbers: what stands directly in it, and the loops in it.
struct Nest {
  double extent = 1;
  ir::LoopKind kind = ir::LoopKind::Serial;
  ir::ThreadAxis thread = ir::ThreadAxis::None;
  std::vector<Operations> operations;
  std::vector<Touch> touches;  // of memory; what is kept in registers is none
  double unit_cycles = 0;      // of the matrix unit, for one iteration
  Matrices matrices;
  Chain chain;  // the longest, of what stands directly in it
  // Of the outermost loop over threads: the most words of 4 bytes that a thread has of its own at
  // once, in buffers and in fragments of matrices.
  int64_t words_of_thread = 0;
  std::vector<Nest> inner;
};

/// The loops of a kernel that the passes are done with, for sizes with these values. Branches that
/// the sizes decide are decided; of others the first is taken. Buffers of a thread's own that are
/// larger than its registers are in memory. `has_matrices`: a GPU multiplies factors of some types
/// by matrix instructions where the loops are in the order of their fragments.
using HasMatrices = std::function<bool(DType, DType)>;
Nest nest_of(const ir::Kernel& kernel, std::span<const int64_t> sizes, int64_t register_bytes,
             const HasMatrices& has_matrices = {});

}  // namespace kiln::predict
