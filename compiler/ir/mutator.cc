// Walking and rewriting of trees, derived from the fields() of the nodes:
//
//   Store(buffer, indices, value, predicate)
//     -> Store::make(element(buffer, indices), (*this)(value), (*this)(predicate))
//
// The node stays the same one where no field changes, so that passes cost only what they rewrite.
#include "compiler/ir/mutator.h"

#include <type_traits>

#include "compiler/ir/dispatch.h"

namespace kiln::ir {

/// Whether two fields of a node are the buffer and the indices of an element.
template <typename T>
constexpr bool names_element = requires(const T& node) {
  node.buffer;
  node.indices;
};

/// One overload for each kind of field that holds nodes; the others pass through.
struct FieldRewriter {
  Mutator& mutator;
  Expr operator()(const Expr& e) const { return e ? mutator(e) : e; }
  Stmt operator()(const Stmt& s) const { return s ? mutator(s) : s; }
  BufferRef operator()(const BufferRef& buffer) const { return mutator.buffer(buffer); }
  VarRef operator()(const VarRef& var) const { return mutator.bound(var); }
  std::vector<Expr> operator()(const std::vector<Expr>& list) const { return each(list); }
  std::vector<Stmt> operator()(const std::vector<Stmt>& list) const { return each(list); }
  std::vector<VarRef> operator()(const std::vector<VarRef>& list) const { return each(list); }
  template <typename T>
  T operator()(const T& field) const {
    return field;
  }
  template <typename T>
  std::vector<T> each(const std::vector<T>& list) const {
    std::vector<T> result;
    result.reserve(list.size());
    for (const T& item : list)
      result.push_back((*this)(item));
    return result;
  }

  template <typename T>
  auto all_of(const T& node) const {
    if constexpr (names_element<T>) {
      Element element = mutator.element(node.buffer, node.indices);
      return each_by(node, [&](const auto& field) { return of_element(element, field); });
    } else {
      return each_by(node, *this);
    }
  }

 private:
  /// The node's list of expressions is that of the indices.
  template <typename T>
  T of_element(Element& element, const T& field) const {
    if constexpr (std::is_same_v<T, BufferRef>) {
      return std::move(element.buffer);
    } else if constexpr (std::is_same_v<T, std::vector<Expr>>) {
      return std::move(element.indices);
    } else {
      return (*this)(field);
    }
  }
  /// Braces, unlike arguments, are computed from left to right.
  template <typename T, typename F>
  static auto each_by(const T& node, const F& rewrite) {
    return std::apply(
        [&](const auto&... field) {
          return std::tuple<std::decay_t<decltype(field)>...>{rewrite(field)...};
        },
        node.fields());
  }
};

struct FieldWalker {
  Visitor& visitor;
  void operator()(const Expr& e) const {
    if (e) visitor(e);
  }
  void operator()(const Stmt& s) const {
    if (s) visitor(s);
  }
  template <typename T>
  void operator()(const std::vector<T>& list) const {
    for (const T& item : list)
      (*this)(item);
  }
  template <typename T>
  void operator()(const T&) const {}

  template <typename T>
  void all_of(const T& node) const {
    if constexpr (names_element<T>) visitor.element(node.buffer, node.indices);
    std::apply([&](const auto&... field) { (beside_element<T>(field), ...); }, node.fields());
  }

 private:
  template <typename T, typename Field>
  void beside_element(const Field& field) const {
    if constexpr (!names_element<T> || !std::is_same_v<Field, std::vector<Expr>>) (*this)(field);
  }
};

namespace {

template <typename Tuple>
auto copy_of(const Tuple& references) {
  return std::apply(
      [](const auto&... field) { return std::tuple<std::decay_t<decltype(field)>...>(field...); },
      references);
}

/// The node with its children rewritten, or the node itself when none of them changed.
template <typename T>
auto rebuild(Mutator& mutator, const T& node) {
  using Result = std::conditional_t<std::is_base_of_v<ExprNode, T>, Expr, Stmt>;
  if constexpr (std::is_same_v<T, Var>) {
    return Result(&node);  // a copy would be another variable
  } else {
    const auto before = copy_of(node.fields());
    auto after = FieldRewriter{mutator}.all_of(node);
    if (after == before) return Result(&node);
    return Result(std::apply([](auto&&... field) { return T::make(std::move(field)...); }, after));
  }
}

class Substitute : public Mutator {
 public:
  explicit Substitute(const Substitution& values) : values_(values) {}

 private:
  using Mutator::visit;
  Expr visit(const Var& var) override {
    const auto found = values_.find(VarRef(&var));
    return found == values_.end() ? Expr(&var) : found->second;
  }
  const Substitution& values_;
};

class ReplaceBuffers : public Mutator {
 public:
  explicit ReplaceBuffers(const std::unordered_map<BufferRef, BufferRef>& buffers)
      : buffers_(buffers) {}

