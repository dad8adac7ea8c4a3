// Names the outputs that get non-temporal stores: those that vectors are stored to, that the kernel
// never reads, and that are worth it for some sizes (analysis/nontemporal.h).
//
//   fn k(A: float32[n], C: float32[n]) { C[ramp(0, 1, 32)] = A[ramp(0, 1, 32)] }
//     ->
//   fn k(A: float32[n], C: float32[n]) { nontemporal C  C[ramp(0, 1, 32)] = A[ramp(0, 1, 32)] }
//
// Stands where parameters have their strides. At the call, the size that was not known
// decides, and of each vector whether its place is aligned; others are stored as usual.
#include <optional>
#include <unordered_set>

#include "compiler/analysis/nontemporal.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
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
    if (analysis::may_be_nontemporal(kernel, *buffer) && uses.stored_in_vectors.contains(buffer))
      kernel.nontemporal.push_back(buffer);
  }
  return kernel;
}

}  // namespace kiln::passes
