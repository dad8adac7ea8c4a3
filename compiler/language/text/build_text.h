#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/language/text/syntax.h"
#include "compiler/language/text/text.h"
#include "kiln/v1/program.pb.h"

// From the tree of a kernel file to a definition. Not for other folders.
namespace kiln::language::syntax {

/// A tensor of the text. Without an id it is declared but not computed yet.
struct NamedTensor {
  DType type = DType::Float32;
  std::vector<ExprId> shape;
  std::optional<TensorId> id;
  Place place = 0;
  bool is_input = false;
};

/// The kernel so far, and what names mean in it.
struct Workspace {
  const Source& source;
  const Tree& tree;
  Definition definition;
  SourceMap names;
  std::map<std::string, VariableId, std::less<>> sizes;
  std::map<std::string, NamedTensor, std::less<>> tensors;
  std::map<std::string, ReducerId, std::less<>> reducers;
  // Inside a scan block: what the name of a state means there.
  std::map<std::string, TensorId, std::less<>> states;
  std::map<std::string, TensorId, std::less<>> updates;
  size_t time_dimension = 0;

  ExprId add(DType type, decltype(Expression::node) node);
  ExprId integer(int64_t value) { return add(DType::Int64, IntegerConstant{value}); }
  AxisId add_axis(AxisKind kind, std::string_view name, ExprId minimum, ExprId extent);
  StageId add_stage(Stage stage, std::string name, Place place);
  std::optional<int64_t> constant(ExprId expr) const;
};

/// The axes that the left side of an assignment names.
struct LeftSide {
  std::string stage;
  std::vector<std::string> names;
  std::vector<AxisId> axes;
};

/// Builds the values of one assignment.
class ExpressionBuilder {
 public:
  ExpressionBuilder(Workspace& work, LeftSide left) : work_(work), left_(std::move(left)) {}

  /// A whole right side.
  ExprId body(int node, DType expected);
  /// A whole right side that is a reduction of several values: all its results.
  std::vector<ExprId> tuple(int node);
  /// A result or an identity of a reducer. `parameters`: the names of its values.
  ExprId of_reducer(int node, DType expected, std::span<const ReducerValue> parameters,
                    std::span<const DType> types);
  /// A part that must be int64: an index, an extent.
  ExprId index(int node);
  /// The tensor that a name means here.
  TensorId tensor_named(int node) { return tensor(at(node), {}); }

 private:
  using Expected = std::optional<DType>;

  ExprId build(int node, Expected expected);
  ExprId literal(const Node& node, bool negative, Expected expected);
  ExprId integer_literal(const Node& node, bool negative, DType type);
  ExprId name(const Node& node, Expected expected);
  ExprId read(const Node& node, std::span<const int> indices);
  ExprId call(const Node& node, Expected expected);
  ExprId cast(const Node& node, DType type);
  ExprId apply(const Node& node, Operator op, Expected expected);
  ExprId reduction(const Node& node, Expected expected, bool is_whole);
  Reduction reduction_by(const Node& node);
  void add_values(const Node& node, Expected expected, bool is_whole, Reduction& reduction);
  std::optional<size_t> find_parameter(std::string_view name) const;
  AxisId range(int node, bool of_whole_body);
  ExprId extent_of(int upper, int lower, ExprId minimum);

  TensorId tensor(const Node& node, std::span<const int> indices);
  std::optional<AxisId> find_axis(std::string_view name) const;
  bool same_text(int a, int b) const;
  Expected natural(int node);
  Expected natural_of(const Node& node);
  Expected operand_type(Operator op, std::span<const int> operands, Expected expected);
  /// The node as a literal, looking through a sign.
  const Node* as_literal(int node, bool& negative) const;
  [[noreturn]] void fail_unknown(const Node& node) const;
  [[noreturn]] void fail_recurrence(const Node& node, std::span<const int> indices) const;
  const Node& at(int node) const { return work_.tree.nodes[static_cast<size_t>(node)]; }

  Workspace& work_;
  LeftSide left_;
  std::vector<std::pair<std::string, AxisId>> reduced_;  // the axes of the reductions around
  std::map<std::string, AxisId> whole_;                  // of reductions that are a whole body
  std::map<int, Expected> natural_;
  std::span<const ReducerValue> parameters_;  // of the reducer that is being built
  std::span<const DType> parameter_types_;
};

/// What an init has in the place of time: `count` steps along `axis`.
struct InitialSteps {
  size_t dimension = 0;
  ExprId count = 0;
  std::string axis;
};

/// Statements to stages: what the parts of a scan need of the builder of their kernel.
class StageBuilder {
 public:
  virtual ~StageBuilder() = default;
  virtual void build(const Statement& statement) = 0;
  virtual void assign(const Assignment& assignment) = 0;
  /// The declared tensor that an assignment computes; refuses one that is computed already.
  virtual NamedTensor& target(std::string_view name, Place place) = 0;
  /// The name of an axis on the left.
  virtual std::string axis_name(int node) = 0;
  /// Checks the left side and makes its axes.
  virtual LeftSide left_side(const Assignment& assignment, std::string stage,
                             const std::optional<InitialSteps>& init) = 0;
  virtual std::vector<ExprId> bodies(const Assignment& assignment, const LeftSide& left) = 0;
  virtual StageId compute(const Assignment& assignment, const std::vector<std::string>& outputs,
                          const std::optional<InitialSteps>& init) = 0;
  virtual void name_outputs(StageId stage, const std::vector<std::string>& outputs) = 0;
};

/// The name of a stage with these outputs: "C"; "scan" for scan.v0 and scan.v1; else "S, R".
std::string stage_name(const std::vector<std::string>& outputs);

// build_scan.cc
void build_scan_block(StageBuilder& builder, Workspace& work, const Statement& block);
void build_scan_call(StageBuilder& builder, Workspace& work, const ScanCall& call);

/// A scan's state or a scatter's base says what the result is; its own declaration must agree.
void check_declared(const Workspace& work, std::string_view name, Place place,
                    std::string_view what);

/// Adds a reducer of the user's own. Throws SYNTAX. build_reducer.cc
void build_reducer(Workspace& work, const ReducerText& text);

/// Which result a reducer's name asks for: argmax.v1 is result 1 of argmax. Nothing when it is no
/// reducer of the user's.
struct NamedReducer {
  ReducerId id;
  std::optional<uint32_t> output;
};
std::optional<NamedReducer> find_reducer(const Workspace& work, std::string_view name);

/// The stage of `name = scatter_add[...](...)`; the caller has checked the name. Throws SYNTAX.
StageId build_scatter(Workspace& work, const ScatterCall& call);

/// The tree of one kernel as a checked kernel.
Kernel build_kernel(const Source& source, const Tree& tree, const KernelText& text,
                    const Limits& limits);

/// The steps of the blocks, by target.
TargetSchedules build_schedules(const Source& source, const std::vector<ScheduleBlock>& blocks,
                                const Kernel& kernel, const Limits& limits);

/// The programs of a file, whose kernels are given. Throws SYNTAX.
std::vector<v1::Program> build_programs(const Source& source, const Tree& tree,
                                        const std::vector<TextKernel>& kernels);

}  // namespace kiln::language::syntax
