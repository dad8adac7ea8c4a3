#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "compiler/ir/node.h"
#include "compiler/language/tables/operator.h"
#include "runtime/core/dtype.h"

namespace kiln::ir {

using language::Combiner;
using language::Operator;

/// An element type and how many lanes of it. Loop variables and indices are int64 with one lane.
struct Type {
  DType element = DType::Int64;
  int lanes = 1;
  bool operator==(const Type&) const = default;
  Type with_lanes(int count) const { return {element, count}; }
};
constexpr Type kIndexType = {DType::Int64, 1};
constexpr Type kBoolType = {DType::Bool, 1};

class ExprNode : public Node {
 public:
  ExprNode(NodeKind kind, Type value_type) : Node(kind), type(value_type) {}
  const Type type;
};
using Expr = Handle<ExprNode>;

/// An integer or bool constant.
struct IntImm : ExprNode {
  static constexpr NodeKind kKind = NodeKind::IntImm;
  static Expr make(Type type, int64_t value);
  auto fields() const { return std::tie(type, value); }
  const int64_t value;

 private:
  IntImm(Type t, int64_t v) : ExprNode(kKind, t), value(v) {}
};

/// make() rounds the value to its type.
struct FloatImm : ExprNode {
  static constexpr NodeKind kKind = NodeKind::FloatImm;
  static Expr make(Type type, double value);
  auto fields() const { return std::tie(type, value); }
  const double value;

 private:
  FloatImm(Type t, double v) : ExprNode(kKind, t), value(v) {}
};

/// A variable is its node: two variables of one name are different. The name is for the printer.
struct Var : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Var;
  static Handle<Var> make(std::string name, Type type = kIndexType);
  auto fields() const { return std::tie(name, type); }
  const std::string name;

 private:
  Var(std::string n, Type t) : ExprNode(kKind, t), name(std::move(n)) {}
};
using VarRef = Handle<Var>;

/// A binary operator: Add .. Max, comparisons (bool result), And, Or, bits and shifts. Both
/// operands have one type. Div is of floats; FloorDiv .. TruncMod are of ints (FloorDiv, FloorMod
/// of floats too).
struct Binary : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Binary;
  static Expr make(Operator op, Expr a, Expr b);
  auto fields() const { return std::tie(op, a, b); }
  const Operator op;
  const Expr a;
  const Expr b;

 private:
  Binary(Operator o, Type t, Expr x, Expr y)
      : ExprNode(kKind, t), op(o), a(std::move(x)), b(std::move(y)) {}
};

/// Any other operator of the table: unary ones, Select, IfThenElse, functions. IfThenElse computes
/// only the branch it takes.
struct Call : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Call;
  static Expr make(Operator op, std::vector<Expr> args);
  auto fields() const { return std::tie(op, args); }
  const Operator op;
  const std::vector<Expr> args;

 private:
  Call(Operator o, Type t, std::vector<Expr> a) : ExprNode(kKind, t), op(o), args(std::move(a)) {}
};

/// The value in another type, lane by lane, as language::convert() says.
struct Cast : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Cast;
  static Expr make(Type type, Expr value);
  auto fields() const { return std::tie(type, value); }
  const Expr value;

 private:
  Cast(Type t, Expr v) : ExprNode(kKind, t), value(std::move(v)) {}
};

/// Where a buffer lives. Global: the workspace, or an argument. Warp: in the registers of a warp's
/// threads, each of which has its part; lower_warp_memory leaves none.
enum class Scope : uint8_t { Global, Shared, Warp, Local };

/// Memory that loads and stores name: an argument of the kernel or an Allocate. By identity, as
/// Var. Empty strides are compact row-major ones; those of an argument may be given per call. In
/// shared memory elements may be exchanged (ir/swizzle.h): indices never say so, and code does it
/// where an element gets its address.
class Buffer : public Node {
 public:
  static Handle<Buffer> make(std::string name, DType type, std::vector<Expr> shape, Scope scope,
                             std::vector<Expr> strides = {}, int64_t swizzle = 0);
  const std::string name;
  const DType type;
  const std::vector<Expr> shape;
  const std::vector<Expr> strides;
  const Scope scope;
  const int64_t swizzle;  // of how many elements the number says where they lie; 0: of none

 private:
  Buffer(std::string n, DType t, std::vector<Expr> sh, Scope sc, std::vector<Expr> st, int64_t sw);
};
using BufferRef = Handle<Buffer>;

/// One index a dimension; after flatten_storage exactly one, in elements, and then it may be a Ramp
/// or any vector of indices (a gather). A lane whose `predicate` is false reads nothing and is 0; a
/// null predicate is true.
struct Load : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Load;
  static Expr make(BufferRef buffer, std::vector<Expr> indices, Expr predicate = nullptr);
  auto fields() const { return std::tie(buffer, indices, predicate); }
  const BufferRef buffer;
  const std::vector<Expr> indices;
  const Expr predicate;

 private:
  Load(Type t, BufferRef b, std::vector<Expr> i, Expr p)
      : ExprNode(kKind, t), buffer(std::move(b)), indices(std::move(i)), predicate(std::move(p)) {}
};

