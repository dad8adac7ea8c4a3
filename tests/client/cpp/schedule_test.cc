#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"

namespace kiln::test {
namespace {

/// C = A + 1 over (n, 64), and a schedule of it.
class Steps : public ::testing::Test {
 protected:
  Expr n_ = var("n");
  Tensor A_ = placeholder({n_, 64}, float32, "A");
  Tensor C_ = compute({n_, 64}, [&](Expr i, Expr j) { return A_(i, j) + 1; }, {"C", {"i", "j"}});
  Schedule s_ = create_schedule(C_);

  void refused(const std::function<void()>& body, const std::string& reason,
               const std::string& message) {
    expect_client_error(body, ErrorKind::InvalidArgument, reason, message);
  }
};

TEST_F(Steps, NameTheAxesTheyMake) {
  const auto [outer, inner] = s_[C_].split(C_.axis(0), 4);
  EXPECT_EQ(outer.name(), "i.outer");
  EXPECT_EQ(inner.name(), "i.inner");
  EXPECT_EQ(s_[C_].fuse({inner, C_.axis(1)}).name(), "i.inner.j.fused");
}

TEST_F(Steps, TileNamesFourAxes) {
  const auto axes = s_[C_].tile(C_.axis(0), C_.axis(1), 4, 8);
  EXPECT_EQ(axes[0].name(), "i.outer");
  EXPECT_EQ(axes[1].name(), "j.outer");
  EXPECT_EQ(axes[2].name(), "i.inner");
  EXPECT_EQ(axes[3].name(), "j.inner");
}

TEST_F(Steps, ThatChangeNoLoopsAreRecorded) {
  const Tensor B =
      compute({n_, 64}, [&](Expr i, Expr j) { return A_(i, j) * 2; }, {"B", {"i", "j"}});
  const Tensor C =
      compute({n_, 64}, [&](Expr i, Expr j) { return B(i, j) + 1; }, {"C", {"i", "j"}});
  Schedule s = create_schedule(C);
  const auto [outer, inner] = s[C].split(C.axis(0), 8);
  s[B].compute_at(s[C], outer);
  s[B].storage_align(B.axis(0), 16, 4);
  s[B].double_buffer();
  s[C].pragma(inner, "auto_unroll_max_step", 16);
  s[B].prefetch(A_, B.axis(0), 2);
  s[C].software_pipeline(outer, 3);
  s[C].tensorize(C.axis(1), "x86.fma.f32");
  const std::string text = s.text();
  EXPECT_EQ(text,
            "schedule cpu {\n"
            "  split(C.i, factor=8)\n"
            "  compute_at(B, C.i.outer)\n"
            "  storage_align(B.i, factor=16, offset=4)\n"
            "  double_buffer(B)\n"
            "  pragma(C.i.inner, auto_unroll_max_step, value=16)\n"
            "  prefetch(A, B.i, offset=2)\n"
            "  software_pipeline(C.i.outer, stages=3)\n"
            "  tensorize(C.j, x86.fma.f32)\n"
            "}\n");
  EXPECT_EQ(parse_schedule(text, {C}).text(), text);
}

TEST_F(Steps, RefuseAFactorBelowOne) {
  refused([&] { s_[C_].split(C_.axis(0), 0); }, "SPLIT_FACTOR",
          "split(i, factor=0): the factor must be at least 1");
  refused([&] { s_[C_].split_parts(C_.axis(0), -1); }, "SPLIT_FACTOR",
          "split(i, parts=-1): the parts must be at least 1");
  refused([&] { s_[C_].tile(C_.axis(0), C_.axis(1), 4, 0); }, "SPLIT_FACTOR",
          "tile(i, j, 4, 0): the factor must be at least 1");
}

TEST_F(Steps, RefuseAnAxisThatIsUsedUp) {
  s_[C_].split(C_.axis(0), 4);
  const std::string line = std::to_string(__LINE__ - 1);
  refused([&] { s_[C_].parallel(C_.axis(0)); }, "AXIS_CONSUMED",
          "parallel(i): axis i was split into i.outer, i.inner at line " + line);
}

TEST_F(Steps, RefuseAnAxisOfAnotherStage) {
  const Tensor D = compute({n_}, [&](Expr i) { return C_(i, 0); }, {"D", {"x"}});
  const Schedule s = create_schedule(D);
  refused([&] { s[C_].unroll(D.axis(0)); }, "FOREIGN_AXIS",
          "unroll(x): axis x belongs to stage D, not to C");
}

TEST_F(Steps, RefuseAnAxisOfAnotherSchedule) {
  const Schedule other = create_schedule(C_);
  const auto [outer, inner] = other[C_].split(C_.axis(0), 4);
  refused([&, &inner = inner] { s_[C_].vectorize(inner); }, "FOREIGN_AXIS",
          "vectorize(i.inner): axis i.inner belongs to no stage of this schedule, not to C");
}

TEST_F(Steps, RefuseAnAxisNamedTwice) {
  refused(
      [&] {
        s_[C_].reorder({C_.axis(0), C_.axis(0)});
      },
      "AXIS_TWICE", "reorder(i, i): axis i is named twice");
}

TEST_F(Steps, RefuseAStageThatIsNotComputedFrom) {
  const Tensor D = compute(
      {n_}, [&](Expr i) { return A_(i, 0); }, "D");
  refused([&] { s_[D]; }, "FOREIGN_STAGE",
          "D is not a stage of this schedule: none of its outputs is computed from it");
}

TEST_F(Steps, RefuseAPlaceholder) {
  refused([&] { s_[A_].compute_inline(); }, "STEP_ON_PLACEHOLDER",
          "compute_inline(): A is a placeholder, so there is nothing to schedule");
}

TEST_F(Steps, RefuseAnUnknownThreadAxis) {
  refused(
      [&] { s_[C_].bind(C_.axis(0), "threadIdx.w"); }, "THREAD_TAG",
      "unknown thread axis threadIdx.w; known: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
      "threadIdx.y, threadIdx.z, vthread");
}

TEST_F(Steps, CarryTheLineOfTheProgram) {
  try {
    s_[C_].split(C_.axis(0), 0);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.line(), __LINE__ - 3);
    EXPECT_NE(error.file().find("schedule_test.cc"), std::string::npos);
  }
}

TEST_F(Steps, AreSavedAndTakenAgain) {
  const auto [outer, inner] = s_[C_].split(C_.axis(0), 32);
  s_[C_].parallel(outer);
  s_[C_].vectorize(inner);
  const std::string text = s_.text();
  EXPECT_EQ(text,
            "schedule cpu {\n"
            "  split(C.i, factor=32)\n"
            "  parallel(C.i.outer)\n"
            "  vectorize(C.i.inner)\n"
            "}\n");
  EXPECT_EQ(parse_schedule(text, {C_}).text(), text);
  const std::string path = ::testing::TempDir() + "/kiln_steps.sched";
  s_.save(path);
  const Schedule again = load_schedule(path, {C_});
  EXPECT_EQ(Definition(again, {A_, C_}).text(), Definition(s_, {A_, C_}).text());
  try {
    again[C_].unroll(C_.axis(0));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.message(), "unroll(i): axis i was split into i.outer, i.inner at line 2");
  }
  refused([&] { parse_schedule("schedule cpu { unroll(total.x) }", {C_}); }, "SYNTAX",
          "unknown axis total.x");
  expect_client_error([&] { parse_schedule("schedule cuda { }", {C_}, "cpu", "gpu.sched"); },
                      ErrorKind::NotFound, "SCHEDULE", "gpu.sched has no schedule for cpu");
}

