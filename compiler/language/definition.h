#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/language/tables/operator.h"
#include "runtime/core/dtype.h"

namespace kiln::language {

/// Positions in the tables of a Definition.
using ExprId = uint32_t;
using AxisId = uint32_t;
using StageId = uint32_t;
using VariableId = uint32_t;
using ReducerId = uint32_t;

struct TensorId {
  StageId stage = 0;
  uint32_t output = 0;
  auto operator<=>(const TensorId&) const = default;
};

struct IntegerConstant {
  int64_t value;
  bool operator==(const IntegerConstant&) const = default;
};
struct FloatConstant {
  double value;
};
struct VariableUse {
  VariableId variable;
};
struct AxisUse {
  AxisId axis;
};
struct Operation {
  Operator op;
  std::vector<ExprId> operands;
};
struct CastTo {  // the type is that of the expression
  ExprId operand;
};
struct Read {
  TensorId tensor;
  std::vector<ExprId> indices;
};
struct ReducerParameter {  // of a reducer, in its results
  uint32_t position;
};
struct Reduction {
  std::optional<Combiner> combiner;  // nothing: `reducer`
  ReducerId reducer = 0;
  std::vector<ExprId> sources;  // one a value
  std::vector<AxisId> axes;
  uint32_t output = 0;              // which result it gives
  std::optional<ExprId> condition;  // where it does not hold, nothing is combined
  std::vector<ExprId> init;         // empty: the identities

  bool operator==(const Reduction&) const = default;
};

struct Expression {
  DType type;
  std::variant<IntegerConstant, FloatConstant, VariableUse, AxisUse, Operation, CastTo, Read,
               Reduction, ReducerParameter>
      node;
};

/// A combiner of the user's own. Parameter i is value i on the left; behind these come the values
/// on the right.
struct Reducer {
  std::vector<DType> types;
  std::vector<ExprId> identities;
  std::vector<ExprId> results;
};

struct Variable {
  bool nonnegative = false;
};

enum class AxisKind : uint8_t { Data = 1, Reduce = 2, Time = 3 };

struct Axis {
  AxisKind kind;
  ExprId minimum;
  ExprId extent;
};

struct Placeholder {
  DType type;
  std::vector<ExprId> shape;
};
struct Compute {
  std::vector<AxisId> axes;
  std::vector<ExprId> bodies;
};
struct Scan {
  AxisId axis;
  std::vector<TensorId> init;
  std::vector<TensorId> update;
  std::vector<TensorId> state;
  std::vector<TensorId> inputs;
  uint32_t dimension = 0;  // which dimension of each state is time
  bool reverse = false;    // from the last index to the first
};

/// A copy of base whose elements at `indices` take updates, one after the other.
struct Scatter {
  std::vector<AxisId> axes;
  TensorId base;
  std::vector<ExprId> indices;
  ExprId update = 0;
  std::optional<Operator> combiner;  // nothing: the update replaces the element
};

using Stage = std::variant<Placeholder, Compute, Scan, Scatter>;

/// How many tensors a stage makes.
uint32_t output_count(const Stage& stage);

/// The axes that a stage runs over, outermost first: the dimensions of a compute.
std::vector<AxisId> axes_of(const Stage& stage);

/// What a stage computes for each value of its axes: the bodies of a compute; indices, then the
/// update, of a scatter.
std::vector<ExprId> bodies_of(const Stage& stage);

/// All expressions of a reduction: its sources, its condition, where it starts.
std::vector<ExprId> parts_of(const Reduction& reduction);

/// A checked kernel definition (see kiln/v1/kernel.proto, whose tables these are). decode() is the
/// only maker, so every id is in range, every type rule holds, shapes agree, and there are no
/// cycles.
struct Definition {
  std::vector<Variable> variables;
  std::vector<Axis> axes;
  std::vector<Expression> expressions;
  std::vector<Stage> stages;
  std::vector<TensorId> parameters;
  std::vector<Reducer> reducers;

  DType type_of(TensorId tensor) const;
  /// Extents of a tensor's dimensions, as expressions.
  std::vector<ExprId> shape_of(TensorId tensor) const;
  bool is_output(TensorId tensor) const;  // a parameter that is computed
  /// How many values a reduction combines at once.
  size_t values_of(const Reduction& reduction) const;
  /// The first body of a compute whose bodies are reductions that one nest of loops computes: over
  /// the same axes, and all results of one reducer of several. Null when they are not.
  const Reduction* whole_reduction(const Compute& compute) const;
};

/// Names and lines, by the positions of the definition. decode() fills in what is missing
/// ("tensor3", "i0") and makes unusable names harmless, so every position has a name.
struct SourceMap {
  std::string kernel;
  std::vector<std::string> variables;
  std::vector<std::string> axes;
  std::vector<std::string> stages;
  std::vector<std::string> files;
  struct Line {
    uint32_t file = 0;
    uint32_t line = 0;
  };
  std::vector<Line> stage_lines;
  std::map<TensorId, std::string> tensors;  // outputs of stages with several, where they have names
  struct ReducerNames {
    std::string name;
    std::vector<std::string> parameters;
  };
  std::vector<ReducerNames> reducers;

  /// "C"; for an output of a stage with several its own name, else "scan.v1".
  std::string tensor_name(const Definition& definition, TensorId tensor) const;
};

}  // namespace kiln::language
