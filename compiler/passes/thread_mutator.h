#pragma once

#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {

/// Knows whether the loops around are those of threads.
class ThreadMutator : public ir::Mutator {
 protected:
  using Mutator::visit;
  ir::Stmt visit(const ir::For& loop) override {
    const bool is_threads = ir::is_thread_axis(loop.thread);
    threads_ += is_threads ? 1 : 0;
    const ir::Stmt result = Mutator::visit(loop);
    threads_ -= is_threads ? 1 : 0;
    return result;
  }
  bool is_in_threads() const { return threads_ > 0; }

 private:
  int threads_ = 0;  // loops over threads around
};

}  // namespace kiln::passes