TEST_F(Steps, AreRefusedWhenNoArgumentNeedsTheirStage) {
  s_[C_].parallel(C_.axis(0));
  const Tensor D = compute(
      {n_}, [&](Expr i) { return A_(i, 0); }, "D");
  refused(
      [&] {
        Definition(s_, {A_, D});
      },
      "FOREIGN_STAGE", "parallel schedules C, which no argument of the kernel is computed from");
}

TEST(NewStages, HaveTheLoopsOfTheirReaderAsALayout) {
  const Tensor A = placeholder({32, 40}, float32, "A");
  const ReduceAxis k = reduce_axis(40, "k");
  const Tensor C = compute({32}, [&](Expr i) { return sum(A(i, k), k); }, {"C", {"i"}});
  const Schedule s = create_schedule(C);
  const auto [outer, inner] = s[C].split(C.axis(0), 8);
  const Tensor AA = s.cache_read(A, "global", {C}, {outer, s[C].reduce_axes()[0], inner});
  EXPECT_EQ(AA.axis(2).name(), "i.inner");
  s[AA].vectorize(AA.axis(2));
  const std::string text = s.text();
  EXPECT_EQ(text,
            "schedule cpu {\n"
            "  split(C.i, factor=8)\n"
            "  cache_read(A, global, C, C.i.outer, C.k, C.i.inner)\n"
            "  vectorize(A.global.i.inner)\n"
            "}\n");
  EXPECT_EQ(parse_schedule(text, {C}).text(), text);
}

