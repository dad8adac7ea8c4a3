#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"

namespace kiln::test {
namespace {

/// What programs write goes to the wire, is decoded and checked by the language, and printed.
class Definitions : public ::testing::Test {
 protected:
  Expr n_ = size_var("n");
  Expr m_ = size_var("m");
  Tensor A_ = placeholder({n_}, float32, "A");
  Tensor I_ = placeholder({n_}, int32, "I");

  /// The statement that computes B[i] from A and I.
  std::string statement(const std::function<Expr(Expr)>& body) {
    const Tensor B = compute({n_}, [&](Expr i) { return body(i); }, {"B", {"i"}});
    const std::string text = Definition({A_, I_, B}).text();
    const std::size_t begin = text.find("  B[i] = ");
    EXPECT_NE(begin, std::string::npos) << text;
    return text.substr(begin + 9, text.find('\n', begin) - begin - 9);
  }

  DType type_of(const Expr& expr) { return expr.dtype(); }
};

TEST_F(Definitions, NameArgumentsAndAxes) {
  const Tensor B = compute({n_, 4}, [&](Expr i, Expr j) { return A_(i) * j; }, {"B", {"i", "j"}});
  EXPECT_EQ(Definition({A_, B}, "outer").text(),
            "kernel outer(A: float32[n]) -> (B: float32[n, 4]) {\n"
            "  B[i, j] = A[i] * float32(j)\n"
            "}\n");
}

TEST_F(Definitions, TakeOneIndexAfterTheOther) {
  const Tensor M = placeholder({n_, 4}, float32, "M");
  const ReduceAxis k = reduce_axis(4, "k");
  const Tensor B =
      compute({n_}, [&](Expr i) { return -sum(M[i][k] * A_[i], k) + M[i][0]; }, {"B", {"i"}});
  EXPECT_EQ(Definition({A_, M, B}).text(),
            "kernel main(A: float32[n], M: float32[n, 4]) -> (B: float32[n]) {\n"
            "  B[i] = -sum[k < 4](M[i, k] * A[i]) + M[i, 0]\n"
            "}\n");
  const Tensor C = compute({n_}, [&](Expr i) { return A_[i]; }, {"C", {"i"}});
  EXPECT_EQ(Definition({A_, C}).parameters()[1].type, float32);
  expect_client_error([&] { static_cast<void>(Expr(M[0])); }, ErrorKind::InvalidArgument,
                      "INDEX_COUNT", "tensor M has 2 dimensions, but got 1 index");
}

TEST_F(Definitions, KeepTheOrderOfArguments) {
  const Tensor B = compute({n_}, [&](Expr i) { return A_(i); }, {"B", {"i"}});
  const std::vector<Parameter> parameters = Definition({B, A_}).parameters();
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(parameters[0].name, "B");
  EXPECT_TRUE(parameters[0].output);
  EXPECT_EQ(parameters[1].name, "A");
  EXPECT_FALSE(parameters[1].output);
  EXPECT_EQ(parameters[1].shape, std::vector<std::string>{"n"});
}

TEST_F(Definitions, TakeBodiesOfAnyNumberOfAxes) {
  const auto dimensions = [&](auto body, std::size_t rank) {
    return compute(Shape(rank, Expr(2)), body, "T").shape().size();
  };
  EXPECT_EQ(dimensions([&] { return A_(0); }, 0), 0U);
  EXPECT_EQ(dimensions([&](Expr i) { return i; }, 1), 1U);
  EXPECT_EQ(dimensions([&](const Expr& i, Expr j) { return i + j; }, 2), 2U);
  EXPECT_EQ(dimensions([&](Expr, Expr, Expr, Expr, Expr, Expr) { return Expr(1); }, 6), 6U);
  EXPECT_EQ(dimensions([&](const std::vector<Expr>& i) { return i[7]; }, 8), 8U);
  EXPECT_EQ(dimensions([] { return 1.5; }, 0), 0U);
}

TEST_F(Definitions, MayBeAsLongAChainAsAKernel) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer's frames are several times as long, and the stack is not";
#endif
#endif
  Tensor last = A_;
  for (int stage = 1; stage < 4096; ++stage) {
    last = compute(
        {n_}, [&](Expr i) { return last(i) + 1; }, "B");
  }
  EXPECT_EQ(Definition({A_, last}).parameters().size(), 2U);
}

TEST_F(Definitions, MakeSeveralTensorsFromOneBody) {
  const auto both = compute({n_},
                            [&](Expr i) {
                              return std::vector<Expr>{A_(i) + 1, I_(i) + 1};
                            },
                            {"B", {"i"}});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].name(), "B.v1");
  EXPECT_EQ(both[1].dtype(), int32);
  EXPECT_EQ(Definition({A_, I_, both[0], both[1]}).parameters()[3].name, "B.v1");
}

