// Programs in order, and the memory that they share.
#include "compiler/tile/sequence.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/tile/interpret.h"
#include "compiler/tile/result_type.h"
#include "compiler/tile/text.h"
#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using language::HostTensor;
using Op = SizeExpr::Op;

namespace {

/// How many rows a tensor has, open ones beside, and how they lie.
struct Memory {
  int64_t known = 1;
  std::vector<int32_t> open;
  int64_t row_multiple = 0;
  Extent row = {};  // of what has such rows

  bool operator==(const Memory&) const = default;
};

Memory memory_of(const Parameter& parameter) {
  Memory memory;
  for (const Extent& extent : parameter.shape) {
    if (extent.size < 0) {
      memory.known *= extent.constant;
    } else {
      memory.open.push_back(extent.size);
    }
  }
  memory.row_multiple = parameter.row_multiple;
  if (parameter.row_multiple > 0) memory.row = parameter.shape.back();
  return memory;
}

SizeExpr is_multiple(int64_t size, int64_t of) {
  const SizeExpr rest =
      SizeExpr::binary(Op::FloorMod, SizeExpr::scalar(size), SizeExpr::constant(of));
  return SizeExpr::binary(Op::Equal, rest, SizeExpr::constant(0));
}

/// Whether a program copies a tensor to one that differs by where its open rows begin alone.
void verify_spared(const Sequence& sequence, const Sequence::Step& step) {
  const Program& program = step.program;
  const auto is_copy = [&] {
    if (step.tensors.size() != 2 || program.body.size() != 2 || program.views.size() != 2 ||
        step.tensors[0] >= sequence.given || step.tensors[1] < sequence.given)
      return false;
    const Parameter& to = program.parameters[1];
    return to.has_open_rows() && to.row_multiple > 0 && program.parameters[0].shape == to.shape &&
           program.views[0].order == program.views[1].order;
  };
  if (!is_copy())
    refuse_program("{} is spared, and is no copy to rows that begin elsewhere", program.name);
}

void verify_step(const Sequence& sequence, size_t number, std::vector<bool>& is_stored) {
  const Sequence::Step& step = sequence.steps[number];
  const std::vector<Parameter>& parameters = step.program.parameters;
  verify(step.program);
  if (step.is_spared) verify_spared(sequence, step);
  if (step.tensors.size() != parameters.size())
    refuse_program("program {} has {} parameters, but {} tensors", number, parameters.size(),
                   step.tensors.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const uint32_t number_of_tensor = step.tensors[i];
    if (number_of_tensor >= sequence.tensors.size())
      refuse_program("there is no tensor {} for {}", number_of_tensor, parameters[i].name);
    const Parameter& tensor = sequence.tensors[number_of_tensor];
    if (tensor.type != parameters[i].type || memory_of(tensor) != memory_of(parameters[i]))
      refuse_program("{} does not lie in memory as {} does", parameters[i].name, tensor.name);
    const bool may_store = tensor.is_output || number_of_tensor >= sequence.given;
    if (parameters[i].is_output) {
      if (!may_store || is_stored[number_of_tensor])
        refuse_program("{} is stored to, which is an input or was stored before", tensor.name);
    } else if (may_store && !is_stored[number_of_tensor]) {
      refuse_program("{} is read before it is stored", tensor.name);
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].is_output) is_stored[step.tensors[i]] = true;
}

}  // namespace

Sequence alone(Program program) {
  Sequence sequence;
  sequence.tensors = program.parameters;
  sequence.given = static_cast<uint32_t>(program.parameters.size());
  std::vector<uint32_t> tensors(program.parameters.size());
  std::iota(tensors.begin(), tensors.end(), 0);
  sequence.steps.push_back({std::move(program), std::move(tensors)});
  return sequence;
}

void verify(const Sequence& sequence) {
  std::vector<bool> is_stored(sequence.tensors.size(), false);
  for (size_t i = 0; i < sequence.steps.size(); ++i)
    verify_step(sequence, i, is_stored);
  for (size_t i = 0; i < sequence.tensors.size(); ++i) {
    const bool is_input = i < sequence.given && !sequence.tensors[i].is_output;
    if (!is_input && !is_stored[i]) refuse_program("{} is not stored", sequence.tensors[i].name);
  }
}

const Sequence::Step& step_that_leaves(const Sequence& sequence, size_t tensor) {
  const auto leaves = [&](const Sequence::Step& step) {
    for (size_t i = 0; i < step.tensors.size(); ++i)
      if (step.tensors[i] == tensor && step.program.parameters[i].is_output) return true;
    return false;
  };
  const auto found = std::ranges::find_if(sequence.steps, leaves);
  KILN_CHECK(found != sequence.steps.end());
  return *found;
}

SizeExpr has_even_rows(const Parameter& parameter) {
  KILN_CHECK(parameter.has_open_rows() && parameter.row_multiple > 0);
  return is_multiple(parameter.shape.back().size, parameter.row_multiple);
}

