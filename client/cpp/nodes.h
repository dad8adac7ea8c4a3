#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kiln/tensor.h>

namespace kiln {
inline namespace client {
namespace detail {

/// A number of the program when `literal`: it has no type of its own yet, `type` is the one it
/// takes when nothing else says.
struct IntegerValue {
  std::int64_t value;
  bool literal;
};
struct FloatingValue {
  double value;
  bool literal;
};
struct VariableValue {
  std::string name;
  bool nonnegative;
};
struct AxisValue {
  std::shared_ptr<const AxisNode> axis;
};
struct OperationValue {
  std::string_view spelling;  // of the operator table
  std::vector<Expr> operands;
};
struct CastValue {
  Expr operand;
};
struct ReadValue {
  Tensor tensor;
  std::vector<Expr> indices;
};
/// A value of a reducer, in its results: those on the left, then those on the right.
struct ParameterValue {
  std::uint32_t position;
};
struct ReducerNode {
  std::string name;
  std::vector<DType> types;
  std::vector<Expr> identities;
  std::vector<Expr> results;
  std::vector<std::string> parameters = {};  // names of them; empty: a0, a1, .. and b0, b1, ..
};
struct ReductionValue {
  std::string combiner;  // of the table; empty: `reducer`
  std::shared_ptr<const ReducerNode> reducer;
  std::vector<Expr> sources;
  std::vector<ReduceAxis> axes;
  std::uint32_t output = 0;
  std::optional<Expr> condition = {};
  std::vector<Expr> init = {};

  /// All expressions but the bounds of the axes.
  std::vector<Expr> parts() const;
};

struct ExprNode {
  DType type;
  int depth;
  std::variant<IntegerValue, FloatingValue, VariableValue, AxisValue, OperationValue, CastValue,
               ReadValue, ReductionValue, ParameterValue>
      value;
  int stages = 0;  // the longest chain of stages behind what it reads
};

/// The numbers are those of the wire; a derived axis is what a schedule step makes.
enum class AxisKind { Data = 1, Reduce = 2, Time = 3, Derived = 4 };

struct AxisNode {
  AxisKind kind;
  std::string name;
  std::optional<Expr> minimum;  // absent for a derived axis
  std::optional<Expr> extent;
};

struct PlaceholderStage {
  DType type;
  Shape shape;
};
struct ComputeStage {
  std::vector<Axis> axes;
  std::vector<Expr> bodies;
  std::vector<Axis> reduce_axes;
};
struct ScanStage {
  Axis axis;
  ScanTime time;
  std::vector<Tensor> init;
  std::vector<Tensor> update;
  std::vector<Tensor> state;
  std::vector<Tensor> inputs;
};

struct ScatterStage {
  std::vector<Axis> axes;
  Tensor base;
  std::vector<Expr> indices;
  Expr update;
  std::string combiner;
};

struct StageNode {
  std::string name;
  std::string file;
  std::uint32_t line;
  std::variant<PlaceholderStage, ComputeStage, ScanStage, ScatterStage> value;
  std::vector<std::string> tensor_names = {};  // of several outputs, where they have their own
  int stages = 1;                              // the longest chain of stages that ends with it
};

/// Expressions nested deeper and chains of more stages than the service takes are refused while
/// they are built, so that no recursion over them is deep.
constexpr int kMaximumDepth = 2000;
constexpr int kMaximumStages = 4096;

/// The node with its depth taken from what it refers to. Throws ResourceExhausted DEPTH.
Expr make_expr(DType type, decltype(ExprNode::value) value);

/// The value when it is a constant integer.
std::optional<std::int64_t> as_integer(const Expr& expr);
bool is_literal(const Expr& expr);

/// A size, bound or index: a literal becomes int64, other integers are cast. Throws InvalidArgument
/// INDEX_TYPE for floats and bools; `what` names it ("index 0 of A").
Expr to_index(const Expr& expr, const std::string& what);

/// A size for a message: a number, a variable's name, or "not known".
std::string size_text(const Expr& size);

/// Whether they are one output of one stage.
inline bool is_same(const Tensor& a, const Tensor& b) {
  return a.stage() == b.stage() && a.output() == b.output();
}

/// The axes that the reductions in `bodies` run over, in the order of appearance.
std::vector<Axis> reduced_axes(const std::vector<Expr>& bodies);

}  // namespace detail
}  // namespace client
}  // namespace kiln