TEST_F(Definitions, ScatterUpdates) {
  const Tensor B = placeholder({m_, 3}, float32, "B");
  const Tensor S = scatter_add(B, {n_, 3},
                               [&](Expr r, Expr c) {
                                 return Update{{I_(r), c}, A_(r) * 2};
                               },
                               {"S", {"r", "c"}});
  EXPECT_EQ(Definition({A_, I_, B, S}).text(),
            "kernel main(A: float32[n], I: int32[n], B: float32[m, 3]) -> (S: float32[m, 3]) {\n"
            "  S = scatter_add[r < n, c < 3](B, int64(I[r]), c, A[r] * 2.0)\n"
            "}\n");
  EXPECT_EQ(S.axis(0).name(), "r");
  const auto no_index = [](Expr) { return Update{{}, 1}; };
  expect_client_error([&] { scatter_min(B, {n_}, no_index, "S"); }, ErrorKind::InvalidArgument,
                      "SCATTER_RANK", "B has 2 dimensions, but the body of S gives 0 indices");
  const auto of_int = [&](Expr r) { return Update{{r, 0}, I_(r)}; };
  expect_client_error([&] { scatter(B, {n_}, of_int, "S"); }, ErrorKind::InvalidArgument,
                      "SCATTER_TYPE", "the update of S is int32, but B is float32; cast it");
}

TEST_F(Definitions, TakeBoundsFromTensors) {
  const Tensor S = compute({n_},
                           [&](Expr i) {
                             const ReduceAxis k = reduce_axis(I_(i), I_(i) + 4, "k");
                             return sum(A_(k), k);
                           },
                           {"S", {"i"}});
  EXPECT_EQ(Definition({A_, I_, S}).text(),
            "kernel main(A: float32[n], I: int32[n]) -> (S: float32[n]) {\n"
            "  S[i] = sum[int64(I[i]) <= k < int64(I[i] + 4)](A[k])\n"
            "}\n");
}

TEST_F(Definitions, KnowTheEndsOfTypes) {
  EXPECT_EQ(statement([&](Expr) { return min_value(int8) + max_value(uint64).astype(int8); }),
            "-128 + int8(uint64(18446744073709551615))");
  EXPECT_EQ(statement([&](Expr i) { return reinterpret(A_(i), int32); }), "int32(bits_of(A[i]))");
  EXPECT_EQ(statement([&](Expr i) { return reinterpret(I_(i), float32); }),
            "float32_of_bits(uint32(I[i]))");
  expect_client_error([&] { reinterpret(I_(0), float64); }, ErrorKind::InvalidArgument,
                      "REINTERPRET", "reinterpret: int32 and float64 are not types of one width");
}

TEST_F(Definitions, ReduceOverAxes) {
  const Tensor X = placeholder({n_, m_}, float32, "X");
  const ReduceAxis k = reduce_axis(m_, "k");
  const Tensor S = compute({n_}, [&](Expr i) { return sum(X(i, k), k); }, {"S", {"i"}});
  EXPECT_EQ(Definition({X, S}).text(),
            "kernel main(X: float32[n, m]) -> (S: float32[n]) {\n"
            "  S[i] = sum[k < m](X[i, k])\n"
            "}\n");
  EXPECT_EQ(S.reduce_axes().at(0).name(), "k");
}

