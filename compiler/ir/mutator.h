#pragma once

#include <unordered_map>

#include "compiler/ir/stmt.h"

namespace kiln::ir {

/// Rewrites a tree bottom-up. Override visit() for the nodes that change; the default rewrites the
/// children, and gives the same node back when none of them changed.
class Mutator {
 public:
  virtual ~Mutator() = default;
  Expr operator()(const Expr& expr);
  Stmt operator()(const Stmt& stmt);

 protected:
#define EXPR(T) virtual Expr visit(const T& node);
#define STMT(T) virtual Stmt visit(const T& node);
#include "compiler/ir/nodes.def"
  friend struct FieldRewriter;
};

/// Walks a tree, parents first. Override visit(); the default visits the children in order.
class Visitor {
 public:
  virtual ~Visitor() = default;
  void operator()(const Expr& expr);
  void operator()(const Stmt& stmt);

 protected:
#define EXPR(T) virtual void visit(const T& node);
#define STMT(T) virtual void visit(const T& node);
#include "compiler/ir/nodes.def"
  friend struct FieldWalker;
};

using Substitution = std::unordered_map<VarRef, Expr>;
/// With each use of a variable replaced; binding places (loops) stay.
Expr substitute(const Expr& expr, const Substitution& values);
Stmt substitute(const Stmt& stmt, const Substitution& values);

/// Each buffer replaced, wherever one is named.
Stmt replace_buffers(const Stmt& stmt, const std::unordered_map<BufferRef, BufferRef>& buffers);

/// The statement with loop variables and allocated buffers of its own, so that both may stand in
/// one kernel.
Stmt fresh_copy(const Stmt& stmt);

/// Whether the variable appears anywhere inside, extents and indices included.
bool uses_var(const Expr& expr, const VarRef& var);
bool uses_var(const Stmt& stmt, const VarRef& var);
/// Whether there is a Load inside: the value may change while loops run.
bool reads_memory(const Expr& expr);

}  // namespace kiln::ir
