#include <regex>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"
#include "tests/support/random_kernel_text.h"

namespace kiln::test {
namespace {

/// Definitions that are called on tensors.
class Composition : public ::testing::Test {
 protected:
  static Definition parsed(const std::string& text) { return parse(text, "test.kiln").front(); }

  static Tensor tensor(Shape shape, const char* name, DType type = float32) {
    return placeholder(std::move(shape), type, name);
  }

  const Definition matmul_ = parsed(R"(
    kernel matmul(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {
      C[i, j] = sum[k < l](A[i, k] * B[k, j])
    })");
  const Definition softmax_ = parsed(R"(
    kernel softmax(X: float32[n]) -> (Y: float32[n]) {
      top: float32[]
      E: float32[n]
      top[] = max[k < n](X[k])
      E[i] = exp(X[i] - top[])
      Y[i] = E[i] / sum[k < n](E[k])
    })");
  const Definition pool_ = parsed(R"(
    kernel pool(X: float32[w]) -> (Y: float32[(w - s) // stride + 1]) {
      Y[j] = max[q < s](X[j * stride + q])
    })");
};

TEST_F(Composition, PutsTheStagesIntoTheCallersGraph) {
  const Tensor A = tensor({4, 5}, "A");
  const Tensor B = tensor({5, 6}, "B");
  const Tensor C = matmul_(A, B);
  const Tensor D = compute({4, 6}, [&](Expr i, Expr j) { return C(i, j) + 1; }, {"D", {"i", "j"}});
  EXPECT_EQ(Definition({A, B, D}).text(),
            "kernel main(A: float32[4, 5], B: float32[5, 6]) -> (D: float32[4, 6]) {\n"
            "  C: float32[4, 6]\n"
            "  C[i, j] = sum[k < 5](A[i, k] * B[k, j])\n"
            "  D[i, j] = C[i, j] + 1.0\n"
            "}\n");
}

TEST_F(Composition, TakesWhatItMade) {
  const Tensor A = tensor({4, 4}, "A");
  const Tensor C = matmul_(matmul_(A, A), A);
  EXPECT_EQ(Definition({A, C}).text(),
            "kernel main(A: float32[4, 4]) -> (C_1: float32[4, 4]) {\n"
            "  C: float32[4, 4]\n"
            "  C[i, j] = sum[k < 4](A[i, k] * A[k, j])\n"
            "  C_1[i, j] = sum[k < 4](C[i, k] * A[k, j])\n"
            "}\n");
}

TEST_F(Composition, MapsOverDimensionsInFront) {
  const Expr b = size_var("b");
  const Tensor X = tensor({b, 8}, "X");
  const Tensor Y = softmax_(X);
  EXPECT_EQ(Definition({X, Y}).text(),
            "kernel main(X: float32[b, 8]) -> (Y: float32[b, 8]) {\n"
            "  top: float32[b]\n"
            "  top[i0] = max[k < 8](X[i0, k])\n"
            "  E: float32[b, 8]\n"
            "  E[i0, i] = exp(X[i0, i] - top[i0])\n"
            "  Y[i0, i] = E[i0, i] / sum[k < 8](E[i0, k])\n"
            "}\n");
}

TEST_F(Composition, StretchesDimensionsInFront) {
  const Tensor A = tensor({5, 1, 3, 4}, "A");
  const Tensor B = tensor({2, 4, 6}, "B");
  const Tensor C = matmul_(A, B);
  EXPECT_EQ(Definition({A, B, C}).text(),
            "kernel main(A: float32[5, 1, 3, 4], B: float32[2, 4, 6]) -> (C: float32[5, 2, 3, 6]) "
            "{\n"
            "  C[i0, i1, i, j] = sum[k < 4](A[i0, 0, i, k] * B[i1, k, j])\n"
            "}\n");
}

TEST_F(Composition, BindsTypesAndSizes) {
  const Tensor X = tensor({9}, "X", int32);
  const Tensor Y = pool_.apply({X}, {{"stride", 2}, {"s", 3}});
  EXPECT_EQ(Definition({X, Y}).text(),
            "kernel main(X: int32[9]) -> (Y: int32[4]) {\n"
            "  Y[j] = max[q < 3](X[j * 2 + q])\n"
            "}\n");
}

TEST_F(Composition, TakesANumberForATensorWithoutDimensions) {
  const Definition scaled =
      parsed("kernel scaled(X: float32[], a: float32[]) -> (Y: float32[]) { Y[] = X[] * a[] }");
  const Tensor X = tensor({3}, "X");
  EXPECT_EQ(Definition({X, scaled(X, 0.5)}).text(),
            "kernel main(X: float32[3]) -> (Y: float32[3]) {\n"
            "  Y[i0] = X[i0] * 0.5\n"
            "}\n");
}

TEST_F(Composition, ComposesScans) {
  const Definition cumsum = parsed(
      "kernel cumsum(X: float32[n]) -> (Y: float32[n]) {\n"
      "  scan t { Y[0] = X[0]  Y[t] = Y[t - 1] + X[t] } }");
  const Expr n = size_var("n");
  const Tensor X = tensor({n}, "X");
  const Tensor Y = cumsum(X);
  const Definition twice({X, cumsum(Y)});
  EXPECT_EQ(twice.parameters()[1].shape, std::vector<std::string>{"n"});
}

TEST_F(Composition, MapsScansOverDimensionsInFront) {
  const Definition cumsum = parsed(
      "kernel cumsum(X: float32[n]) -> (Y: float32[n]) {\n"
      "  scan t { Y[0] = X[0]  Y[t] = Y[t - 1] + X[t] } }");
  const Tensor X = tensor({3, 8}, "X");
  EXPECT_EQ(Definition({X, cumsum(X)}).text(),
            "kernel main(X: float32[3, 8]) -> (Y: float32[3, 8]) {\n"
            "  scan t {\n"
            "    Y[i0, 0] = X[i0, 0]\n"
            "    Y[i0, t] = Y[i0, t - 1] + X[i0, t]\n"
            "  }\n"
            "}\n");
}

TEST_F(Composition, IsMadeAlongAnyDimension) {
  const Tensor X = tensor({5, 6, 7}, "X");
  EXPECT_EQ(Definition({X, softmax_(X, Along{1})}).text(),
            "kernel main(X: float32[5, 6, 7]) -> (Y: float32[5, 6, 7]) {\n"
            "  top: float32[5, 7]\n"
            "  top[i0, i1] = max[k < 6](X[i0, k, i1])\n"
            "  E: float32[5, 6, 7]\n"
            "  E[i0, i, i1] = exp(X[i0, i, i1] - top[i0, i1])\n"
            "  Y[i0, i, i1] = E[i0, i, i1] / sum[k < 6](E[i0, k, i1])\n"
            "}\n");
  EXPECT_EQ(Definition({X, softmax_(X, Along{-2})}).text(),
            Definition({X, softmax_(X, Along{1})}).text());
}

TEST_F(Composition, ScansAlongAnyDimension) {
  const Definition cumsum = parsed(
      "kernel cumsum(X: float32[n]) -> (Y: float32[n]) {\n"
      "  scan t { Y[0] = X[0]  Y[t] = Y[t - 1] + X[t] } }");
  const Tensor X = tensor({3, 8}, "X");
  EXPECT_EQ(Definition({X, cumsum(X, Along{0})}).text(),
            "kernel main(X: float32[3, 8]) -> (Y: float32[3, 8]) {\n"
            "  scan t {\n"
            "    Y[0, i0] = X[0, i0]\n"
            "    Y[t, i0] = Y[t - 1, i0] + X[t, i0]\n"
            "  }\n"
            "}\n");
}

TEST_F(Composition, RefusesDimensionsThatAreNotThere) {
  const Tensor X = tensor({5, 6}, "X");
  expect_client_error([&] { softmax_(X, Along{2}); }, ErrorKind::InvalidArgument, "AXIS_RANGE",
                      "softmax: axis 2 is out of range; the tensors have 2 dimensions");
  expect_client_error([&] { matmul_(X, X, Along{0}); }, ErrorKind::InvalidArgument, "AXIS",
                      "matmul takes no Along, since it is not over one dimension");
}

TEST_F(Composition, MapsScattersOverDimensionsInFront) {
  const Definition adds = parsed(
      "kernel adds(B: float32[m], rows: int32[n], X: float32[n]) -> (S: float32[m]) {\n"
      "  S = scatter_add[r < n](B, rows[r], X[r]) }");
  const Tensor B = tensor({2, 4}, "B");
  const Tensor rows = tensor({6}, "rows", int32);
  const Tensor X = tensor({2, 6}, "X");
  EXPECT_EQ(Definition({B, rows, X, adds(B, rows, X)}).text(),
            "kernel main(B: float32[2, 4], rows: int32[6], X: float32[2, 6]) -> (S: float32[2, 4]) "
            "{\n"
            "  S = scatter_add[i0 < 2, r < 6](B, i0, int64(rows[r]), X[i0, r])\n"
            "}\n");
  const Tensor one = tensor({4}, "B");
  EXPECT_EQ(Definition({one, rows, X, adds(one, rows, X)}).text(),
            "kernel main(B: float32[4], rows: int32[6], X: float32[2, 6]) -> (S: float32[2, 4]) "
            "{\n"
            "  B_copy: float32[2, 4]\n"
            "  B_copy[i0, i1] = B[i1]\n"
            "  S = scatter_add[i0 < 2, r < 6](B_copy, i0, int64(rows[r]), X[i0, r])\n"
            "}\n");
}

TEST_F(Composition, RefusesTensorsThatDoNotFit) {
  const auto refused = [](const std::string& reason, const std::string& message, auto&& call) {
    expect_client_error(call, ErrorKind::InvalidArgument, reason, message);
  };
  const Tensor A = tensor({4, 5}, "A");
  refused("ARGUMENT_COUNT", "matmul takes 2 tensors (A, B), but got 1", [&] { matmul_(A); });
  refused("ARGUMENT_SHAPE",
          "argument B of matmul: dimension 0 is 4, but must be 5 (l, from dimension 1 of A)",
          [&] { matmul_(A, A); });
  refused("ARGUMENT_SHAPE",
          "argument B of matmul: dimension 0 is m, which is not known to be 5 (l, from dimension 1 "
          "of A)",
          [&] {
            matmul_(A, tensor({size_var("m"), 5}, "B"));
          });
  refused("ARGUMENT_RANK", "argument B of matmul has 1 dimension, but must have 2 or more",
          [&] { matmul_(A, tensor({5}, "B")); });
  refused("ARGUMENT_TYPE", "argument B of matmul is float64, but A is float32; cast one of them",
          [&] {
            matmul_(A, tensor({5, 4}, "B", float64));
          });
  const Definition pick =
      parsed("kernel pick(X: float32[n], I: int64[m]) -> (Y: float32[m]) { Y[i] = X[I[i]] }");
  refused("ARGUMENT_TYPE", "argument I of pick is int32, but must be int64",
          [&] { pick(tensor({9}, "X"), tensor({4}, "I", int32)); });
  refused("BATCH",
          "matmul: the leading dimensions of A are (2,) and those of B (3,), which do not stretch "
          "to one shape",
          [&] {
            matmul_(tensor({2, 4, 4}, "A"), tensor({3, 4, 4}, "B"));
          });
  refused("MISSING_SIZE", "pool needs the size s, which no shape gives: call it with s=...",
          [&] { pool_(tensor({9}, "X")); });
  refused("UNKNOWN_SIZE", "matmul has no size step; its sizes are n, l, m", [&] {
    matmul_.apply({A, A}, {{"step", 2}});
  });
}

/// What the text form can say, composition keeps.
TEST(CompositionFuzz, TheTensorsOfADefinitionAreTheDefinition) {
  const std::uint64_t first = testing::fuzz_seed();
  const int rounds = testing::fuzz_rounds(200);
  const std::regex folded(R"(\b\d+ [-+*] \d+\b|[-+] 0\b|\* [01]\b|\b0 [+*]|\b1 \*|, 1\))");
  int compared = 0;
  for (std::uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    testing::Random random(seed);
    const Definition written = parse(testing::random_kernel_text(random), "random.kiln").front();
    SCOPED_TRACE("to repeat: KILN_FUZZ_SEED=" + std::to_string(seed) + " KILN_FUZZ_ROUNDS=1");
    if (std::regex_search(written.text(), folded)) continue;  // 5 - 1 becomes 4, i * 1 i
    EXPECT_EQ(Definition(written.tensors(), written.name()).text(), written.text());
    ++compared;
  }
  EXPECT_GE(compared, rounds / 2);
}

TEST_F(Composition, HasTheOperatorsOfTheTree) {
  const Tensor X = tensor({2, 8}, "X");
  EXPECT_EQ(Definition({X, load_operator("relu")(X)}).text(),
            "kernel main(X: float32[2, 8]) -> (Y: float32[2, 8]) {\n"
            "  Y[i0, i1] = max(X[i0, i1], 0.0)\n"
            "}\n");
  const Tensor images = tensor({2, 3, 9, 9}, "X");
  const Tensor filters = tensor({4, 3, 3, 3}, "F");
  const Tensor Y = load_operator("conv2d").apply(
      {images, filters}, {{"stride_h", 2}, {"stride_w", 1}, {"dilation_h", 1}, {"dilation_w", 1}});
  const std::vector<std::string> shape = {"2", "4", "4", "7"};
  EXPECT_EQ(Definition({images, filters, Y}).parameters()[2].shape, shape);
  try {
    load_operator("einsum");
    FAIL() << "einsum was found";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.reason(), "OPERATOR");
    EXPECT_TRUE(std::string(error.what()).starts_with("unknown operator einsum; known: adaptive_"));
  }
}

TEST_F(Composition, OfSeveralOutputsIsNoSingleTensor) {
  const Definition both = parsed(
      "kernel both(X: float32[n]) -> (P: float32[n], Q: float32[n]) {\n"
      "  P[i] = X[i] + 1  Q[i] = X[i] * 2 }");
  const Tensors made = both(tensor({3}, "X"));
  EXPECT_EQ(made.size(), 2U);
  EXPECT_EQ(made[1].name(), "Q");
  expect_client_error([&] { static_cast<void>(static_cast<Tensor>(made)); },
                      ErrorKind::InvalidArgument, "OUTPUT_COUNT",
                      "the definition makes 2 tensors: take them by their positions");
}

}  // namespace
}  // namespace kiln::test