TEST_F(Definitions, MayReduceOverOneAxisInSeveralStages) {
  const Tensor X = placeholder({n_, m_}, float32, "X");
  const ReduceAxis k = reduce_axis(m_, "k");
  const Tensor top = compute({n_}, [&](Expr i) { return max(X(i, k), k); }, {"top", {"i"}});
  const Tensor rest =
      compute({n_}, [&](Expr i) { return sum(X(i, k) - top(i), k); }, {"rest", {"i"}});
  const Schedule schedule = create_schedule(rest);
  schedule[top].split(k, 4);
  schedule[rest].split(k, 8);
  EXPECT_EQ(Definition(schedule, {X, rest}, "f").text(),
            "kernel f(X: float32[n, m]) -> (rest: float32[n]) {\n"
            "  top: float32[n]\n"
            "  top[i] = max[k < m](X[i, k])\n"
            "  rest[i] = sum[k < m](X[i, k] - top[i])\n"
            "  schedule cpu {\n"
            "    split(top.k, factor=4)\n"
            "    split(rest.k, factor=8)\n"
            "  }\n"
            "}\n");
}

TEST_F(Definitions, ReduceOverSeveralAxesWithBounds) {
  const Tensor X = placeholder({n_, n_}, float32, "X");
  const ReduceAxis k = reduce_axis(1, 4, "k");
  const ReduceAxis l = reduce_axis(0, k + 1, "l");
  const Tensor S = compute(
      {},
      [&] {
        return max(X(k, l), {k, l});
      },
      "S");
  EXPECT_EQ(Definition({X, S}).text(),
            "kernel main(X: float32[n, n]) -> (S: float32[]) {\n"
            "  S[] = max[1 <= k < 4, l < k + 1](X[k, l])\n"
            "}\n");
}

TEST_F(Definitions, TakeTheSmallerOfTwoOrOfAll) {
  const ReduceAxis k = reduce_axis(n_, "k");
  EXPECT_EQ(statement([&](Expr i) { return min(A_(i), 0) + min(A_(k), k); }),
            "min(A[i], 0.0) + min[k < n](A[k])");
}

TEST_F(Definitions, ScanWithOneState) {
  const Tensor X = placeholder({m_, n_}, float32, "X");
  const Tensor state = placeholder({m_, n_}, float32, "S.state");
  const Tensor init =
      compute({1, n_}, [&](Expr, Expr i) { return X(0, i); }, {"S.init", {"_", "i"}});
  const Tensor update = compute({m_, n_}, [&](Expr t, Expr i) { return state(t - 1, i) + X(t, i); },
                                {"S.update", {"t", "i"}});
  const Tensor S = scan(init, update, state, {X}, "S");
  EXPECT_EQ(S.scan_axis().name(), "S.idx");
  EXPECT_EQ(Definition({X, S}, "cumsum").text(),
            "kernel cumsum(X: float32[m, n]) -> (S: float32[m, n]) {\n"
            "  scan t {\n"
            "    S[0, i] = X[0, i]\n"
            "    S[t, i] = S[t - 1, i] + X[t, i]\n"
            "  }\n"
            "}\n");
}

TEST_F(Definitions, ScanAlongAnyDimensionEitherWay) {
  const Tensor X = placeholder({n_, m_}, float32, "X");
  const Tensor state = placeholder({n_, m_}, float32, "S.state");
  const Tensor init =
      compute({n_, 1}, [&](Expr i, Expr) { return X(i, m_ - 1); }, {"S.init", {"i", "_"}});
  const Tensor update = compute({n_, m_}, [&](Expr i, Expr t) { return state(i, t + 1) + X(i, t); },
                                {"S.update", {"i", "t"}});
  const Tensor S = scan(init, update, state, {X}, "S", {.dimension = 1, .reverse = true});
  EXPECT_EQ(Definition({X, S}, "cumsum").text(),
            "kernel cumsum(X: float32[n, m]) -> (S: float32[n, m]) {\n"
            "  scan t reverse {\n"
            "    S[i, m - 1] = X[i, m - 1]\n"
            "    S[i, t] = S[i, t + 1] + X[i, t]\n"
            "  }\n"
            "}\n");
}

