// Programs in order, and the memory that they share.
#include "compiler/tile/sequence.h"

#include <algorithm>
#include <numeric>

#include "compiler/tile/interpret.h"
#include "compiler/tile/result_type.h"
#include "compiler/tile/text.h"
#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using language::HostTensor;

namespace {

/// Of the rows of a tensor without its pitch, and how many there are beside open ones.
struct Memory {
  int64_t known = 1;
  std::vector<int32_t> open;
  int64_t pitch = 0;
  int64_t row = 0;  // of what has a pitch

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
  if (parameter.pitch > 0) {
    memory.pitch = parameter.pitch;
    memory.row = parameter.shape.back().constant;
  }
  return memory;
}

void verify_step(const Sequence& sequence, size_t number, std::vector<bool>& is_stored) {
  const Sequence::Step& step = sequence.steps[number];
  const std::vector<Parameter>& parameters = step.program.parameters;
  verify(step.program);
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

SizeExpr bytes_of(const Parameter& parameter) {
  Parameter whole = parameter;
  if (whole.pitch > 0) whole.shape.back() = {.constant = whole.pitch, .size = -1};
  const Memory memory = memory_of({whole.name, whole.type, whole.shape});
  SizeExpr bytes = SizeExpr::constant(memory.known * size_of(parameter.type));
  for (const int32_t size : memory.open)
    bytes = SizeExpr::binary(SizeExpr::Op::Mul, bytes, SizeExpr::scalar(size));
  return bytes;
}

SizeExpr workspace_bytes(const Sequence& sequence) {
  SizeExpr bytes = SizeExpr::constant(0);
  bool is_first = true;
  for (const Parameter& tensor : sequence.left()) {
    bytes =
        is_first ? bytes_of(tensor) : SizeExpr::binary(SizeExpr::Op::Add, bytes, bytes_of(tensor));
    is_first = false;
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
  for (const Sequence::Step& step : sequence.steps) {
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