/// Which output of which stage: the tensors of definitions.
struct TensorRead : ExprNode {
  static constexpr NodeKind kKind = NodeKind::TensorRead;
  static Expr make(Type type, uint32_t stage, uint32_t output, std::vector<Expr> indices);
  auto fields() const { return std::tie(type, stage, output, indices); }
  const uint32_t stage;
  const uint32_t output;
  const std::vector<Expr> indices;

 private:
  TensorRead(Type t, uint32_t s, uint32_t o, std::vector<Expr> i)
      : ExprNode(kKind, t), stage(s), output(o), indices(std::move(i)) {}
};

/// A combiner of the user's own: the results of combining the values on the left, which are the
/// accumulated ones, with those on the right.
struct Reducer {
  std::string name;
  std::vector<VarRef> left;  // variables of the results
  std::vector<VarRef> right;
  std::vector<Expr> identities;
  std::vector<Expr> results;
};

/// How a reduction combines: by a combiner of the table or by a reducer, of which it gives one
/// result.
struct Combination {
  std::optional<Combiner> combiner;
  std::shared_ptr<const Reducer> reducer;  // null where there is a combiner
  uint32_t output = 0;
  bool operator==(const Combination&) const = default;

  size_t values() const { return reducer ? reducer->results.size() : 1; }
};

/// The combination of the sources, one a value, over all values of `axes` for which the condition
/// (null: always) holds. It starts from `init`, one a value, or from the identities when that is
/// empty. Only in definitions.
struct Reduce : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Reduce;
  static Expr make(Combination how, std::vector<Expr> sources, Expr condition,
                   std::vector<Expr> init, std::vector<VarRef> axes);
  auto fields() const { return std::tie(how, sources, condition, init, axes); }
  const Combination how;
  const std::vector<Expr> sources;
  const Expr condition;
  const std::vector<Expr> init;
  const std::vector<VarRef> axes;

 private:
  Reduce(Combination h, std::vector<Expr> s, Expr c, std::vector<Expr> i, std::vector<VarRef> a);
};

/// The vector base, base + stride, ... of `lanes` int64 values.
struct Ramp : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Ramp;
  static constexpr std::string_view kWord = "ramp";
  static Expr make(Expr base, Expr stride, int lanes);
  auto fields() const { return std::tie(base, stride, lanes); }
  const Expr base;
  const Expr stride;
  const int lanes;

 private:
  Ramp(Expr b, Expr s, int l);
};

/// A scalar in each of `lanes` lanes.
struct Broadcast : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Broadcast;
  static constexpr std::string_view kWord = "broadcast";
  static Expr make(Expr value, int lanes);
  auto fields() const { return std::tie(value, lanes); }
  const Expr value;
  const int lanes;

 private:
  Broadcast(Expr v, int l);
};

/// start combined with each lane of `vector`, lane 0 first: ((start op v0) op v1) ...
/// `reassociate`: the lanes may be combined in any order.
struct VectorReduce : ExprNode {
  static constexpr NodeKind kKind = NodeKind::VectorReduce;
  static Expr make(Combiner combiner, Expr start, Expr vector, bool reassociate);
  auto fields() const { return std::tie(combiner, start, vector, reassociate); }
  const Combiner combiner;
  const Expr start;
  const Expr vector;
  const bool reassociate;

 private:
  VectorReduce(Combiner c, Expr s, Expr v, bool r);
};

/// start + a[0]*b[0] + a[1]*b[1] + ..., with the factors in the type of `start`. With several lanes
/// each has a group of `b` of its own, and of `a` too unless that is one group for all.
struct Dot : ExprNode {
  static constexpr NodeKind kKind = NodeKind::Dot;
  static constexpr std::string_view kWord = "dot";
  static Expr make(Expr start, Expr a, Expr b);
  auto fields() const { return std::tie(start, a, b); }
  const Expr start;
  const Expr a;
  const Expr b;

  /// How many products a lane adds.
  int group() const { return b->type.lanes / type.lanes; }

 private:
  Dot(Expr s, Expr x, Expr y)
      : ExprNode(kKind, s->type), start(std::move(s)), a(std::move(x)), b(std::move(y)) {}
};

/// The node as a T, or null when it is another.
template <typename T>
const T* as(const Node* node) {
  return node != nullptr && node->kind == T::kKind ? static_cast<const T*>(node) : nullptr;
}
template <typename T, typename U>
const T* as(const Handle<U>& handle) {
  return as<T>(static_cast<const Node*>(handle.get()));
}

}  // namespace kiln::ir
