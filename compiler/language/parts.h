#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"

namespace kiln::language {

/// Stages that are computed together: one alone, or a scan with its cells, its state and its first
/// values.
struct Part {
  std::string name;
  std::vector<StageId> stages;
  std::vector<TensorId> inputs;   // what they read of others
  std::vector<TensorId> outputs;  // what others, or the caller, have of them
};

/// The tensors that a stage reads, in the order of its text, some more than once; what decides the
/// extents of its axes and reductions included.
std::vector<TensorId> reads_of(const Definition& definition, StageId stage);

/// The parts of a definition that compute something, in the order of their stages.
std::vector<Part> parts_of(const Definition& definition, const SourceMap& names);

/// A part as a kernel of its own, whose parameters are its inputs, then its outputs. The sizes and
/// the lines are those of the whole.
Kernel kernel_of(const Kernel& whole, const Part& part);

/// What a part has to do at least, whatever its schedule. A loop as long as a tensor says counts as
/// one iteration.
struct Work {
  double operations = 0;     // + - * / min, max and functions, of values and not of indices
  double bytes_read = 0;     // each element that can be asked for, once
  double bytes_written = 0;  // each element, once
};
Work work_of(const Definition& definition, const Part& part, std::span<const int64_t> sizes);

}  // namespace kiln::language