TEST_F(Definitions, ScanWithSeveralStates) {
  const Tensor X = placeholder({m_, n_}, float32, "X");
  const Tensor a = placeholder({m_, n_}, float32, "a");
  const Tensor b = placeholder({m_}, float32, "b");
  const std::vector<Tensor> init{compute(
                                     {1, n_}, [&](Expr, Expr i) { return X(0, i); }, "ia"),
                                 compute(
                                     {1}, [&](Expr) { return Expr(0.0); }, "ib")};
  const std::vector<Tensor> update{
      compute(
          {m_, n_}, [&](Expr t, Expr i) { return a(t - 1, i) + b(t - 1); }, "ua"),
      compute(
          {m_}, [&](Expr t) { return b(t - 1) + X(t, 0); }, "ub")};
  const std::vector<Tensor> both = scan(init, update, {a, b});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].name(), "scan.v0");
  EXPECT_EQ(both[1].shape().size(), 1U);
  EXPECT_EQ(Definition({X, both[0], both[1]}).parameters().size(), 3U);
}

TEST_F(Definitions, CarryASchedule) {
  const Tensor B = compute({n_, 64}, [&](Expr i, Expr) { return A_(i); }, {"B", {"i", "j"}});
  const Tensor C =
      compute({n_, 64}, [&](Expr i, Expr j) { return B(i, j) + 1; }, {"C", {"i", "j"}});
  const Schedule s = create_schedule(C);
  const auto [io, ii] = s[C].split(C.axis(0), 4);
  const auto [jo, ji] = s[C].split_parts(C.axis(1), 2);
  s[C].reorder({io, jo, ii, ji});
  s[C].unroll(ii);
  const Axis fused = s[C].fuse({io, jo});
  s[C].parallel(fused);
  s[B].compute_at(s[C], fused);
  s[B].vectorize(B.axis(1));
  const std::string text = Definition(s, {A_, C}, "copy").text();
  EXPECT_NE(text.find("  schedule cpu {\n"
                      "    split(C.i, factor=4)\n"
                      "    split(C.j, parts=2)\n"
                      "    reorder(C.i.outer, C.j.outer, C.i.inner, C.j.inner)\n"
                      "    unroll(C.i.inner)\n"
                      "    fuse(C.i.outer, C.j.outer)\n"
                      "    parallel(C.i.outer.j.outer.fused)\n"
                      "    compute_at(B, C.i.outer.j.outer.fused)\n"
                      "    vectorize(B.j)\n"
                      "  }\n"),
            std::string::npos)
      << text;
}

TEST_F(Definitions, NumbersTakeTheTypeOfWhatTheyMeet) {
  EXPECT_EQ(type_of(A_(0) + 1), float32);
  EXPECT_EQ(type_of(2.5 * A_(0).astype(float16)), float16);
  EXPECT_EQ(type_of(I_(0) + 1), int32);
  EXPECT_EQ(type_of(I_(0) + 1.5), float32);
  EXPECT_EQ(type_of(n_ + 1), int64);
  EXPECT_EQ(type_of(Expr(1) + 2), int32);
  EXPECT_EQ(type_of((A_(0) < 1) + 1), int32);
}

TEST_F(Definitions, TheWiderTypeWins) {
  const auto meet = [](DType a, DType b) {
    return (cast(var("n"), a) + cast(var("n"), b)).dtype();
  };
  EXPECT_EQ(meet(int32, float32), float32);
  EXPECT_EQ(meet(int64, float16), float16);
  EXPECT_EQ(meet(float16, float32), float32);
  EXPECT_EQ(meet(float16, bfloat16), float32);
  EXPECT_EQ(meet(float8_e4m3fn, float8_e5m2), float32);
  EXPECT_EQ(meet(int8, int32), int32);
  EXPECT_EQ(meet(int32, uint32), int64);
  EXPECT_EQ(meet(int64, uint8), int64);
  EXPECT_EQ(meet(int8, uint64), int64);
  EXPECT_EQ(meet(boolean, uint8), uint8);
  EXPECT_EQ(meet(boolean, boolean), int32);
}

TEST_F(Definitions, FloatFunctionsTakeIntegers) {
  EXPECT_EQ(statement([&](Expr i) { return exp(I_(i)); }), "exp(float32(I[i]))");
  EXPECT_EQ(statement([&](Expr i) { return pow(A_(i), 2); }), "pow(A[i], 2.0)");
}

