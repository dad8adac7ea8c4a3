// The parameters of a launch, and which pointers say that nobody else changes what they lead to.
//
//   C[i] = A[i] + 1.0          ->  const float* __restrict__ A, float* __restrict__ C
//   S[t + 1, i] = S[t, n - i]  ->  float* S
//
// No two tensors of a call share memory of which one is written: runtime/overlap.h gives such an
// output memory of its own, and a program has its updated parameters alone. That lets loads go past
// stores, and inputs through the cache of what nobody writes. Threads of a launch do share its
// outputs: where it reads what it also writes, another thread may have written it, so that the
// compiler must keep to the order of barriers.
#include "compiler/codegen/cuda_parameters.h"

#include <fmt/format.h>

#include "compiler/codegen/cuda_expr.h"
#include "compiler/codegen/cuda_uses.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {
namespace {

using namespace ir;

class Touched : public Visitor {
 public:
  explicit Touched(const Stmt& body) { (*this)(body); }

  bool is_one_way(const Buffer* buffer) const {
    return !both_.contains(buffer) && !(read_.contains(buffer) && written_.contains(buffer));
  }

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    read_.insert(load.buffer.get());
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    written_.insert(store.buffer.get());
    Visitor::visit(store);
  }
  void visit(const Atomic& node) override {
    both_.insert(node.buffer.get());
    Visitor::visit(node);
  }

  BufferSet read_;
  BufferSet written_;
  BufferSet both_;
};

}  // namespace

std::string cuda_parameters(const Kernel& kernel, const Stmt& body, const HostLoops& around,
                            CudaNames& names, std::string_view size_type) {
  const Touched touched(body);
  std::string text;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const BufferRef& buffer = kernel.parameters[i];
    text +=
        fmt::format("{}{}* {}{}, ", kernel.is_output[i] ? "" : "const ", cuda_type(buffer->type),
                    touched.is_one_way(buffer.get()) ? "__restrict__ " : "", names[buffer]);
  }
  for (const VarRef& size : kernel.sizes)
    text += fmt::format("{} {}, ", size_type, names[size]);
  for (const VarRef& stride : kernel.strides)
    text += fmt::format("long long {}, ", names[stride]);
  // Strides are passed to compact kernels too: the runtime calls all variants alike.
  if (kernel.strides.empty()) {
    for (const BufferRef& buffer : kernel.parameters) {
      for (size_t d = 0; d < buffer->shape.size(); ++d)
        text += "long long, ";
    }
  }
  text += "unsigned char* workspace, KilnFault* fault";
  for (const For* loop : around)
    text += fmt::format(", {} {}", size_type, names[loop->var]);
  return text;
}

}  // namespace kiln::codegen