TEST(NewStages, AreTensorsOfTheSchedule) {
  const Tensor A = placeholder({32, 40}, float32, "A");
  const ReduceAxis k = reduce_axis(40, "k");
  const Tensor C = compute({32}, [&](Expr i) { return sum(A(i, k), k); }, {"C", {"i"}});
  const Schedule s = create_schedule(C);
  const Tensor AA = s.cache_read(A, "shared", {C});
  EXPECT_EQ(AA.name(), "A.shared");
  s[C].split(C.axis(0), 8);
  const Tensor CC = s.cache_write(C, "local");
  EXPECT_EQ(CC.axis(0).name(), "i.outer.c");
  const auto [outer, inner] = s[CC].split(CC.reduce_axes()[0], 4);
  const Tensor CF = s.rfactor(CC, inner, 1);
  EXPECT_EQ(s[CC].reduce_axes()[0].name(), "k.inner.v");
  s[AA].compute_at(s[CF], CF.reduce_axes()[0]);
  s[CC].set_scope("global");
  s[C].parallel(C.axis(0));
  const std::string text = s.text();
  EXPECT_EQ(text,
            "schedule cpu {\n"
            "  cache_read(A, shared, C)\n"
            "  split(C.i, factor=8)\n"
            "  cache_write(C, local)\n"
            "  split(C.local.k, factor=4)\n"
            "  rfactor(C.local.k.inner, factor_axis=1)\n"
            "  compute_at(A.shared, C.local.rf.k.outer)\n"
            "  set_scope(C.local, global)\n"
            "  parallel(C.i)\n"
            "}\n");
  EXPECT_EQ(parse_schedule(text, {C}).text(), text);
}

TEST(NewStages, OfATensorWithAConstantAroundIt) {
  const Tensor A = placeholder({32}, float32, "A");
  const ReduceAxis k = reduce_axis(3, "k");
  const Tensor C = compute({32},
                           [&](Expr i) {
                             const Expr at = i + k - 1;
                             return sum(if_then_else(at >= 0 && at < 32, A(at), 0.0f), k);
                           },
                           {"C", {"i"}});
  const Schedule s = create_schedule(C);
  const Tensor padded = s.cache_padded(A, C);
  EXPECT_EQ(padded.name(), "A.padded");
  s[padded].vectorize(s[padded].split(padded.axis(0), 8).second);
  const std::string text = s.text();
  EXPECT_EQ(text,
            "schedule cpu {\n"
            "  cache_padded(A, C)\n"
            "  split(A.padded.ax0, factor=8)\n"
            "  vectorize(A.padded.ax0.inner)\n"
            "}\n");
  EXPECT_EQ(parse_schedule(text, {C}).text(), text);
}

