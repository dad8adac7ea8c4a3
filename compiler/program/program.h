#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "runtime/core/error.h"

namespace kiln::program {

/// Positions in the tables of a Program.
using ValueId = uint32_t;
using NodeId = uint32_t;

enum class ValueKind : uint8_t {
  Made,       // by a node
  Input,      // given with each run, the same in all of its steps
  Batch,      // the next rows of a data set that is given with each run
  Parameter,  // what updates change from step to step
  Step,       // the number of the step
};
/// "an input", for sentences.
std::string_view name_of(ValueKind kind);

struct Value {
  std::string name;
  ValueKind kind = ValueKind::Made;
};

/// A kernel applied to values, in the order of its parameters; or a question for gradients: of the
/// first input, a number, with respect to each of the others.
struct Node {
  std::string name;
  uint32_t kernel = 0;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  SourceLocation line;
  bool is_gradient = false;  // then `kernel` means nothing
};

struct Update {
  ValueId parameter = 0;
  ValueId value = 0;
};

/// A graph of kernels as a client sent it (kiln/v1/program.proto, whose tables these are); the
/// kernels are checked, the wiring is not. order_of() checks it.
struct Program {
  std::string name;
  std::vector<language::Kernel> kernels;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Update> updates;
  std::vector<ValueId> outputs;
  std::vector<ValueId> reports;
  std::optional<ValueId> until;
};

/// The values that a step is for: outputs, reports, what parameters become, and `until`.
std::vector<ValueId> results_of(const Program& program);

/// A program in a sentence to the user: its name, or "the program".
std::string called(const Program& program);

}  // namespace kiln::program
