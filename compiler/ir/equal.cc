// Compares and hashes trees by the fields() that each node states once; only nodes that bind
// something are written out. Comparing two loops maps one's variable to the other's, so that i and
// j stand for each other inside (equality up to renaming, or alpha-equivalence).
#include "compiler/ir/equal.h"

#include <bit>
#include <functional>
#include <unordered_map>

#include "compiler/ir/dispatch.h"

namespace kiln::ir {
namespace {

class Equality {
 public:
  bool same(const Expr& a, const Expr& b) { return same_nodes(a, b); }
  bool same(const Stmt& a, const Stmt& b) { return same_nodes(a, b); }

  bool same(const VarRef& a, const VarRef& b) {
    const auto found = vars_.find(a.get());
    return found == vars_.end() ? a == b : found->second == b.get();
  }

  bool same(const BufferRef& a, const BufferRef& b) {
    const auto found = buffers_.find(a.get());
    return found == buffers_.end() ? a == b : found->second == b.get();
  }

  /// Bit by bit: nan equals itself, and 0.0 and -0.0 differ, as results do.
  bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

  template <typename T>
  bool same(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same(a[i], b[i])) return false;
    }
    return true;
  }

  template <typename T>
  bool same(const T& a, const T& b) {
    return a == b;
  }

  /// Makes b's variable stand for a's.
  bool bind(const VarRef& a, const VarRef& b) {
    vars_[a.get()] = b.get();
    return a->type == b->type;
  }
  bool bind(const std::vector<VarRef>& a, const std::vector<VarRef>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!bind(a[i], b[i])) return false;
    }
    return true;
  }
  bool bind(const BufferRef& a, const BufferRef& b) {
    if (a->type != b->type || a->scope != b->scope || a->swizzle != b->swizzle ||
        !same(a->shape, b->shape) || !same(a->strides, b->strides)) {
      return false;
    }
    buffers_[a.get()] = b.get();
    return true;
  }

 private:
  template <typename Ref>
  bool same_nodes(const Ref& a, const Ref& b) {
    if (!a || !b) return !a && !b;
    // One node is equal to itself only as long as nothing is mapped: inside a loop its variables
    // may stand for others.
    if (a == b && vars_.empty() && buffers_.empty()) return true;
    if (a->kind != b->kind) return false;
    return dispatch(
        *a, [&](const auto& node) { return same_node(node, static_cast<decltype(node)>(*b)); });
  }

  bool same_node(const Var& a, const Var& b) { return same(VarRef(&a), VarRef(&b)); }

  bool same_node(const For& a, const For& b) {
    return same(a.extent, b.extent) && a.loop_kind == b.loop_kind && a.thread == b.thread &&
           bind(a.var, b.var) && same(a.body, b.body);
  }

  bool same_node(const Allocate& a, const Allocate& b) {
    return bind(a.buffer, b.buffer) && same(a.body, b.body);
  }

  bool same_node(const Reduce& a, const Reduce& b) {
    return a.how == b.how && same(a.init, b.init) && bind(a.axes, b.axes) &&
           same(a.sources, b.sources) && same(a.condition, b.condition);
  }

  template <typename T>
  bool same_node(const T& a, const T& b) {
    return same_fields(a.fields(), b.fields(),
                       std::make_index_sequence<std::tuple_size_v<decltype(a.fields())>>());
  }

  template <typename Tuple, size_t... I>
  bool same_fields(const Tuple& a, const Tuple& b, std::index_sequence<I...>) {
    return (same(std::get<I>(a), std::get<I>(b)) && ...);
  }

  std::unordered_map<const Var*, const Var*> vars_;
  std::unordered_map<const Buffer*, const Buffer*> buffers_;
};

/// Mixes the fields of a node. Variables, and what else is bound by identity, count by address.
struct Hash {
  size_t value = 0;

  void add(size_t piece) { value = (value ^ piece) * 0x9E3779B97F4A7C15u + (value >> 29); }

  void operator()(const Expr& expr) {
    if (!expr) return add(0);
    add(static_cast<size_t>(expr->kind));
    if (const Var* var = as<Var>(expr)) return add(std::hash<const Var*>()(var));
    if (const Reduce* reduce = as<Reduce>(expr)) return add(reduce->axes.size());
    dispatch(*expr, [this](const auto& node) {
      std::apply([this](const auto&... field) { ((*this)(field), ...); }, node.fields());
    });
  }
  void operator()(const Combination& how) { add(how.output); }
  void operator()(const Type& type) { add(static_cast<size_t>(type.element) * 4096 + type.lanes); }
  void operator()(const BufferRef& buffer) { add(std::hash<BufferRef>()(buffer)); }
  void operator()(const std::string& text) { add(std::hash<std::string>()(text)); }
  void operator()(double number) { add(std::bit_cast<uint64_t>(number)); }
  template <typename T>
  void operator()(const std::vector<T>& list) {
    add(list.size());
    for (const T& item : list)
      (*this)(item);
  }
  template <typename T>
  requires std::is_enum_v<T> || std::is_integral_v<T>
  void operator()(T scalar) { add(static_cast<size_t>(scalar)); }
};

bool same_workspace(Equality& equality, const Kernel& a, const Kernel& b) {
  if (a.workspace.size() != b.workspace.size()) return false;
  for (size_t i = 0; i < a.workspace.size(); ++i) {
    const Kernel::WorkspaceBuffer& x = a.workspace[i];
    const Kernel::WorkspaceBuffer& y = b.workspace[i];
    if (x.per_thread != y.per_thread || !equality.same(x.offset_bytes, y.offset_bytes) ||
        !equality.bind(x.buffer, y.buffer)) {
      return false;
    }
  }
  return equality.same(a.workspace_bytes, b.workspace_bytes) &&
         equality.same(a.workspace_bytes_per_thread, b.workspace_bytes_per_thread);
}

}  // namespace

bool equal_trees(const Expr& a, const Expr& b) { return a == b || Equality().same(a, b); }
bool equal_trees(const Stmt& a, const Stmt& b) { return a == b || Equality().same(a, b); }

bool equal_kernels(const Kernel& a, const Kernel& b) {
  Equality equality;
  if (a.name != b.name || a.is_output != b.is_output || a.checks != b.checks ||
      a.parameters.size() != b.parameters.size() || a.nontemporal.size() != b.nontemporal.size() ||
      !equality.bind(a.sizes, b.sizes) || !equality.bind(a.strides, b.strides)) {
    return false;
  }
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    if (!equality.bind(a.parameters[i], b.parameters[i])) return false;
  }
  return same_workspace(equality, a, b) && equality.same(a.nontemporal, b.nontemporal) &&
         equality.same(a.body, b.body);
}

size_t hash_of(const Expr& expr) {
  Hash hash;
  hash(expr);
  return hash.value;
}

}  // namespace kiln::ir