TEST_F(Definitions, HaveEveryKindOfOperator) {
  EXPECT_EQ(statement([&](Expr i) { return -A_(i) / 2 - abs(A_(i)); }), "-A[i] / 2.0 - abs(A[i])");
  EXPECT_EQ(statement([&](Expr i) { return select(A_(i) > 0 && !(I_(i) == 3), A_(i), 0); }),
            "select(A[i] > 0.0 && !(I[i] == 3), A[i], 0.0)");
  EXPECT_EQ(statement([&](Expr i) { return if_then_else(i >= 1, A_(i - 1), 0.0); }),
            "if_then_else(i >= 1, A[i - 1], 0.0)");
  EXPECT_EQ(statement([&](Expr i) { return (I_(i) & 7) << 2 | ~I_(i) >> 1; }),
            "(I[i] & 7) << 2 | ~I[i] >> 1");
  EXPECT_EQ(statement([&](Expr i) { return fma(A_(i), A_(i), 1) + popcount(I_(i)); }),
            "fma(A[i], A[i], 1.0) + float32(popcount(I[i]))");
  EXPECT_EQ(statement([&](Expr i) { return floordiv(I_(i), 2) + truncmod(I_(i), 3); }),
            "floordiv(I[i], 2) + truncmod(I[i], 3)");
}

TEST_F(Definitions, FoldConstantSizes) {
  const Expr size = Expr(2) * 3;
  EXPECT_EQ(placeholder({constant(32, int64) - 1}, float32, "P").shape().size(), 1U);
  EXPECT_EQ(Definition({placeholder({constant(32, int64) - 1}, float32, "P"),
                        compute(
                            {1}, [&](Expr) { return size; }, "Q")})
                .parameters()[0]
                .shape,
            std::vector<std::string>{"31"});
}

class WrongDefinitions : public Definitions {
 protected:
  void refused(const std::function<void()>& body, const std::string& reason,
               const std::string& message) {
    expect_client_error(body, ErrorKind::InvalidArgument, reason, message);
  }
};

TEST_F(WrongDefinitions, IndexesOfTheWrongNumber) {
  refused([&] { A_(1, 2); }, "INDEX_COUNT", "tensor A has 1 dimension, but got 2 indices");
  refused([&] { A_(); }, "INDEX_COUNT", "tensor A has 1 dimension, but got 0 indices");
}

TEST_F(WrongDefinitions, IndexesOfTheWrongType) {
  refused([&] { A_(1.5); }, "INDEX_TYPE", "index 0 of tensor A must be an integer, but is float32");
}

TEST_F(WrongDefinitions, IndexesOutOfRange) {
  const Tensor P = placeholder({4}, float32, "P");
  refused([&] { P(4); }, "INDEX_RANGE", "index 4 of tensor P is out of range: dimension 0 is 4");
  refused([&] { A_(-1); }, "INDEX_RANGE", "index -1 of tensor A is out of range: dimension 0 is n");
}

TEST_F(WrongDefinitions, NegativeSizes) {
  refused(
      [] {
        placeholder({2, -3}, float32, "P");
      },
      "SHAPE", "P: dimension 1 is -3, but must be 0 or more");
}

TEST_F(WrongDefinitions, BodiesOfAnotherArity) {
  refused(
      [&] {
        compute(
            {n_, n_}, [&](Expr i) { return A_(i); }, "B");
      },
      "BODY_ARITY", "B has 2 dimensions, but its body takes 1 index");
}

TEST_F(WrongDefinitions, AxisNamesOfAnotherNumber) {
  refused(
      [&] {
        compute({n_}, [&](Expr i) { return A_(i); }, {"B", {"i", "j"}});
      },
      "AXIS_NAMES", "B has 1 dimension, but 2 names for its axes");
}

TEST_F(WrongDefinitions, DivisionOfIntegers) {
  refused([&] { I_(0) / 2; }, "INTEGER_DIVISION",
          "a / b of integers is ambiguous: write floordiv(a, b) to round down or truncdiv(a, b) to "
          "round to zero");
}

