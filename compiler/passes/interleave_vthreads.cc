// Puts the loop over virtual threads around what is another statement for each of them.
//
//   for v in 0..2 bind(vthread) { allocate s[4] .. { fill b; for j { s[j] = s[j] + b[v, j] } } }
//     ->
//   allocate s[2, 4] .. { fill b; for v in 0..2 unroll { for j { s[v, j] = s[v, j] + b[v, j] } } }
//
// A buffer that differs from one to the next is one for each. Where one may need what another one
// stores they run one after the other, with a note. Stands before insert_barriers.
//
// Virtual threads share what a thread does once: the loop over them goes inward, to each statement
// that is another one for each of them. What they have of their own gets a copy each.
//
//   for v in 0..2 bind(vthread) { allocate s[4] { for k { fill b; for j { s[j] = s[j] + b[v, j] } }
//   } }
//     ->
//   allocate s[2, 4] { for k { fill b; for v in 0..2 { for j { s[v, j] = s[v, j] + b[v, j] } } } }
//
// So tiles in shared memory are filled once for all of them, and their work stands side by side.
// TVM's InjectVirtualThread; loop distribution, which is right since no iteration needs another
// one: that is proved here.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kMostCopies = 8;  // written out; more are a loop

/// Whether a tree is another one for each value of a variable: by it, or by buffers of which each
/// value has its own.
class Depends : public Visitor {
 public:
  Depends(const VarRef& var, const std::unordered_set<BufferRef>& own) : var_(var), own_(own) {}
  bool found = false;

  template <typename Tree>
  static bool on(const Tree& tree, const VarRef& var, const std::unordered_set<BufferRef>& own) {
    if (!tree) return false;
    Depends walk(var, own);
    walk(tree);
    return walk.found;
  }

 private:
  using Visitor::visit;
  void visit(const Var& var) override { found = found || &var == var_.get(); }
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    found = found || own_.contains(buffer);
    Visitor::element(buffer, indices);
  }

  const VarRef& var_;
  const std::unordered_set<BufferRef>& own_;
};

/// The buffers allocated in a tree whose contents differ from virtual thread to virtual thread.
class OwnBuffers : public Visitor {
 public:
  explicit OwnBuffers(const VarRef& var) : var_(var) {}
  std::unordered_set<BufferRef> own;
  bool grew = false;

 private:
  using Visitor::visit;

  template <typename Node, typename Expression>
  void under(const Expression& decides, const Node& node) {
    const bool was = differs_;
    differs_ = differs_ || Depends::on(decides, var_, own);
    Visitor::visit(node);
    differs_ = was;
  }
  void visit(const For& loop) override { under(loop.extent, loop); }
  void visit(const If& node) override { under(node.condition, node); }
  void visit(const Allocate& allocate) override {
    allocated_.insert(allocate.buffer);
    Visitor::visit(allocate);
  }
  void visit(const Store& node) override { note(Stmt(&node), node.buffer); }
  void visit(const Atomic& node) override { note(Stmt(&node), node.buffer); }
  void visit(const Shuffle& node) override { note(Stmt(&node), node.buffer); }

  void note(const Stmt& stmt, const BufferRef& buffer) {
    if (!allocated_.contains(buffer) || !(differs_ || Depends::on(stmt, var_, own))) return;
    grew = own.insert(buffer).second || grew;
  }

  const VarRef& var_;
  std::unordered_set<BufferRef> allocated_;
  bool differs_ = false;  // what stands around decides for each by itself
};

std::unordered_set<BufferRef> own_buffers(const For& loop) {
  OwnBuffers walk(loop.var);
  do {
    walk.grew = false;
    walk(loop.body);
  } while (walk.grew);
  return std::move(walk.own);
}

/// Puts one loop over virtual threads around each statement that needs it.
class Inward : public Mutator {
 public:
  explicit Inward(const For& loop) : loop_(loop), own_(own_buffers(loop)) {}
  Stmt operator()() { return (*this)(loop_.body); }

 private:
  using Mutator::operator();
  using Mutator::visit;

  template <typename Tree>
  bool depends(const Tree& tree) const {
    return Depends::on(tree, loop_.var, own_);
  }

