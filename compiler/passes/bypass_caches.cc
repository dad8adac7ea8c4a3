// Names the outputs that get non-temporal stores: those that the kernel never reads, whose rows do
// not share lines, and that are larger than a cache or of a size that is not known yet. A cached
// store first reads the line it writes, and evicts what is needed sooner.
//
//   fn k(A: float32[n], C: float32[n]) { C[ramp(0, 1, 32)] = A[ramp(0, 1, 32)] }
//     ->
//   fn k(A: float32[n], C: float32[n]) { nontemporal C  C[ramp(0, 1, 32)] = A[ramp(0, 1, 32)] }
//
// Stands last, where parameters have their strides. At the call, the size that was not known
// decides, and of each vector whether its place is aligned; others are stored as usual.
//
// Names the outputs that are worth non-temporal stores: vectors of them are written, the kernel
// never reads them back, and they are larger than what a cache keeps for the next kernel. Ordinary
// stores cost a read of each line as well (read for ownership), so that a copy moves three lines
// for two.
#include <optional>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/constant_bytes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// The buffers a kernel reads, and those it stores vectors to.
class Uses : public Visitor {
 public:
  std::unordered_set<BufferRef> read;
  std::unordered_set<BufferRef> stored_in_vectors;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    read.insert(load.buffer);
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    if (store.value->type.lanes > 1) stored_in_vectors.insert(store.buffer);
    Visitor::visit(store);
  }
};

}  // namespace

Kernel bypass_caches(Kernel kernel, const PassContext&) {
  Uses uses;
  uses(kernel.body);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const BufferRef& buffer = kernel.parameters[i];
    if (!kernel.is_output[i] || uses.read.contains(buffer)) continue;
    if (may_bypass_caches(*buffer) && uses.stored_in_vectors.contains(buffer))
      kernel.nontemporal.push_back(buffer);
  }
  return kernel;
}

}  // namespace kiln::passes