 private:
  BufferRef buffer(const BufferRef& given) override {
    const auto found = buffers_.find(given);
    return found == buffers_.end() ? given : found->second;
  }
  const std::unordered_map<BufferRef, BufferRef>& buffers_;
};

class FreshCopy : public Mutator {
 private:
  using Mutator::visit;

  Expr visit(const Var& var) override { return bound(VarRef(&var)); }
  VarRef bound(const VarRef& given) override {
    const auto found = vars_.find(given);
    return found == vars_.end() ? given : found->second;
  }
  BufferRef buffer(const BufferRef& given) override {
    const auto found = buffers_.find(given);
    return found == buffers_.end() ? given : found->second;
  }
  Stmt visit(const For& loop) override {
    vars_[loop.var] = Var::make(loop.var->name, loop.var->type);
    return Mutator::visit(loop);
  }
  Stmt visit(const Allocate& allocate) override {
    const Buffer& old = *allocate.buffer;
    const FieldRewriter rewritten{*this};
    buffers_[allocate.buffer] = Buffer::make(old.name, old.type, rewritten(old.shape), old.scope,
                                             rewritten(old.strides), old.swizzle);
    return Mutator::visit(allocate);
  }

  std::unordered_map<VarRef, VarRef> vars_;
  std::unordered_map<BufferRef, BufferRef> buffers_;
};

class UsesVar : public Visitor {
 public:
  explicit UsesVar(const VarRef& var) : var_(var) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Var& var) override { found = found || &var == var_.get(); }
  const VarRef& var_;
};

class FindLoad : public Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Load&) override { found = true; }
};

class FindBackground : public Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Background&) override { found = true; }
};

/// Collects the expressions of one node, into which it does not go.
class Operands : public Visitor {
 public:
  explicit Operands(const Expr& root) : root_(root) { (*this)(root); }
  std::vector<Expr> found;

 private:
  using Visitor::visit;
  template <typename T>
  void enter(const T& node) {
    if (&node == root_.get()) return Visitor::visit(node);
    found.emplace_back(&node);
  }
#define EXPR(T) \
  void visit(const T& node) override { enter(node); }
#include "compiler/ir/nodes.def"
  const Expr& root_;
};

}  // namespace

Expr Mutator::operator()(const Expr& expr) {
  return dispatch(*expr, [this](const auto& node) { return visit(node); });
}

Stmt Mutator::operator()(const Stmt& stmt) {
  return dispatch(*stmt, [this](const auto& node) { return visit(node); });
}

void Visitor::operator()(const Expr& expr) {
  dispatch(*expr, [this](const auto& node) { visit(node); });
}

void Visitor::operator()(const Stmt& stmt) {
  dispatch(*stmt, [this](const auto& node) { visit(node); });
}

#define EXPR(T) \
  Expr Mutator::visit(const T& node) { return rebuild(*this, node); }
#define STMT(T) \
  Stmt Mutator::visit(const T& node) { return rebuild(*this, node); }
#include "compiler/ir/nodes.def"

#define EXPR(T) \
  void Visitor::visit(const T& node) { FieldWalker{*this}.all_of(node); }
#define STMT(T) EXPR(T)
#include "compiler/ir/nodes.def"

Element Mutator::element(const BufferRef& given, const std::vector<Expr>& indices) {
  return {buffer(given), FieldRewriter{*this}(indices)};
}

void Visitor::element(const BufferRef&, const std::vector<Expr>& indices) {
  FieldWalker{*this}(indices);
}

Expr substitute(const Expr& expr, const Substitution& values) { return Substitute(values)(expr); }
Stmt substitute(const Stmt& stmt, const Substitution& values) { return Substitute(values)(stmt); }

Stmt replace_buffers(const Stmt& stmt, const std::unordered_map<BufferRef, BufferRef>& buffers) {
  return ReplaceBuffers(buffers)(stmt);
}

Stmt fresh_copy(const Stmt& stmt) { return FreshCopy()(stmt); }

std::vector<Expr> operands_of(const Expr& expr) { return std::move(Operands(expr).found); }

bool uses_var(const Expr& expr, const VarRef& var) {
  UsesVar walk(var);
  walk(expr);
  return walk.found;
}

bool uses_var(const Stmt& stmt, const VarRef& var) {
  UsesVar walk(var);
  walk(stmt);
  return walk.found;
}

bool reads_memory(const Expr& expr) {
  FindLoad find;
  find(expr);
  return find.found;
}

bool has_background(const Stmt& stmt) {
  FindBackground find;
  find(stmt);
  return find.found;
}

}  // namespace kiln::ir
