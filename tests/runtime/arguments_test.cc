#include "runtime/core/arguments.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kiln {
namespace {

using testing::expect_error;
using Op = SizeExpr::Op;

SizeExpr size(int64_t index) { return SizeExpr::scalar(index); }

ArgumentSlot tensor(std::vector<int64_t> shape, DType type = DType::Float32,
                    std::vector<int64_t> strides = {}) {
  return {true, {type, std::move(shape), std::move(strides)}};
}
const ArgumentSlot kToAllocate = {false, {}};

/// C[n, m] = A[n, l] B[l, m], in which l is 500 when an argument says so.
Artifact matmul() {
  Artifact artifact;
  artifact.size_count = 3;  // n, l, m
  artifact.parameters = {{DType::Float32, {size(0), size(1)}, false},
                         {DType::Float32, {size(1), size(2)}, false},
                         {DType::Float32, {size(0), size(2)}, true}};
  artifact.variants = {Variant{}};
  return artifact;
}
const KernelNames kMatmul = {"matmul", {"A", "B", "C"}, {"n", "l", "m"}, {}};

BoundCall bind_matmul(std::vector<ArgumentSlot> arguments,
                      const std::map<std::string, int64_t>& sizes = {}) {
  return bind_arguments(matmul(), kMatmul, arguments, sizes);
}

/// K: one parameter of a given shape over the sizes m, n.
BoundCall bind_one(std::vector<SizeExpr> shape, ArgumentSlot argument, bool is_output = false,
                   const std::map<std::string, int64_t>& sizes = {}) {
  Artifact artifact;
  artifact.size_count = 2;
  artifact.parameters = {{DType::Float32, std::move(shape), is_output}};
  artifact.variants = {Variant{}};
  const KernelNames names = {"K", {"X"}, {"m", "n"}, {"s"}};
  return bind_arguments(artifact, names, std::vector{std::move(argument)}, sizes);
}

TEST(BindArguments, FindsSizesShapesAndStrides) {
  const BoundCall call =
      bind_matmul({tensor({2, 3}), tensor({3, 4}, DType::Float32, {1, 3}), kToAllocate});
  EXPECT_EQ(call.scalars, (std::vector<int64_t>{2, 3, 4, 3, 1, 1, 3, 4, 1}));
  EXPECT_EQ(call.shapes[2], (std::vector<int64_t>{2, 4}));
}

TEST(BindArguments, FindsASizeThatIsADimensionUpToAConstant) {
  const SizeExpr plus = SizeExpr::binary(Op::Add, size(0), SizeExpr::constant(1));
  EXPECT_EQ(bind_one({plus, size(1)}, tensor({4, 2})).scalars, (std::vector<int64_t>{3, 2, 2, 1}));
  const SizeExpr minus = SizeExpr::binary(Op::Sub, size(0), SizeExpr::constant(2));
  EXPECT_EQ(bind_one({minus, size(1)}, tensor({4, 2})).scalars, (std::vector<int64_t>{6, 2, 2, 1}));
  // What says it exactly stands first.
  expect_error(
      [&] {
        bind_one({plus, size(0)}, tensor({4, 4}), false, {{"n", 1}});
      },
      ErrorKind::InvalidArgument, "argument X of K: dimension 0 is 4, but must be 5 (m + 1)");
}

TEST(BindArguments, CountsThem) {
  expect_error(
      [] {
        bind_matmul({tensor({2, 3})});
      },
      ErrorKind::InvalidArgument, "matmul takes 3 arguments (A, B, C), but got 1");
}

TEST(BindArguments, WantsTheTypeOfTheDefinition) {
  expect_error(
      [] {
        bind_matmul({tensor({2, 3}), tensor({3, 4}, DType::Float64), kToAllocate});
      },
      ErrorKind::InvalidArgument, "argument B of matmul is float64, but must be float32");
}

TEST(BindArguments, WantsTheRankOfTheDefinition) {
  expect_error(
      [] {
        bind_matmul({tensor({2, 3}), tensor({3}), kToAllocate});
      },
      ErrorKind::InvalidArgument, "argument B of matmul has 1 dimension, but must have 2");
  expect_error(
      [] {
        bind_matmul({tensor({2, 3}), tensor({3, 4, 5}), kToAllocate});
      },
      ErrorKind::InvalidArgument, "argument B of matmul has 3 dimensions, but must have 2");
}

TEST(BindArguments, SaysWhereASizeCameFrom) {
  expect_error(
      [] {
        bind_matmul({tensor({20, 500}), tensor({400, 30}), kToAllocate});
      },
      ErrorKind::InvalidArgument,
      "argument B of matmul: dimension 0 is 400, but must be 500 (l, from dimension 1 of A)");
}

TEST(BindArguments, BlamesTheOutputBeforeAnInput) {
  Artifact artifact = matmul();
  std::swap(artifact.parameters[0], artifact.parameters[2]);  // C, B, A
  const KernelNames names = {"matmul", {"C", "B", "A"}, {"n", "l", "m"}, {}};
  expect_error(
      [&] {
        bind_arguments(artifact, names, std::vector{tensor({7, 4}), tensor({3, 4}), tensor({2, 3})},
                       {});
      },
      ErrorKind::InvalidArgument,
      "argument C of matmul: dimension 0 is 7, but must be 2 (n, from dimension 0 of A)");
}

TEST(BindArguments, ShowsAConstantWithoutParenthesis) {
  expect_error(
      [] {
        bind_one({SizeExpr::constant(8)}, tensor({9}), false, {{"m", 1}, {"n", 1}});
      },
      ErrorKind::InvalidArgument, "argument X of K: dimension 0 is 9, but must be 8");
}

TEST(BindArguments, ChecksDimensionsThatAreExpressions) {
  const SizeExpr twice = SizeExpr::binary(Op::Mul, size(0), SizeExpr::constant(2));
  expect_error(
      [&] {
        bind_one({size(0), twice}, tensor({3, 7}), false, {{"n", 1}});
      },
      ErrorKind::InvalidArgument, "argument X of K: dimension 1 is 7, but must be 6 (m*2)");
  const SizeExpr less = SizeExpr::binary(Op::Sub, size(0), SizeExpr::constant(5));
  expect_error(
      [&] {
        bind_one({less}, kToAllocate, true, {{"m", 3}, {"n", 1}});
      },
      ErrorKind::InvalidArgument,
      "argument X of K: dimension 0 would be -2 (m - 5), but must not be negative");
}

TEST(BindArguments, RefusesANegativeDimension) {
  expect_error(
      [] {
        bind_one({size(0), size(1)}, tensor({3, -4}));
      },
      ErrorKind::InvalidArgument, "argument X of K: dimension 1 is -4, but must not be negative");
}

TEST(BindArguments, NamesASizeThatNothingGives) {
  expect_error([] { bind_one({size(1)}, tensor({3})); }, ErrorKind::InvalidArgument,
               "size m of K is not given by any argument; pass it as a size");
}

TEST(BindArguments, TakesGivenSizes) {
  EXPECT_EQ(bind_one({size(1)}, tensor({3}), false, {{"m", 9}}).scalars,
            (std::vector<int64_t>{9, 3, 1}));
}

TEST(BindArguments, RefusesAGivenSizeThatAShapeContradicts) {
  expect_error(
      [] {
        bind_one({size(0), size(1)}, tensor({3, 4}), false, {{"n", 5}});
      },
      ErrorKind::InvalidArgument,
      "argument X of K: dimension 1 is 4, but must be 5 (n, given as a size)");
}

TEST(BindArguments, RefusesAGivenSizeItDoesNotHave) {
  expect_error(
      [] {
        bind_one({size(0), size(1)}, tensor({3, 4}), false, {{"q", 5}});
      },
      ErrorKind::InvalidArgument, "K has no size q; its sizes are m, n");
}

TEST(BindArguments, RefusesAnInputThatIsNotGiven) {
  expect_error(
      [] {
        bind_one({size(0), size(1)}, kToAllocate);
      },
      ErrorKind::InvalidArgument, "argument X of K is an input, but nothing is given for it");
}

TEST(BindArguments, WantsTheInitialStepsOfAScan) {
  Artifact artifact;
  artifact.size_count = 2;
  artifact.parameters = {{DType::Float32, {size(0), size(1)}, false},
                         {DType::Float32, {size(0), size(1)}, true}};
  artifact.requirements = {
      {SizeRequirement::Kind::ScanExtent, 0, 0, size(0), SizeExpr::constant(1), 1}};
  artifact.variants = {Variant{}};
  const KernelNames names = {"myscan", {"X", "scan"}, {"m", "n"}, {"X", "scan"}};
  expect_error(
      [&] {
        bind_arguments(artifact, names, std::vector{tensor({0, 5}), kToAllocate}, {});
      },
      ErrorKind::InvalidArgument,
      "argument X of myscan: dimension 0 is 0, but must be at least 1 (initial steps of scan)");
  artifact.requirements[0].parameter = -1;
  expect_error(
      [&] {
        bind_arguments(artifact, names, std::vector{tensor({0, 5}), kToAllocate}, {});
      },
      ErrorKind::InvalidArgument,
      "size m of myscan is 0, but must be at least 1 (initial steps of scan)");
  EXPECT_EQ(bind_arguments(artifact, names, std::vector{tensor({1, 0}), kToAllocate}, {}).shapes[1],
            (std::vector<int64_t>{1, 0}));
}

TEST(BindArguments, RefusesWhatIndexArithmeticCouldOverflow) {
  expect_error(
      [] {
        bind_one({size(0), size(1)}, tensor({int64_t{1} << 40, 1 << 20}));
      },
      ErrorKind::ResourceExhausted,
      "argument X of K has shape (1099511627776, 1048576), which is past the limit of "
      "140737488355328 bytes");
  // An empty tensor has extents too.
  expect_error(
      [] {
        bind_one({size(0), size(1)}, tensor({int64_t{1} << 60, 0}));
      },
      ErrorKind::ResourceExhausted,
      "argument X of K has shape (1152921504606846976, 0), which is past the limit of "
      "140737488355328 bytes");
  expect_error(
      [] {
        bind_one({size(0), size(1)}, tensor({2, 2}, DType::Float32, {int64_t{1} << 62, 1}));
      },
      ErrorKind::ResourceExhausted,
      "argument X of K has strides (4611686018427387904, 1), which reach past the limit of "
      "140737488355328 bytes");
  expect_error(
      [] {
        bind_one({size(1)}, tensor({3}), false, {{"m", int64_t{1} << 50}});
      },
      ErrorKind::ResourceExhausted,
      "size m of K is 1125899906842624; the limit is 140737488355328");
}

TEST(BindArguments, IgnoresTheStrideOfADimensionNotSteppedAlong) {
  EXPECT_EQ(bind_one({size(0), size(1)}, tensor({1, 4}, DType::Float32, {99, 1})).scalars,
            (std::vector<int64_t>{1, 4, 4, 1}));
}

TEST(BindArguments, TakesAnInputWhoseElementsOverlap) {
  EXPECT_EQ(bind_one({size(0), size(1)}, tensor({3, 4}, DType::Float32, {0, 1})).scalars,
            (std::vector<int64_t>{3, 4, 0, 1}));
}

TEST(BindArguments, RefusesAnOutputWhoseElementsOverlap) {
  expect_error(
      [] {
        bind_one({size(0), size(1)}, tensor({3, 4}, DType::Float32, {3, 1}), true);
      },
      ErrorKind::InvalidArgument,
      "argument X of K is written, but with strides (3, 1) its elements overlap; pass memory with "
      "a "
      "place for each element");
  EXPECT_NO_THROW(bind_one({size(0), size(1)}, tensor({3, 4}, DType::Float32, {-1, 3}), true));
}

TEST(BindArguments, ChoosesTheFirstVariantWhoseConditionHolds) {
  Artifact artifact;
  artifact.size_count = 1;
  artifact.parameters = {{DType::Float32, {size(0)}, false}};
  Variant compact;
  compact.condition = SizeExpr::binary(Op::Equal, SizeExpr::scalar(1), SizeExpr::constant(1));
  artifact.variants = {compact, Variant{}};
  const KernelNames names = {"K", {"X"}, {"n"}, {}};
  EXPECT_EQ(bind_arguments(artifact, names, std::vector{tensor({5})}, {}).variant, 0);
  EXPECT_EQ(
      bind_arguments(artifact, names, std::vector{tensor({5}, DType::Float32, {2})}, {}).variant,
      1);
}

TEST(ByteSize, MultipliesAndBounds) {
  EXPECT_EQ(byte_size(DType::Float64, std::vector<int64_t>{3, 4}), 96);
  EXPECT_EQ(byte_size(DType::Float64, std::vector<int64_t>{}), 8);
  EXPECT_EQ(byte_size(DType::Float64, std::vector<int64_t>{int64_t{1} << 62, 0}), 0);
  expect_error(
      [] {
        byte_size(DType::Float32, std::vector<int64_t>{1 << 30, 1 << 30});
      },
      ErrorKind::ResourceExhausted,
      "a float32 tensor of shape (1073741824, 1073741824) is past the limit of "
      "140737488355328 bytes");
}

TEST(CompactStrides, AreRowMajor) {
  EXPECT_EQ(compact_strides(std::vector<int64_t>{2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_TRUE(compact_strides(std::vector<int64_t>{}).empty());
}

}  // namespace
}  // namespace kiln
