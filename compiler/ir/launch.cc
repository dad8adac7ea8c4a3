// What the passes and the source generator agree on for CUDA: where a kernel divides into launches,
// and the limits of compute capability 3.0 and later (CUDA C++ programming guide, technical
// specifications). Statements that hold thread loops are launched one after the other, each seeing
// all that those before it stored.
#include "compiler/ir/launch.h"

#include <algorithm>

#include "compiler/ir/mutator.h"

namespace kiln::ir {

namespace {

class CollectThreadLoops : public Visitor {
 public:
  std::vector<const For*> loops;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    if (loop.loop_kind == LoopKind::ThreadIndex) loops.push_back(&loop);
    Visitor::visit(loop);
  }
};

class UsesOnly : public Visitor {
 public:
  explicit UsesOnly(std::span<const VarRef> allowed) : allowed_(allowed) {}
  bool result = true;

 private:
  using Visitor::visit;
  void visit(const Var& var) override {
    const auto is_var = [&](const VarRef& other) { return other.get() == &var; };
    result = result && std::ranges::any_of(allowed_, is_var);
  }
  void visit(const Load&) override { result = false; }
  const std::span<const VarRef> allowed_;
};

struct MapLaunches {
  const std::function<Stmt(const Stmt&, const HostLoops&)>& replace;
  HostLoops& around;

  Stmt operator()(const Stmt& body) const {
    if (const Allocate* allocate = as<Allocate>(body); allocate && !thread_loops(body).empty())
      return Allocate::make(allocate->buffer, (*this)(allocate->body));
    if (const For* loop = as<For>(body); loop && loop->loop_kind == LoopKind::Host) {
      around.push_back(loop);
      const Stmt inner = (*this)(loop->body);
      around.pop_back();
      return For::make(loop->var, loop->extent, LoopKind::Host, inner);
    }
    const Block* block = as<Block>(body);
    if (block == nullptr) return replace(body, around);
    std::vector<Stmt> result;
    for (const Stmt& stmt : block->body)
      result.push_back((*this)(stmt));
    return Block::make(std::move(result));
  }
};

}  // namespace

int64_t launch_limit(ThreadAxis axis) {
  switch (axis) {
    case ThreadAxis::BlockX: return 2147483647;
    case ThreadAxis::BlockY:
    case ThreadAxis::BlockZ: return 65535;
    case ThreadAxis::ThreadZ: return 64;
    default: return kThreadsOfBlock;
  }
}

bool is_block_axis(ThreadAxis axis) {
  return axis == ThreadAxis::BlockX || axis == ThreadAxis::BlockY || axis == ThreadAxis::BlockZ;
}

bool is_thread_axis(ThreadAxis axis) {
  return axis == ThreadAxis::ThreadX || axis == ThreadAxis::ThreadY || axis == ThreadAxis::ThreadZ;
}

std::vector<Stmt> launched_statements(const Stmt& body) {
  std::vector<Stmt> result;
  map_launches(body, [&](const Stmt& stmt, const HostLoops&) {
    result.push_back(stmt);
    return stmt;
  });
  return result;
}

Stmt map_launches(const Stmt& body,
                  const std::function<Stmt(const Stmt&, const HostLoops& around)>& replace) {
  HostLoops around;
  return MapLaunches{replace, around}(body);
}

LaunchNest launch_nest(const Stmt& launched) {
  LaunchNest nest;
  nest.body = launched;
  while (const For* loop = as<For>(nest.body)) {
    if (loop->loop_kind != LoopKind::ThreadIndex) break;
    nest.axes.push_back(loop);
    nest.body = loop->body;
  }
  return nest;
}

bool is_known_to_host(const Expr& expr, std::span<const VarRef> known) {
  UsesOnly walk(known);
  walk(expr);
  return walk.result;
}

std::vector<const For*> thread_loops(const Stmt& stmt) {
  CollectThreadLoops walk;
  walk(stmt);
  return std::move(walk.loops);
}

}  // namespace kiln::ir
