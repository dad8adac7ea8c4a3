// Notes for the report where much work runs element by element, with the access that is the reason.
// Changes nothing.
//
//   for i in 0..65536 { C[i + 1] = C[i]*A[i] }
//     ->   "i runs one element after the other, 65536 times: each needs what the one before it
//          stored in C"
//   for i in 0..65536 { C[i] = A[i]*2.0 }
//     ->   "i runs one element at a time, though none needs another: vectorize it, .."
//   for i in 0..4096 { C[ramp(i*16, 1, 16)] = A[ramp(i*16384, 1024, 16)] }
//     ->   "A is read 1024 elements apart, ..: each lane of a vector is a load of its own"
//
// A schedule that lost its vectors still computes what it should, so that nobody would know but by
// measuring. Stands behind all that makes vectors and unrolls.
#include <optional>
#include <string>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/passes/carried.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

// Iterations from which a vector would be noticed: about as long as a call takes.
constexpr double kMuchWork = 16384;
// What an extent is taken for that only the call knows.
constexpr double kUnknownExtent = 1024;

/// Whether a statement computes with vectors, or has a loop in it.
class LookInside : public Visitor {
 public:
  bool has_vectors = false;
  bool has_loop = false;
  bool has_floats = false;
  std::string stored;  // the buffer that it stores to last

 private:
  using Visitor::visit;
  void visit(const For&) override { has_loop = true; }
  void visit(const Store& store) override {
    has_vectors = has_vectors || store.value->type.lanes > 1;
    has_floats = has_floats || is_float(store.value->type.element);
    stored = store.buffer->name;
    Visitor::visit(store);
  }
  void visit(const VectorReduce&) override { has_vectors = true; }
  void visit(const Dot&) override { has_vectors = true; }
};

class NoteSlowLoops : public Visitor {
 public:
  explicit NoteSlowLoops(Kernel& kernel) : kernel_(kernel), facts_(facts_of_sizes(kernel)) {}

 private:
  using Visitor::visit;

  void visit(const MultiplyTiles&) override {}

  void visit(const For& loop) override {
    const double outer = work_;
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    work_ *= extent ? static_cast<double>(*extent) : kUnknownExtent;
    note_serial(loop);
    facts_.push_range(loop.var, index(0), reads_memory(loop.extent) ? Expr() : loop.extent);
    Visitor::visit(loop);
    facts_.pop();
    work_ = outer;
  }

  void visit(const Load& load) override {
    if (load.type.lanes > 1 && work_ >= kMuchWork) note_gather(load);
    Visitor::visit(load);
  }

  /// An innermost loop over single elements, each of which waits for the one before.
  void note_serial(const For& loop) {
    LookInside inside;
    inside(loop.body);
    const bool is_slow = loop.loop_kind == LoopKind::Serial && !inside.has_loop &&
                         !inside.has_vectors && inside.has_floats && work_ >= kMuchWork;
    if (!is_slow) return;
    const std::optional<std::string> buffer =
        carried_through(loop, facts_, [](const auto&) { return false; });
    if (!buffer) return note_without_vectors(loop, inside.stored);
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    add_note(kernel_, fmt::format("{} runs one element after the other{}: each needs what the one "
                                  "before it stored in {}",
                                  loop.var->name, extent ? fmt::format(", {} times", *extent) : "",
                                  *buffer));
  }

  /// The same where none waits.
  void note_without_vectors(const For& loop, const std::string& stored) {
    add_note(kernel_,
             fmt::format("{} runs one element at a time, though none needs another: vectorize it, "
                         "or a loop along which {} lies side by side",
                         loop.var->name, stored));
  }

  void note_gather(const Load& load) {
    const auto* const ramp = as<Ramp>(load.indices[0]);
    if (ramp == nullptr || is_const(ramp->stride, 1) || is_const(ramp->stride, 0)) return;
    // Neighbours of a line are loaded as vectors and then moved.
    const std::optional<int64_t> stride = as_const_int(ramp->stride);
    if (stride && *stride * size_of(load.buffer->type) < kLineBytes) return;
    if (load.buffer->scope != Scope::Global) return;
    add_note(kernel_,
             fmt::format("{} is read {} elements apart: each lane of a vector is a load "
                         "of its own; vectorize a loop along which {} lies side by side",
                         load.buffer->name, stride ? std::to_string(*stride) : print(ramp->stride),
                         load.buffer->name));
  }

  static constexpr int64_t kLineBytes = 64;

  Kernel& kernel_;
  analysis::Facts facts_;  // of the loops around
  double work_ = 1;
};

}  // namespace

Kernel note_slow_loops(Kernel kernel, const PassContext&) {
  NoteSlowLoops look(kernel);
  look(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
