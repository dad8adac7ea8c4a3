#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/compile.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "runtime/core/cpu_name.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using language::Schedule;

/// A kernel whose full tiles must run without a guard: `kernel` of a text that may have schedules.
struct Example {
  const char* name;
  const char* text;
  std::vector<int64_t> sizes;  // no tile divides them
};

const Example kExamples[] = {
    {"ElementWise",
     R"(kernel k(A: float32[n], B: float32[n]) -> (C: float32[n]) {
          C[i] = A[i] + B[i]
          schedule cpu { split(C.i, factor=32)  vectorize(C.i.inner) } })",
     {1003}},
    {"ElementWiseOfTwoDimensions",
     R"(kernel k(A: float32[n, m], B: float32[m]) -> (C: float32[n, m]) {
          C[i, j] = A[i, j] * B[j]
          schedule cpu { tile(C.i, C.j, 8, 32)  vectorize(C.j.inner)  parallel(C.i.outer) } })",
     {1003, 1003}},
    {"ElementWiseOfConstantSize",
     R"(kernel k(A: float32[501, 203]) -> (C: float32[501, 203]) {
          C[i, j] = A[i, j] + 1
          schedule cpu { fuse(C.i, C.j)  split(C.i.j.fused, factor=64)  vectorize(C.i.j.fused.inner) } })",
     {}},
    {"Matmul",
     R"(kernel k(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {
          C[i, j] = sum[r < l](A[i, r] * B[r, j])
          schedule cpu {
            tile(C.i, C.j, 8, 32)
            split(C.r, factor=4)
            reorder(C.i.outer, C.j.outer, C.r.outer, C.r.inner, C.i.inner, C.j.inner)
            vectorize(C.j.inner)
          } })",
     {1003, 1003, 1003}},
    {"MatmulOfConstantSize",
     R"(kernel k(A: float32[501, 203], B: float32[203, 301]) -> (C: float32[501, 301]) {
          C[i, j] = sum[r < 203](A[i, r] * B[r, j])
          schedule cpu {
            tile(C.i, C.j, 8, 32)
            split(C.r, factor=4)
            reorder(C.i.outer, C.j.outer, C.r.outer, C.r.inner, C.i.inner, C.j.inner)
            vectorize(C.j.inner)
            parallel(C.i.outer)
          } })",
     {}},
    {"Convolution",
     R"(kernel k(X: float32[3, 104, 324], W: float32[16, 3, 3, 3]) -> (Y: float32[16, 102, 322]) {
          Y[o, y, x] = sum[c < 3, r < 3, s < 3](X[c, y + r, x + s] * W[o, c, r, s])
          schedule cpu {
            split(Y.x, factor=16)
            reorder(Y.o, Y.y, Y.x.outer, Y.c, Y.r, Y.s, Y.x.inner)
            vectorize(Y.x.inner)
            parallel(Y.o)
          } })",
     {}},
    {"PaddedConvolution",
     R"(kernel k(X: float32[3, h, w], W: float32[16, 3, 3, 3]) -> (Y: float32[16, h, w]) {
          Y[o, y, x] = sum[c < 3, r < 3, s < 3](
            if_then_else(y + r >= 1 && y + r < h + 1 && x + s >= 1 && x + s < w + 1,
                         X[c, y + r - 1, x + s - 1], 0) * W[o, c, r, s])
          schedule cpu {
            split(Y.x, factor=16)
            reorder(Y.o, Y.y, Y.x.outer, Y.c, Y.r, Y.s, Y.x.inner)
            vectorize(Y.x.inner)
            parallel(Y.o)
          } })",
     {203, 1003}},
    {"PaddingInAStageOfItsOwn",
     R"(kernel k(X: float32[3, h, w], W: float32[16, 3, 3, 3]) -> (Y: float32[16, h, w]) {
          P: float32[3, h + 2, w + 2]
          P[c, y, x] = if_then_else(y >= 1 && y < h + 1 && x >= 1 && x < w + 1,
                                    X[c, y - 1, x - 1], 0)
          Y[o, y, x] = sum[c < 3, r < 3, s < 3](P[c, y + r, x + s] * W[o, c, r, s])
          schedule cpu { split(P.x, factor=16)  vectorize(P.x.inner)
                         split(Y.x, factor=16)  split(Y.y, factor=4) } })",
     {203, 1003}},
    {"Stencil",
     R"(kernel k(A: float32[n]) -> (B: float32[n - 2]) {
          B[i] = A[i] + A[i + 1] + A[i + 2]
          schedule cpu { split(B.i, factor=24)  vectorize(B.i.inner) } })",
     {1003}},
    {"StencilWithBorders",
     R"(kernel k(A: float32[n, m]) -> (B: float32[n, m]) {
          B[i, j] = if_then_else(i > 0, A[i - 1, j], 0) + if_then_else(i < n - 1, A[i + 1, j], 0) +
                    if_then_else(j > 0, A[i, j - 1], 0) + if_then_else(j < m - 1, A[i, j + 1], 0)
          schedule cpu { split(B.i, factor=8)  split(B.j, factor=32)  parallel(B.i.outer)
                         vectorize(B.j.inner) } })",
     {403, 1003}},
    {"StencilOfConstantSize",
     R"(kernel k(A: float32[1001]) -> (B: float32[1001]) {
          B[i] = if_then_else(i > 1, A[i - 2], A[0]) + if_then_else(i < 999, A[i + 2], A[1000])
          schedule cpu { split(B.i, factor=8) } })",
     {}},
    {"Scan",
     R"(kernel k(X: float32[m, n]) -> (S: float32[m, n]) {
          scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] }
          schedule cpu { split(S.update.i, factor=32)  vectorize(S.update.i.inner)
                         split(S.init.i, factor=32)  vectorize(S.init.i.inner) } })",
     {20, 1003}},
    {"ScanOfConstantSize",
     R"(kernel k(X: float32[20, 1003]) -> (S: float32[20, 1003]) {
          scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] }
          schedule cpu { split(S.update.i, factor=32)  split(S.init.i, factor=32) } })",
     {}},
    {"RowSums",
     R"(kernel k(A: float32[n, m]) -> (B: float32[n]) {
          B[i] = sum[r < m](A[i, r])
          schedule cpu { split(B.i, factor=8)  split(B.r, factor=16)  parallel(B.i.outer)
                         vectorize(B.r.inner) } })",
     {1003, 1003}},
};

