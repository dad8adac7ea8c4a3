// Walks over the loops of a launch for what must be known before its code is written.
#include "compiler/codegen/cuda_uses.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/matrix_product.h"
#include "compiler/ir/build.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

using namespace ir;

class UsedBuffers : public Visitor {
 public:
  BufferSet used;

 private:
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    used.insert(buffer.get());
    Visitor::element(buffer, indices);
  }
};

class SharedBytes : public Visitor {
 public:
  int64_t bytes = 0;

 private:
  using Visitor::visit;
  void visit(const Allocate& allocate) override {
    if (allocate.buffer->scope == Scope::Shared) bytes += aligned_bytes(*allocate.buffer);
    Visitor::visit(allocate);
  }
};

class VectorBuffers : public Visitor {
 public:
  BufferSet found;

 private:
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    if (as<Ramp>(indices[0]) != nullptr) found.insert(buffer.get());
    Visitor::element(buffer, indices);
  }
};

class HasChecks : public Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Check& check) override {
    found = true;
    Visitor::visit(check);
  }
};

class FindsMatrices : public Visitor {
 public:
  explicit FindsMatrices(const std::vector<const For*>& axes) : axes_(axes) {}
  MatrixBuffers found;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    if (const auto product = analysis::find_matrix_product(loop, axes_)) {
      found.factors.insert(product->rows.buffer.get());
      found.factors.insert(product->columns.buffer.get());
      found.sums.insert(product->sums.get());
    }
    Visitor::visit(loop);
  }
  const std::vector<const For*>& axes_;
};

class Chooses : public Visitor {
 public:
  Chooses(const VarRef& var, const BufferSet& buffers) : var_(var), buffers_(buffers) {}
  bool found = false;

 private:
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    found = found || (buffers_.contains(buffer.get()) && uses_var(indices[0], var_));
    Visitor::element(buffer, indices);
  }
  const VarRef& var_;
  const BufferSet& buffers_;
};

}  // namespace

BufferSet used_buffers(const Stmt& body) {
  UsedBuffers walk;
  walk(body);
  return std::move(walk.used);
}

BufferSet vector_buffers(const Stmt& body) {
  VectorBuffers walk;
  walk(body);
  return std::move(walk.found);
}

bool chooses_among(const For& loop, const BufferSet& buffers) {
  if (buffers.empty()) return false;
  Chooses walk(loop.var, buffers);
  walk(loop.body);
  return walk.found;
}

MatrixBuffers matrix_buffers(const Stmt& body, const std::vector<const For*>& axes) {
  FindsMatrices walk(axes);
  walk(body);
  return std::move(walk.found);
}

int64_t elements_of(const Buffer& buffer) {
  int64_t elements = 1;
  for (const Expr& extent : extents_in_memory(buffer)) {
    const std::optional<int64_t> value = as_const_int(extent);
    KILN_CHECK(value.has_value());
    elements *= *value;
  }
  return std::max<int64_t>(elements, 1);
}

int64_t aligned_bytes(const Buffer& buffer) {
  const int64_t bytes = elements_of(buffer) * size_of(buffer.type);
  return (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
}

int64_t dynamic_shared_bytes(const LaunchNest& nest) {
  SharedBytes walk;
  walk(nest.body);
  return walk.bytes > kStaticSharedBytes ? walk.bytes : 0;
}

std::vector<LaunchOrder> orders_of(const Stmt& body) {
  struct Seen {
    bool has_checks;
    const For* loop;
  };
  std::vector<Seen> seen;
  ir::map_launches(body, [&](const Stmt& launched, const HostLoops& around) {
    HasChecks walk;
    walk(launched);
    seen.push_back({walk.found, around.empty() ? nullptr : around[0]});
    return launched;
  });
  std::vector<LaunchOrder> orders(seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    orders[i].is_before_others = i + 1 < seen.size() || seen[i].loop != nullptr;
    for (size_t j = 0; j < seen.size(); ++j) {
      const bool follows = j < i || (seen[j].loop != nullptr && seen[j].loop == seen[i].loop);
      if (follows && seen[j].has_checks) orders[i].is_after_checks = true;
    }
  }
  return orders;
}

}  // namespace kiln::codegen