TEST(NewStages, OfAReductionInsideAnExpression) {
  const Tensor A = placeholder({32, 64}, float32, "A");
  const Tensor B = placeholder({64, 16}, float32, "B");
  const ReduceAxis k = reduce_axis(64, "k");
  const ReduceAxis l = reduce_axis(64, "l");
  const Tensor C = compute(
      {32, 16}, [&](Expr i, Expr j) { return sum(A(i, k) * B(k, j), {k}) / max(A(i, l), {l}); },
      {"C", {"i", "j"}});
  const Schedule s = create_schedule(C);
  const Tensor product = s.reduction_stage(C, k);
  s[product].vectorize(product.axis(1));
  s[product].unroll(s[product].split(product.reduce_axes()[0], 4).second);
  const Tensor largest = s.reduction_stage(C, l);
  s[largest].parallel(largest.axis(0));
  EXPECT_EQ(product.dtype(), float32);
  EXPECT_TRUE(s[C].reduce_axes().empty());
  const std::string text = s.text();
  EXPECT_EQ(text,
            "schedule cpu {\n"
            "  reduction_stage(C.i, C.j, C.k, sum)\n"
            "  vectorize(C.sum.j)\n"
            "  split(C.sum.k, factor=4)\n"
            "  unroll(C.sum.k.inner)\n"
            "  reduction_stage(C.i, C.l, max)\n"
            "  parallel(C.max.i)\n"
            "}\n");
  EXPECT_EQ(parse_schedule(text, {C}).text(), text);
}

TEST(NewStages, OfAReductionAreRefusedWhereThereIsNone) {
  const Tensor A = placeholder({32, 64}, float32, "A");
  const ReduceAxis k = reduce_axis(64, "k");
  const Tensor B = compute({32}, [&](Expr i) { return sum(A(i, k), {k}); }, {"B", {"i"}});
  const Tensor C = compute({32}, [&](Expr i) { return B(i) / max(A(i, k), {k}); }, {"C", {"i"}});
  const Schedule s = create_schedule(C);
  expect_client_error([&] { s.reduction_stage(B, k); }, ErrorKind::InvalidArgument,
                      "REDUCTION_STAGE",
                      "the reduction over k is all that B computes, so it is a stage of its own "
                      "already");
  expect_client_error([&] { s.reduction_stage(C, C.axis(0)); }, ErrorKind::InvalidArgument,
                      "REDUCTION_STAGE",
                      "reduction_stage names no axis that a reduction inside the expression of C "
                      "runs over; such axes come last");
  const int line = __LINE__ + 1;
  s.reduction_stage(C, k);
  expect_client_error(
      [&] { s[C].split(k, 4); }, ErrorKind::InvalidArgument, "AXIS_CONSUMED",
      "split(k, factor=4): axis k was made an axis of C.max at line " + std::to_string(line));
}

TEST(NewStages, AreCheckedAsTheServiceChecksThem) {
  const Tensor A = placeholder({32}, float32, "A");
  const Tensor B = compute({32}, [&](Expr i) { return A(i) + 1; }, {"B", {"i"}});
  const Schedule s = create_schedule(B);
  expect_client_error(
      [&] { s.cache_read(A, "sharedd", {B}); }, ErrorKind::InvalidArgument, "MEMORY_SCOPE",
      "unknown memory scope sharedd; known: global, shared, shared.dyn, local, warp, "
      "wmma.matrix_a, wmma.matrix_b, wmma.accumulator");
  expect_client_error(
      [&] { s.rfactor(B, B.axis(0)); }, ErrorKind::InvalidArgument, "RFACTOR",
      "axis i of B is not a reduction axis; rfactor takes a reduction axis or a part "
      "of one");
}

}  // namespace
}  // namespace kiln::test