  Stmt visit(const For& inner) override {
    if (depends(inner.extent)) return for_each(&inner);
    return Mutator::visit(inner);
  }
  Stmt visit(const If& node) override {
    return depends(node.condition) ? for_each(&node) : Mutator::visit(node);
  }
  Stmt visit(const Allocate& allocate) override {
    const Buffer& buffer = *allocate.buffer;
    if (!own_.contains(allocate.buffer)) return Mutator::visit(allocate);
    std::vector<Expr> shape = {loop_.extent};
    shape.insert(shape.end(), buffer.shape.begin(), buffer.shape.end());
    std::vector<Expr> strides = buffer.strides;
    if (!strides.empty()) strides.insert(strides.begin(), strides[0] * buffer.shape[0]);
    const BufferRef all = Buffer::make(buffer.name, buffer.type, std::move(shape), buffer.scope,
                                       std::move(strides), buffer.swizzle);
    copies_.emplace(allocate.buffer, all);
    return Allocate::make(all, (*this)(allocate.body));
  }
  Stmt visit(const Store& node) override { return for_each(&node); }
  Stmt visit(const Atomic& node) override { return for_each(&node); }
  Stmt visit(const Shuffle& node) override { return for_each(&node); }
  Stmt visit(const Check& node) override { return for_each(&node); }

  /// The statement as it is, or once for each virtual thread.
  Stmt for_each(const Stmt& stmt) const {
    if (!depends(stmt)) return stmt;
    const VarRef var = Var::make(loop_.var->name);
    const Stmt body = OwnElements(copies_, var)(substitute(stmt, {{loop_.var, var}}));
    const bool are_few = as_const_int(loop_.extent).value_or(kMostCopies + 1) <= kMostCopies;
    const bool is_written_out = are_few && thread_loops(body).empty();
    return For::make(var, loop_.extent, is_written_out ? LoopKind::Unrolled : LoopKind::Serial,
                     body);
  }

  /// Elements of what each has its own of.
  class OwnElements : public Mutator {
   public:
    OwnElements(const std::unordered_map<BufferRef, BufferRef>& copies, const VarRef& var)
        : copies_(copies), var_(var) {}

   private:
    Element element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
      Element result = Mutator::element(buffer, indices);
      const auto copy = copies_.find(buffer);
      if (copy == copies_.end()) return result;
      result.buffer = copy->second;
      result.indices.insert(result.indices.begin(), Expr(var_));
      return result;
    }
    const std::unordered_map<BufferRef, BufferRef>& copies_;
    const VarRef& var_;
  };

  const For& loop_;
  const std::unordered_set<BufferRef> own_;
  std::unordered_map<BufferRef, BufferRef> copies_;
};

class InterleaveVthreads : public Mutator {
 public:
  explicit InterleaveVthreads(Kernel& kernel) : kernel_(kernel), facts_(facts_of_sizes(kernel)) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const Stmt inner = Mutator::visit(loop);
    const For* virtual_threads = as<For>(inner);
    if (loop.thread != ThreadAxis::VThread) return inner;
    if (reads_memory(loop.extent)) return inner;
    if (!are_independent(*virtual_threads)) {
      add_note(kernel_, fmt::format("the virtual threads of {} run one after the other: one may "
                                    "need what another one stores",
                                    loop.var->name));
      return inner;
    }
    return Inward(*virtual_threads)();
  }

  /// Whether no virtual thread touches what another one stores.
  bool are_independent(const For& loop) {
    std::unordered_map<BufferRef, std::vector<analysis::Place>> places;
    for (const analysis::Access& access : analysis::accesses_of(loop.body)) {
      if (access.is_own()) continue;
      places[access.buffer].push_back(analysis::place_in(loop, access));
    }
    return std::ranges::all_of(places, [&](const auto& entry) {
      const bool is_stored = std::ranges::any_of(entry.second, &analysis::Place::is_store);
      return !is_stored ||
             analysis::overlap_of(entry.second, {loop.var}, facts_).touch == analysis::Touch::Never;
    });
  }

  Kernel& kernel_;
  analysis::Facts facts_;
};

}  // namespace

ir::Kernel interleave_vthreads(ir::Kernel kernel, const PassContext&) {
  InterleaveVthreads mutator(kernel);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