int64_t multiple_of_size(const Sequence& sequence, size_t size) {
  int64_t multiple = 1;
  for (const Parameter& tensor : std::span(sequence.tensors).first(sequence.given))
    if (tensor.has_open_rows() && tensor.shape.back().size == static_cast<int32_t>(size))
      multiple = std::max(multiple, tensor.row_multiple);
  return multiple;
}

SizeExpr has_even_rows(const Sequence& sequence) {
  SizeExpr condition = SizeExpr::constant(1);
  for (size_t i = 0; i < sequence.last().sizes.size(); ++i) {
    const int64_t multiple = multiple_of_size(sequence, i);
    if (multiple > 1)
      condition = SizeExpr::both(condition, is_multiple(static_cast<int64_t>(i), multiple));
  }
  return condition;
}

SizeExpr has_short_sizes(const Sequence& sequence) {
  SizeExpr condition = SizeExpr::constant(1);
  for (size_t i = 0; i < sequence.last().sizes.size(); ++i) {
    const SizeExpr size = SizeExpr::scalar(static_cast<int64_t>(i));
    condition = SizeExpr::both(condition,
                               SizeExpr::binary(Op::Less, size, SizeExpr::constant(kMostSize + 1)));
  }
  return condition;
}

SizeExpr condition_of(const Sequence& sequence) {
  return SizeExpr::both(has_short_sizes(sequence), has_even_rows(sequence));
}

SizeExpr block_count(const Sequence::Step& step) {
  const SizeExpr blocks = block_count(step.program);
  if (!step.is_spared) return blocks;
  const SizeExpr is_even = has_even_rows(step.program.parameters[1]);
  return SizeExpr::binary(Op::Mul, blocks, SizeExpr::negation(is_even));
}

SizeExpr bytes_of(const Parameter& parameter) {
  int64_t known = size_of(parameter.type);
  std::optional<SizeExpr> open;
  for (size_t d = 0; d < parameter.shape.size(); ++d) {
    const SizeExpr length = length_in_memory(parameter, d);
    if (parameter.shape[d].size < 0) {
      known *= length.evaluate({});
    } else {
      open = open ? SizeExpr::binary(Op::Mul, *open, length) : length;
    }
  }
  const SizeExpr constant = SizeExpr::constant(known);
  return open ? SizeExpr::binary(Op::Mul, *open, constant) : constant;
}

SizeExpr left_bytes(const Sequence& sequence, size_t tensor) {
  const Parameter& left = sequence.tensors[tensor];
  const SizeExpr bytes = bytes_of(left);
  if (!step_that_leaves(sequence, tensor).is_spared) return bytes;
  // Where rows are even, nothing.
  const SizeExpr is_even = has_even_rows(left);
  const SizeExpr is_uneven = SizeExpr::binary(Op::Equal, is_even, SizeExpr::constant(0));
  return SizeExpr::binary(Op::Mul, bytes, is_uneven);
}

SizeExpr workspace_bytes(const Sequence& sequence) {
  SizeExpr bytes = SizeExpr::constant(0);
  for (size_t i = sequence.given; i < sequence.tensors.size(); ++i) {
    const SizeExpr own = left_bytes(sequence, i);
    bytes = i == sequence.given ? own : SizeExpr::binary(Op::Add, bytes, own);
  }
  return bytes;
}

std::string print(const Sequence& sequence) {
  std::string text;
  for (const Sequence::Step& step : sequence.steps)
    text += print(step.program);
  return text;
}

std::vector<HostTensor> interpret(const Sequence& sequence, std::span<const int64_t> sizes,
                                  std::span<const HostTensor> inputs) {
  std::vector<HostTensor> tensors(sequence.tensors.size());
  size_t next = 0;
  for (size_t i = 0; i < sequence.given; ++i)
    if (!sequence.tensors[i].is_output) tensors[i] = inputs[next++];
  KILN_CHECK(condition_of(sequence).evaluate(sizes) == 1);
  for (const Sequence::Step& step : sequence.steps) {
    if (step.is_spared && has_even_rows(step.program.parameters[1]).evaluate(sizes) == 1) {
      tensors[step.tensors[1]] = tensors[step.tensors[0]];
      continue;
    }
    std::vector<HostTensor> read;
    for (size_t i = 0; i < step.tensors.size(); ++i) {
      const Parameter& parameter = step.program.parameters[i];
      if (parameter.is_output) continue;
      HostTensor tensor = tensors[step.tensors[i]];
      tensor.shape.clear();
      for (const Extent& extent : parameter.shape)
        tensor.shape.push_back(extent.at(sizes));
      read.push_back(std::move(tensor));
    }
    std::vector<HostTensor> stored = interpret(step.program, sizes, read);
    size_t taken = 0;
    for (size_t i = 0; i < step.tensors.size(); ++i)
      if (step.program.parameters[i].is_output)
        tensors[step.tensors[i]] = std::move(stored[taken++]);
  }
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < sequence.given; ++i)
    if (sequence.tensors[i].is_output) outputs.push_back(std::move(tensors[i]));
  return outputs;
}

}  // namespace kiln::tile
