#include <cmath>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"

namespace kiln::test {
namespace {

class Reducers : public ::testing::Test {
 protected:
  Expr m_ = size_var("m");
  Expr n_ = size_var("n");
  Tensor A_ = placeholder({m_, n_}, float32, "A");
  ReduceAxis k_ = reduce_axis(n_, "k");
  Reducer argmax_ = comm_reducer(
      {int64, float32},
      [](const Reducer::Values& x, const Reducer::Values& y) {
        return Reducer::Values{select(x[1] >= y[1], x[0], y[0]), select(x[1] >= y[1], x[1], y[1])};
      },
      {-1, constant(-HUGE_VAL, float32)}, "argmax");

  static void refused(const std::function<void()>& body, const std::string& reason,
                      const std::string& message) {
    expect_client_error(body, ErrorKind::InvalidArgument, reason, message);
  }
};

TEST_F(Reducers, OfSeveralValuesMakeAsManyTensors) {
  const auto T = compute({m_}, [&](Expr i) { return argmax_({k_, A_(i, k_)}, k_); }, {"T", {"i"}});
  ASSERT_EQ(T.size(), 2U);
  EXPECT_EQ(Definition({A_, T[0], T[1]}).text(),
            "kernel main(A: float32[m, n]) -> (T.v0: int64[m], T.v1: float32[m]) {\n"
            "  reducer argmax((a0: int64, a1: float32), (b0, b1)) = select(a1 >= b1, a0, b0), "
            "select(a1 >= b1, a1, b1) identity -1, -inf\n"
            "  T.v0[i], T.v1[i] = argmax[k < n](k, A[i, k])\n"
            "}\n");
}

TEST_F(Reducers, TakeAConditionAndAStart) {
  const Reducer logsum = comm_reducer(
      float32, [](Expr a, Expr b) { return log(exp(a) + exp(b)); }, -infinity(), "logsum");
  const Tensor B = placeholder({m_}, float32, "B");
  const Tensor C = compute(
      {m_}, [&](Expr i) { return logsum(A_(i, k_), k_, {.where = A_(i, k_) > 0, .init = {B(i)}}); },
      {"C", {"i"}});
  const Tensor D =
      compute({m_}, [&](Expr i) { return sum(A_(i, k_), k_, {.where = k_ != i, .init = {5}}); },
              {"D", {"i"}});
  const std::string text = Definition({A_, B, C, D}).text();
  EXPECT_NE(text.find("  C[i] = logsum[k < n](A[i, k], where=A[i, k] > 0.0, init=B[i])\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  D[i] = sum[k < n](A[i, k], where=k != i, init=5.0)\n"), std::string::npos)
      << text;
}

TEST_F(Reducers, OfTextAreComposed) {
  const Tensor X = placeholder({4, 7}, float32, "X");
  const auto T = compute({m_}, [&](Expr i) { return argmax_({k_, A_(i, k_)}, k_); }, {"T", {"i"}});
  const Definition rows({A_, T[0], T[1]}, "rows");
  const Tensors made = rows(X);
  EXPECT_NE(Definition({X, made[0], made[1]}).text().find("argmax[k < 7](k, X[i, k])"),
            std::string::npos);
}

TEST_F(Reducers, OfOtherNumbersAreRefused) {
  refused([&] { argmax_(Reducer::Values{k_}, k_); }, "REDUCTION_SOURCES",
          "argmax combines 2 values, but got 1");
  refused(
      [&] {
        argmax_({k_, k_}, k_);
      },
      "REDUCER", "value 1 of argmax is int64, but must be float32; cast it");
  refused(
      [&] {
        argmax_({k_, A_(0, k_)}, k_, {.init = {1}});
      },
      "REDUCTION_INIT", "argmax combines 2 values, but its init gives 1");
  refused([&] { sum(A_(0, k_), k_, {.where = k_}); }, "REDUCTION_CONDITION",
          "where of sum takes a bool, but got int64; write a comparison");
  refused(
      [&] {
        comm_reducer(
            float32, [](Expr a, Expr b) { return a > b; }, 0, "above");
      },
      "REDUCER", "result 0 of above is bool, but must be float32; cast it");
  refused(
      [&] {
        comm_reducer(
            {float32}, [](auto, auto) { return Reducer::Values{}; }, {0}, "none");
      },
      "REDUCER", "reducer none combines 1 value, but has 0 results and 1 identities");
}

}  // namespace
}  // namespace kiln::test
