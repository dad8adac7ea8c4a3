#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "compiler/ir/mutator.h"
#include "compiler/passes/warp_layout.h"

namespace kiln::passes {

/// A buffer of a warp and what each thread holds of it instead.
struct WarpBuffer {
  ir::BufferRef whole;
  ir::BufferRef part;  // of one thread
  WarpLayout layout;
  ir::VarRef lane;
  std::unordered_set<ir::VarRef> varying;            // what threads of a warp do not agree on
  std::function<void(std::string_view why)> refuse;  // throws
};

/// Whether all threads of a warp agree on the value.
bool is_uniform(const ir::Expr& expr, const std::unordered_set<ir::VarRef>& varying);

/// Rewrites what a thread does with the buffer: stores are to its part, and so are loads of what it
/// holds itself; others are shuffles, in front of the statement, to which all threads come.
///
///   if t < n { C[t] = W[31 - t] }
///     ->
///   allocate W.read: float32[1]
///   shuffle lane 31 - t of 32: W.read[0] = W.part[0]
///   if t < n { C[t] = W.read[0] }
class WarpReads {
 public:
  /// All threads of the warp come to what is rewritten; `facts` hold there.
  WarpReads(const WarpBuffer& buffer, analysis::Facts facts)
      : buffer_(buffer), facts_(std::move(facts)) {}
  ir::Stmt operator()(const ir::Stmt& stmt);

  /// Whether what was rewritten stores an element only under a condition.
  bool stores_conditionally() const { return stores_conditionally_; }

 private:
  class Accesses;
  ir::Stmt of_loop(const ir::Stmt& stmt);
  ir::Stmt of_branch(const ir::Stmt& stmt);
  ir::Stmt with_shuffles(const ir::Stmt& stmt);
  std::optional<ir::Stmt> without_shuffles(const ir::Stmt& stmt);
  ir::Stmt guarded(ir::Stmt stmt) const;
  bool names_buffer(const ir::Stmt& stmt) const;

  const WarpBuffer& buffer_;
  analysis::Facts facts_;
  std::vector<ir::Expr> guards_;  // around the statement, for each thread its own
  int conditions_ = 0;            // likewise, of any kind
  bool stores_conditionally_ = false;
};

}  // namespace kiln::passes
