#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/artifact.h"
#include "runtime/core/error.h"

namespace kiln {

/// What one caller calls things, for messages. Indexed as the artifact is.
struct KernelNames {
  std::string kernel;
  std::vector<std::string> parameters;
  std::vector<std::string> sizes;
  std::vector<std::string> stages;
  std::vector<SourceLocation> lines = {};  // where each stage was written; may be empty
};

/// The type and layout of one argument of a call. Strides in elements; empty: compact, row-major.
struct ArgumentShape {
  DType type;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

/// An argument of a call: given, or (an output only) to be allocated with the shape that the sizes
/// say.
struct ArgumentSlot {
  bool given = true;
  ArgumentShape layout;
};

/// What a call's arguments say: all that the runtime needs beside their addresses.
struct BoundCall {
  std::vector<int64_t> scalars;              // sizes, then strides of all parameters
  std::vector<std::vector<int64_t>> shapes;  // of each parameter
  int variant = 0;
};

/// Checks count, type, rank and every dimension, and finds the sizes.
///
/// Throws InvalidArgument with the sentences of the design, e.g. `argument B of matmul: dimension 0
/// is 400, but must be 500 (l, from dimension 1 of A)`. `given_sizes` are sizes by name; one that
/// contradicts a shape is an error, as is a size that nothing gives.
BoundCall bind_arguments(const Artifact& artifact, const KernelNames& names,
                         std::span<const ArgumentSlot> arguments,
                         const std::map<std::string, int64_t>& given_sizes);

/// Row-major strides in elements.
std::vector<int64_t> compact_strides(std::span<const int64_t> shape);

/// Elements of a shape times the size of one. Throws ResourceExhausted SIZE_OVERFLOW.
int64_t byte_size(DType type, std::span<const int64_t> shape);

}  // namespace kiln
