#pragma once

#include <unordered_map>

#include "compiler/ir/stmt.h"

namespace kiln::ir {

/// An element of a buffer that a node reads, writes or names otherwise.
struct Element {
  BufferRef buffer;
  std::vector<Expr> indices;
};

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

  /// What becomes of an element, of whichever node; the default rewrites buffer and indices.
  virtual Element element(const BufferRef& buffer, const std::vector<Expr>& indices);
  /// What becomes of a buffer, where it is allocated and where an element of it is named.
  virtual BufferRef buffer(const BufferRef& given) { return given; }
  /// What becomes of a variable that a node binds.
  virtual VarRef bound(const VarRef& given) { return given; }

 private:
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

  /// An element that a node names, before the other children; the default visits the indices.
  virtual void element(const BufferRef& buffer, const std::vector<Expr>& indices);

 private:
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

/// The expressions right inside of one, in the order of its fields.
std::vector<Expr> operands_of(const Expr& expr);

/// Whether the variable appears anywhere inside, extents and indices included.
bool uses_var(const Expr& expr, const VarRef& var);
bool uses_var(const Stmt& stmt, const VarRef& var);
/// Whether there is a Load inside: the value may change while loops run.
bool reads_memory(const Expr& expr);
/// Whether something in it is stored in the background.
bool has_background(const Stmt& stmt);

}  // namespace kiln::ir
