#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/language/evaluate/host_tensor.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// Programs that run one after the other as one kernel: the last one computes its outputs, those
/// before it leave tensors for later ones. Of a given tensor whose open rows begin at multiples of
/// some elements, the sequence is for calls whose rows are such multiples.
struct Sequence {
  struct Step {
    Program program;
    std::vector<uint32_t> tensors;  // of each parameter: which of the sequence's it is
    /// A copy of a tensor as it is, but for where its open rows begin: calls whose rows begin there
    /// anyway do without, and later programs read the tensor.
    bool is_spared = false;
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
/// was given or stored before, and has tensors for what they are in memory; what is spared is such
/// a copy.
void verify(const Sequence& sequence);

/// The step that leaves a tensor, by its number in the sequence.
const Sequence::Step& step_that_leaves(const Sequence& sequence, size_t tensor);
/// 1 for calls whose open rows begin at the multiples of a tensor as they lie, else 0.
SizeExpr has_even_rows(const Parameter& parameter);
/// What a size is a multiple of in the calls that a sequence is for: the rows of all given tensors
/// begin at their multiples.
int64_t multiple_of_size(const Sequence& sequence, size_t size);
/// 1 for the calls whose sizes are such multiples.
SizeExpr has_even_rows(const Sequence& sequence);
/// 1 for the calls whose sizes are no larger than kMostSize.
SizeExpr has_short_sizes(const Sequence& sequence);
/// 1 for the calls that a sequence is for, which have both.
SizeExpr condition_of(const Sequence& sequence);
/// How many blocks of a step's program a call has.
SizeExpr block_count(const Sequence::Step& step);
/// What a tensor takes in memory, over the sizes.
SizeExpr bytes_of(const Parameter& parameter);
/// What a tensor that a program leaves takes, by its number: nothing where it is spared.
SizeExpr left_bytes(const Sequence& sequence, size_t tensor);
/// What all of these take, one behind the other.
SizeExpr workspace_bytes(const Sequence& sequence);

/// The text of all programs, in order.
std::string print(const Sequence& sequence);

/// What the programs compute, as interpret() of each says; `inputs` are the kernel's. The call is
/// one that the sequence is for.
std::vector<language::HostTensor> interpret(const Sequence& sequence,
                                            std::span<const int64_t> sizes,
                                            std::span<const language::HostTensor> inputs);

}  // namespace kiln::tile
