#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {

/// Whether a loop is over blocks or threads of the launch, and not virtual.
bool is_launch_axis(const ir::For& loop);

/// One variable for each axis of a launch, whichever loop it stands in, with its largest extent.
class LaunchAxes {
 public:
  explicit LaunchAxes(const ir::Stmt& launched);

  const analysis::LoopRange& operator[](ir::ThreadAxis axis) const { return ranges_.at(axis); }
  /// In terms of these variables.
  ir::Expr common(const ir::Expr& expr) const { return ir::substitute(expr, same_); }
  std::vector<ir::Expr> common(const std::vector<ir::Expr>& exprs) const;
  /// The sizes, the host's loops and the blocks of the launch.
  analysis::Facts facts(const ir::Kernel& kernel, const ir::HostLoops& around) const;
  /// Whether all threads of a block agree on the value.
  bool is_uniform(const ir::Expr& expr) const;
  /// A barrier as a statement outside the loops over threads: in a loop over one axis of them.
  ir::Stmt barrier() const;
  /// Whether all threads of the axis run the loop.
  bool is_whole(const ir::For& loop) const;

 private:
  std::map<ir::ThreadAxis, analysis::LoopRange> ranges_;
  ir::Substitution same_;
};

/// Which buffers of a launch its threads share, and whether that can be ordered.
class SharedBuffers : public ir::Visitor {
 public:
  SharedBuffers(const ir::Kernel& kernel, const ir::Stmt& launched, const LaunchAxes& axes,
                const ir::HostLoops& around);

  std::unordered_set<ir::BufferRef> contested;  // a thread may need what another one stored
  std::unordered_set<ir::BufferRef> rewritten;  // of those: two may store the same element
  std::unordered_set<ir::BufferRef> late;       // stored to in the background

  /// A buffer of which one block may need what another one stored, and where they do.
  struct AcrossBlocks {
    ir::BufferRef buffer;
    std::string accesses;
  };
  std::optional<AcrossBlocks> across_blocks;  // the first one

  /// Whether threads meet at an element of a contested buffer within the statement, each of them
  /// in the same iteration of the loops around it; `threads` are those of them over threads.
  bool meet_in(const ir::Stmt& stmt, const ir::BufferRef& buffer,
               const std::vector<const ir::For*>& threads);

 private:
  using IsAsked = bool (*)(ir::ThreadAxis);
  using Visitor::visit;
  void visit(const ir::For& loop) override;
  void visit(const ir::Allocate& allocate) override;
  void visit(const ir::Background& node) override;
  void visit(const ir::Store& store) override;

  void judge(const ir::BufferRef& buffer);
  void look_across_blocks(const ir::BufferRef& buffer,
                          const std::vector<const analysis::Access*>& accesses);
  std::vector<const ir::For*> asked_loops(const analysis::Access& access, IsAsked is_asked) const;
  std::vector<analysis::Place> places_of(const std::vector<const analysis::Access*>& accesses,
                                         IsAsked is_asked) const;
  analysis::Place place_of(const analysis::Access& access, std::vector<analysis::LoopRange> loops,
                           std::vector<ir::Expr> conditions) const;
  analysis::Overlap touch_of(const std::vector<analysis::Place>& places,
                             const std::vector<const analysis::Access*>& accesses,
                             IsAsked is_asked);

  const ir::Kernel& kernel_;
  const LaunchAxes& axes_;
  analysis::Facts facts_;
  const std::vector<analysis::Access> accesses_;
  std::vector<const ir::For*> around_;
  bool is_background_ = false;
};

}  // namespace kiln::passes
