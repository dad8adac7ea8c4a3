// How nodes are made. make() checks what any reader of a node relies on, that operands are there
// and that types and lanes fit, so that a wrong tree is found where it is made; what depends on the
// place in a tree is verify's matter.
#include <algorithm>
#include <array>

#include "compiler/ir/stmt.h"
#include "compiler/ir/swizzle.h"
#include "runtime/core/error.h"
#include "runtime/core/small_float.h"

namespace kiln::ir {
namespace {

bool is_comparison(Operator op) {
  return language::row_of(op).type_rule == language::TypeRule::Compare;
}

/// The lanes of a memory access: those of its indices that have several, or 1.
int lanes_of(const std::vector<Expr>& indices) {
  int lanes = 1;
  for (const Expr& index : indices) {
    KILN_CHECK(index && index->type.element == DType::Int64);
    if (index->type.lanes > 1) {
      KILN_CHECK(lanes == 1 || lanes == index->type.lanes);
      lanes = index->type.lanes;
    }
  }
  return lanes;
}

constexpr std::array<std::string_view, 8> kThreadAxisNames = {
    "",       "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z",
    "vthread"};

}  // namespace

Expr IntImm::make(Type type, int64_t value) {
  KILN_CHECK(!is_float(type.element));
  return new IntImm(type, value);
}

Expr FloatImm::make(Type type, double value) {
  KILN_CHECK(is_float(type.element));
  return new FloatImm(type, round_to(type.element, value));
}

VarRef Var::make(std::string name, Type type) { return new Var(std::move(name), type); }

Expr Binary::make(Operator op, Expr a, Expr b) {
  KILN_CHECK(a && b && a->type == b->type);
  const Type type = is_comparison(op) ? Type{DType::Bool, a->type.lanes} : a->type;
  return new Binary(op, type, std::move(a), std::move(b));
}

Expr Call::make(Operator op, std::vector<Expr> args) {
  KILN_CHECK(static_cast<int>(args.size()) == language::row_of(op).arity);
  std::vector<DType> types;
  for (const Expr& arg : args) {
    KILN_CHECK(arg && arg->type.lanes == args[0]->type.lanes);
    types.push_back(arg->type.element);
  }
  const Type type{language::result_type(op, types), args[0]->type.lanes};
  return new Call(op, type, std::move(args));
}

Expr Cast::make(Type type, Expr value) {
  KILN_CHECK(value && value->type.lanes == type.lanes);
  return new Cast(type, std::move(value));
}

Buffer::Buffer(std::string n, DType t, std::vector<Expr> sh, Scope sc, std::vector<Expr> st,
               int64_t sw)
    : Node(NodeKind::Buffer),
      name(std::move(n)),
      type(t),
      shape(std::move(sh)),
      strides(std::move(st)),
      scope(sc),
      swizzle(sw) {}

BufferRef Buffer::make(std::string name, DType type, std::vector<Expr> shape, Scope scope,
                       std::vector<Expr> strides, int64_t swizzle) {
  KILN_CHECK(strides.empty() || strides.size() == shape.size());
  KILN_CHECK(swizzle == 0 || (scope == Scope::Shared && may_swizzle(type, swizzle)));
  return new Buffer(std::move(name), type, std::move(shape), scope, std::move(strides), swizzle);
}

Expr Load::make(BufferRef buffer, std::vector<Expr> indices, Expr predicate) {
  KILN_CHECK(buffer);
  const int lanes = lanes_of(indices);
  KILN_CHECK(!predicate || predicate->type == (Type{DType::Bool, lanes}));
  const Type type{buffer->type, lanes};
  return new Load(type, std::move(buffer), std::move(indices), std::move(predicate));
}

Expr TensorRead::make(Type type, uint32_t stage, uint32_t output, std::vector<Expr> indices) {
  return new TensorRead(type, stage, output, std::move(indices));
}

Reduce::Reduce(Combination h, std::vector<Expr> s, Expr c, std::vector<Expr> i,
               std::vector<VarRef> a)
    : ExprNode(kKind, s[h.output]->type),
      how(std::move(h)),
      sources(std::move(s)),
      condition(std::move(c)),
      init(std::move(i)),
      axes(std::move(a)) {}

Expr Reduce::make(Combination how, std::vector<Expr> sources, Expr condition,
                  std::vector<Expr> init, std::vector<VarRef> axes) {
  KILN_CHECK(how.combiner.has_value() != (how.reducer != nullptr));
  KILN_CHECK(sources.size() == how.values() && how.output < how.values() && !axes.empty());
  KILN_CHECK(init.empty() || init.size() == how.values());
  KILN_CHECK(!condition || condition->type == kBoolType);
  return new Reduce(std::move(how), std::move(sources), std::move(condition), std::move(init),
                    std::move(axes));
}

Ramp::Ramp(Expr b, Expr s, int l)
    : ExprNode(kKind, b->type.with_lanes(l)), base(std::move(b)), stride(std::move(s)), lanes(l) {}

Expr Ramp::make(Expr base, Expr stride, int lanes) {
  KILN_CHECK(base && stride && base->type == kIndexType && stride->type == kIndexType && lanes > 1);
  return new Ramp(std::move(base), std::move(stride), lanes);
}

Broadcast::Broadcast(Expr v, int l)
    : ExprNode(kKind, v->type.with_lanes(l)), value(std::move(v)), lanes(l) {}

Expr Broadcast::make(Expr value, int lanes) {
  KILN_CHECK(value && value->type.lanes == 1 && lanes > 1);
  return new Broadcast(std::move(value), lanes);
}

VectorReduce::VectorReduce(Combiner c, Expr s, Expr v, bool r)
    : ExprNode(kKind, s->type),
      combiner(c),
      start(std::move(s)),
      vector(std::move(v)),
      reassociate(r) {}

Expr VectorReduce::make(Combiner combiner, Expr start, Expr vector, bool reassociate) {
  KILN_CHECK(start && vector && start->type == vector->type.with_lanes(1));
  return new VectorReduce(combiner, std::move(start), std::move(vector), reassociate);
}

Expr Dot::make(Expr start, Expr a, Expr b) {
  KILN_CHECK(start && a && b);
  const int lanes = start->type.lanes;
  const int group = b->type.lanes / lanes;
  KILN_CHECK(b->type.lanes == group * lanes && group > 1);
  KILN_CHECK(a->type.lanes == group || a->type.lanes == group * lanes);
  return new Dot(std::move(start), std::move(a), std::move(b));
}

Stmt Block::make(std::vector<Stmt> body) {
  std::vector<Stmt> flat;
  for (Stmt& stmt : body) {
    KILN_CHECK(stmt);
    if (const Block* inner = as<Block>(stmt)) {
      flat.insert(flat.end(), inner->body.begin(), inner->body.end());
    } else {
      flat.push_back(std::move(stmt));
    }
  }
  if (flat.size() == 1) return flat[0];
  return new Block(std::move(flat));
}

std::string_view name_of(ThreadAxis axis) { return kThreadAxisNames[static_cast<size_t>(axis)]; }

std::optional<ThreadAxis> find_thread_axis(std::string_view name) {
  for (size_t i = 1; i < kThreadAxisNames.size(); ++i) {
    if (kThreadAxisNames[i] == name) return static_cast<ThreadAxis>(i);
  }
  return std::nullopt;
}

Stmt For::make(VarRef var, Expr extent, LoopKind loop_kind, ThreadAxis thread, Stmt body) {
  KILN_CHECK(var && extent && body);
  KILN_CHECK(var->type == kIndexType && extent->type == kIndexType);
  KILN_CHECK((loop_kind == LoopKind::ThreadIndex) == (thread != ThreadAxis::None));
  return new For(std::move(var), std::move(extent), loop_kind, thread, std::move(body));
}

Stmt If::make(Expr condition, Stmt then_body, Stmt else_body, bool likely) {
  KILN_CHECK(condition && then_body && condition->type == kBoolType);
  return new If(std::move(condition), std::move(then_body), std::move(else_body), likely);
}

Stmt Store::make(BufferRef buffer, std::vector<Expr> indices, Expr value, Expr predicate) {
  KILN_CHECK(buffer && value && value->type.element == buffer->type);
  const int lanes = std::max(lanes_of(indices), value->type.lanes);
  KILN_CHECK(value->type.lanes == lanes || lanes == 1);
  KILN_CHECK(!predicate || predicate->type == (Type{DType::Bool, lanes}));
  return new Store(std::move(buffer), std::move(indices), std::move(value), std::move(predicate));
}

Stmt Atomic::make(Operator op, BufferRef buffer, std::vector<Expr> indices, Expr value) {
  KILN_CHECK(buffer && value && value->type == (Type{buffer->type, 1}) && lanes_of(indices) == 1);
  KILN_CHECK(op == Operator::Add || op == Operator::Min || op == Operator::Max);
  return new Atomic(op, std::move(buffer), std::move(indices), std::move(value));
}

Stmt Allocate::make(BufferRef buffer, Stmt body) {
  KILN_CHECK(buffer && body);
  return new Allocate(std::move(buffer), std::move(body));
}

Stmt Check::make(Expr index, Expr extent, int check) {
  KILN_CHECK(index && extent && index->type == kIndexType && extent->type == kIndexType);
  return new Check(std::move(index), std::move(extent), check);
}

Stmt Barrier::make() { return new Barrier(); }

Stmt Shuffle::make(int distance, Expr lane, int width, BufferRef buffer, std::vector<Expr> indices,
                   Expr value) {
  KILN_CHECK(buffer && value && value->type == (Type{buffer->type, 1}) && lanes_of(indices) == 1);
  KILN_CHECK(width >= 1 && width <= kWarp && (width & (width - 1)) == 0 && distance >= 0);
  KILN_CHECK(!lane || (lane->type == kIndexType && distance == 0));
  return new Shuffle(distance, std::move(lane), width, std::move(buffer), std::move(indices),
                     std::move(value));
}

Stmt Background::make(Stmt body) {
  KILN_CHECK(body);
  return new Background(std::move(body));
}

Stmt Await::make(int groups) {
  KILN_CHECK(groups >= 0 && groups <= kMostGroups);
  return new Await(groups);
}

Stmt Tensorize::make(language::TensorIntrinsic intrinsic, Stmt body) {
  KILN_CHECK(body);
  return new Tensorize(intrinsic, std::move(body));
}

Stmt MultiplyTiles::make(Stmt body) {
  KILN_CHECK(body);
  return new MultiplyTiles(std::move(body));
}

Stmt Prefetch::make(BufferRef buffer, std::vector<Expr> indices, FetchInto into) {
  KILN_CHECK(buffer && lanes_of(indices) == 1);
  return new Prefetch(std::move(buffer), std::move(indices), into);
}

}  // namespace kiln::ir