/// How often stores run, with a guard on the way to them or none. A condition over sizes alone is
/// none: it is decided once. Bounds that depend on a loop variable are taken where it is zero.
class CountStores : public ir::Visitor {
 public:
  CountStores(const ir::Kernel& kernel, const std::vector<int64_t>& sizes) {
    for (size_t i = 0; i < sizes.size(); ++i)
      values_[kernel.sizes[i]] = ir::index(sizes[i]);
    (*this)(kernel.body);
  }

  double guarded = 0;
  double free = 0;

 private:
  using Visitor::visit;

  void visit(const ir::For& loop) override {
    const ir::Expr extent = analysis::simplify(ir::substitute(loop.extent, values_));
    const double before = times_;
    const bool was_branch = std::exchange(in_parallel_, loop.loop_kind == ir::LoopKind::Parallel);
    extents_.push_back(std::max<int64_t>(0, ir::as_const_int(extent).value_or(1)));
    times_ *= static_cast<double>(extents_.back());
    loops_.push_back(loop.var);
    values_[loop.var] = ir::index(0);
    (*this)(loop.body);
    loops_.pop_back();
    extents_.pop_back();
    times_ = before;
    in_parallel_ = was_branch;
  }

  /// A branch right inside a parallel loop chooses between full tiles and the others: it stands
  /// for a cut of the loop. Of the two, the first has nearly all iterations.
  void visit(const ir::If& node) override {
    const bool is_cut = std::exchange(in_parallel_, false) && node.else_body && !node.likely;
    if (is_cut) return (*this)(node.then_body);
    const bool is_counted = std::ranges::any_of(
        loops_, [&](const ir::VarRef& var) { return ir::uses_var(node.condition, var); });
    const double before = times_;
    if (!node.else_body) times_ *= share_of(node.condition);
    guards_ += is_counted ? 1 : 0;
    (*this)(node.then_body);
    if (node.else_body) (*this)(node.else_body);
    guards_ -= is_counted ? 1 : 0;
    times_ = before;
  }

  /// Of the iterations of the one loop whose variable is in it, the part in which it holds; of
  /// other conditions all.
  double share_of(const ir::Expr& condition) const {
    double share = 1;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (!ir::uses_var(condition, loops_[i])) continue;
      if (share != 1) return 1;
      double holds = 0;
      for (int64_t value = 0; value < extents_[i]; ++value) {
        ir::Substitution values = values_;
        values[loops_[i]] = ir::index(value);
        const ir::Expr known = analysis::simplify(ir::substitute(condition, values));
        holds += ir::as_const_int(known).value_or(1) != 0 ? 1 : 0;
      }
      share = holds / static_cast<double>(std::max<int64_t>(extents_[i], 1));
    }
    return share;
  }

  void visit(const ir::Block& block) override {
    const bool before = std::exchange(in_parallel_, false);
    Visitor::visit(block);
    in_parallel_ = before;
  }

  void visit(const ir::Store& store) override {
    const int before = guards_;
    if (store.predicate) ++guards_;
    Visitor::visit(store);
    (guards_ > 0 ? guarded : free) += times_ * store.value->type.lanes;
    guards_ = before;
  }

  void visit(const ir::Call& call) override {
    if (call.op == ir::Operator::IfThenElse) ++guards_;
    Visitor::visit(call);
  }

  void visit(const ir::Load& load) override {
    if (load.predicate) ++guards_;
    Visitor::visit(load);
  }

  ir::Substitution values_;
  double times_ = 1;
  std::vector<ir::VarRef> loops_;
  std::vector<int64_t> extents_;
  int guards_ = 0;
  bool in_parallel_ = false;
};

class FullTiles : public ::testing::TestWithParam<Example> {};

TEST_P(FullTiles, HaveNoGuards) {
  const Example& example = GetParam();
  const language::TextKernel text = kernel_of(example.text);
  const Target target{TargetKind::Llvm, host_cpu()};
  const std::pair<const char*, Schedule> schedules[] = {
      {"plain loops", {}},
      {"the chosen schedule", choose_schedule(text.kernel, {}, target, {})},
      {"its own schedule", text.schedules.at(0).second}};
  for (const auto& [name, schedule] : schedules) {
    SCOPED_TRACE(name);
    LoweringObserver silent;
    const ir::Kernel loops = lower(text.kernel, schedule, target, {}, Layout::Compact, silent);
    const CountStores count(loops, example.sizes);
    EXPECT_GT(count.free, 0);
    // The tiles at the ends and the borders; all but these are full.
    EXPECT_LT(count.guarded, 0.1 * (count.free + count.guarded)) << ir::print(loops);
    const std::string report = compile(text.kernel, schedule, target, {}).report;
    EXPECT_NE(report.find("\"guards\":0"), std::string::npos) << report;
  }
}

INSTANTIATE_TEST_SUITE_P(Listed, FullTiles, ::testing::ValuesIn(kExamples),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::testing
