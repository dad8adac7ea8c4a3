#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/language/evaluate/host_tensor.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// Programs that run one after the other as one kernel: the last one computes its outputs, those
/// before it leave tensors for later ones.
struct Sequence {
  struct Step {
    Program program;
    std::vector<uint32_t> tensors;  // of each parameter: which of the sequence's it is
    bool operator==(const Step&) const = default;
  };

  std::vector<Parameter> tensors;  // those of the kernel in its order, then those left for later
  uint32_t given = 0;              // how many the kernel has
  std::vector<Step> steps;

  const Program& last() const { return steps.back().program; }
  std::span<const Parameter> left() const { return std::span(tensors).subspan(given); }
  bool operator==(const Sequence&) const = default;
};

/// One program, whose parameters are the kernel's.
Sequence alone(Program program);

/// Throws Internal TILE_PROGRAM with the rule that is broken: each program is one, it reads what
/// was given or stored before, and has tensors for what they are in memory.
void verify(const Sequence& sequence);

/// What a tensor takes in memory, over the sizes.
SizeExpr bytes_of(const Parameter& parameter);
/// What the tensors that programs leave take, one behind the other.
SizeExpr workspace_bytes(const Sequence& sequence);

/// The text of all programs, in order.
std::string print(const Sequence& sequence);

/// What the programs compute, as interpret() of each says; `inputs` are the kernel's.
std::vector<language::HostTensor> interpret(const Sequence& sequence,
                                            std::span<const int64_t> sizes,
                                            std::span<const language::HostTensor> inputs);

}  // namespace kiln::tile