TEST_F(WrongDefinitions, LogicOnNumbers) {
  refused([&] { A_(0) && A_(0) > 1; }, "OPERAND_TYPE",
          "logical_and takes bools, but got float32 and bool");
  refused([&] { sum(A_(0) > 1, reduce_axis(n_)); }, "OPERAND_TYPE",
          "sum takes a number, but got bool");
  refused([&] { any(A_(0), reduce_axis(n_)); }, "OPERAND_TYPE",
          "any takes a bool, but got float32");
}

TEST_F(WrongDefinitions, ReductionsWithoutAxes) {
  refused([&] { sum(A_(0), std::vector<ReduceAxis>{}); }, "REDUCTION_AXES",
          "sum needs at least one axis to run over: make one with reduce_axis");
}

TEST_F(WrongDefinitions, ReduceAxesThatEndBeforeTheyBegin) {
  refused([] { reduce_axis(5, 2, "k"); }, "AXIS_EXTENT",
          "reduce_axis k ends at 2, before its begin 5");
}

TEST_F(WrongDefinitions, ScansOfDifferentCounts) {
  refused(
      [&] {
        scan(std::vector<Tensor>{A_, A_}, {A_}, {A_});
      },
      "SCAN_COUNTS",
      "scan scan: init, update and state must be lists of one length, but have 2, 1 and 1 "
      "tensors");
}

TEST_F(WrongDefinitions, ScansOfDifferentTypesOrRanks) {
  const Tensor state = placeholder({n_}, float32, "s");
  const Tensor init = compute(
      {1}, [&](Expr) { return Expr(0.0); }, "init");
  refused([&] { scan(init, I_, state); }, "SCAN_TYPE",
          "scan scan: init init, update I and state s must have one dtype, but are float32, int32 "
          "and float32");
  const Tensor flat = placeholder({n_, n_}, float32, "F");
  refused([&] { scan(init, flat, state); }, "SCAN_SHAPE",
          "scan scan: init init, update F and state s must have the same number of dimensions, at "
          "least 1, but have 1, 2 and 1");
  refused([&] { scan(init, A_, state, {}, "S", {.dimension = 1}); }, "SCAN_SHAPE",
          "scan S: state s has 1 dimension, so time cannot be dimension 1");
  const Tensor computed = compute(
      {n_}, [&](Expr i) { return A_(i); }, "C");
  refused([&] { scan(init, A_, computed); }, "SCAN_STATE",
          "scan scan: state C must be a placeholder, but is computed");
}

TEST_F(WrongDefinitions, NoArguments) {
  refused(
      [] { Definition(std::vector<Tensor>{}); }, "NO_ARGUMENTS",
      "the kernel has no arguments: list its placeholders and what it computes from them, as in "
      "{A, B, C}");
}

TEST_F(WrongDefinitions, AxesOfTensorsThatAreGiven) {
  refused([&] { A_.axis(0); }, "NOT_COMPUTED", "A is not made by compute, so it has no axes");
  refused([&] { A_.scan_axis(); }, "NOT_A_SCAN", "A is not made by scan, so it has no scan axis");
}

TEST_F(WrongDefinitions, ExpressionsNestedTooDeep) {
  expect_client_error(
      [&] {
        Expr deep = A_(0);
        for (int i = 0; i < 3000; ++i)
          deep = deep + 1;
      },
      ErrorKind::ResourceExhausted, "DEPTH",
      "an expression is nested 2001 deep; the limit is 2000: name a part of it as a tensor of its "
      "own");
}

TEST_F(WrongDefinitions, NameTheLineOfTheProgram) {
  const int line = __LINE__ + 2;
  try {
    compute(
        {n_, n_}, [&](Expr i) { return A_(i); }, "B");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.line(), line);
    EXPECT_NE(error.file().find("definition_test.cc"), std::string::npos);
  }
}

TEST_F(WrongDefinitions, AreCheckedByTheLanguage) {
  const Tensor B = compute(
      {n_}, [&](Expr i) { return A_(i) + A_(reduce_axis(n_, "k")); }, "B");
  EXPECT_THROW(Definition({A_, B}).parameters(), InvalidArgument);
}

}  // namespace
}  // namespace kiln::test
