#include "compiler/ir/mutator.h"

#include <type_traits>

#include "compiler/ir/dispatch.h"

namespace kiln::ir {

/// One overload for each kind of field that holds nodes; the others pass through.
struct FieldRewriter {
  Mutator& mutator;
  Expr operator()(const Expr& e) const { return e ? mutator(e) : e; }
  Stmt operator()(const Stmt& s) const { return s ? mutator(s) : s; }
  std::vector<Expr> operator()(const std::vector<Expr>& list) const { return each(list); }
  std::vector<Stmt> operator()(const std::vector<Stmt>& list) const { return each(list); }
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
    auto after = std::apply(
        [&](const auto&... field) { return std::make_tuple(FieldRewriter{mutator}(field)...); },
        node.fields());
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
  using Mutator::visit;
  BufferRef of(const BufferRef& buffer) const {
    const auto found = buffers_.find(buffer);
    return found == buffers_.end() ? buffer : found->second;
  }
  std::vector<Expr> all(const std::vector<Expr>& list) { return FieldRewriter{*this}(list); }
  Expr visit(const Load& load) override {
    return Load::make(of(load.buffer), all(load.indices), FieldRewriter{*this}(load.predicate));
  }
  Stmt visit(const Store& store) override {
    return Store::make(of(store.buffer), all(store.indices), (*this)(store.value),
                       FieldRewriter{*this}(store.predicate));
  }
  Stmt visit(const Prefetch& prefetch) override {
    return Prefetch::make(of(prefetch.buffer), all(prefetch.indices));
  }
  Stmt visit(const Allocate& allocate) override {
    return Allocate::make(of(allocate.buffer), (*this)(allocate.body));
  }
  const std::unordered_map<BufferRef, BufferRef>& buffers_;
};

class FreshCopy : public Mutator {
 private:
  using Mutator::visit;

  Expr visit(const Var& var) override {
    const auto found = vars_.find(VarRef(&var));
    return found == vars_.end() ? Expr(&var) : Expr(found->second);
  }
  Stmt visit(const For& loop) override {
    const Expr extent = (*this)(loop.extent);
    const VarRef var = Var::make(loop.var->name, loop.var->type);
    vars_[loop.var] = var;
    return For::make(var, extent, loop.loop_kind, loop.thread, (*this)(loop.body));
  }

  BufferRef of(const BufferRef& buffer) const {
    const auto found = buffers_.find(buffer);
    return found == buffers_.end() ? buffer : found->second;
  }
  std::vector<Expr> all(const std::vector<Expr>& list) { return FieldRewriter{*this}(list); }
  Expr visit(const Load& load) override {
    return Load::make(of(load.buffer), all(load.indices), FieldRewriter{*this}(load.predicate));
  }
  Stmt visit(const Store& store) override {
    return Store::make(of(store.buffer), all(store.indices), (*this)(store.value),
                       FieldRewriter{*this}(store.predicate));
  }
  Stmt visit(const Prefetch& prefetch) override {
    return Prefetch::make(of(prefetch.buffer), all(prefetch.indices));
  }
  Stmt visit(const Allocate& allocate) override {
    const Buffer& old = *allocate.buffer;
    const BufferRef buffer =
        Buffer::make(old.name, old.type, all(old.shape), old.scope, all(old.strides));
    buffers_[allocate.buffer] = buffer;
    return Allocate::make(buffer, (*this)(allocate.body));
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

#define EXPR(T)                                                                            \
  void Visitor::visit(const T& node) {                                                     \
    std::apply([this](const auto&... f) { (FieldWalker{*this}(f), ...); }, node.fields()); \
  }
#define STMT(T) EXPR(T)
#include "compiler/ir/nodes.def"

Expr substitute(const Expr& expr, const Substitution& values) { return Substitute(values)(expr); }
Stmt substitute(const Stmt& stmt, const Substitution& values) { return Substitute(values)(stmt); }

Stmt replace_buffers(const Stmt& stmt, const std::unordered_map<BufferRef, BufferRef>& buffers) {
  return ReplaceBuffers(buffers)(stmt);
}

Stmt fresh_copy(const Stmt& stmt) { return FreshCopy()(stmt); }

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

}  // namespace kiln::ir
