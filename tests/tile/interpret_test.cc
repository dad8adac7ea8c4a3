#include "compiler/tile/interpret.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/language/evaluate/scalar.h"
#include "compiler/tile/text.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"
#include "tests/tile/programs.h"

namespace kiln::testing {
namespace {

using language::Scalar;

/// Small numbers, all of which every type holds.
HostTensor counted(DType type, std::vector<int64_t> shape, int64_t modulus) {
  HostTensor tensor = zeros(type, std::move(shape));
  for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
    language::write_element(tensor, i,
                            Scalar::of_float(type, static_cast<double>(i % modulus) - 3));
  }
  return tensor;
}

double at(const HostTensor& tensor, int64_t position) {
  return language::read_element(tensor, position).floating;
}

TEST(TileInterpret, AProductIsThatOfPlainLoops) {
  for (const int64_t n : {1, 7, 8, 19}) {
    SCOPED_TRACE(n);
    const HostTensor a = counted(DType::BFloat16, {n, 20}, 7);
    const HostTensor b = counted(DType::BFloat16, {12, 20}, 5);
    const HostTensor bias = counted(DType::Float32, {12}, 11);
    const std::vector<HostTensor> inputs = {a, b, bias};
    const std::vector<HostTensor> outputs = tile::interpret(tile::parse(kProduct), {{n}}, inputs);
    ASSERT_EQ(outputs.size(), 1u);
    ASSERT_EQ(outputs[0].shape, (std::vector<int64_t>{n, 12}));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < 12; ++j) {
        double sum = at(bias, j);
        for (int64_t k = 0; k < 20; ++k)
          sum += at(a, i * 20 + k) * at(b, j * 20 + k);
        EXPECT_EQ(at(outputs[0], i * 12 + j), std::max(sum, 0.0)) << i << ", " << j;
      }
    }
  }
}

TEST(TileInterpret, PartsOfALoopAreLeftOut) {
  for (const int64_t n : {1, 2, 5, 20, 30}) {
    SCOPED_TRACE(n);
    const std::vector<HostTensor> inputs = {counted(DType::Float32, {20, n}, 13)};
    const std::vector<HostTensor> outputs = tile::interpret(tile::parse(kSums), {{n}}, inputs);
    for (int64_t i = 0; i < 20; ++i) {
      double sum = 0;
      for (int64_t j = i; j < n - 1; ++j)
        sum += at(inputs[0], i * n + j) + static_cast<double>(j);
      EXPECT_EQ(at(outputs[0], i), sum) << i;
    }
  }
}

TEST(TileInterpret, AReductionIsAlongOneDimension) {
  const tile::Program program =
      tile::parse(R"(tile f(A: float32[2, 4, 2], C: float32[2, 1, 2] output) {
  blocks i: 2 by 2, j: 4 by 4, k: 2 by 2, one: 1 by 1
  view v0 = A[2, 4, 2]
  view v1 = C[2, 1, 2]
  t0 = load v0[i, j, k]
  t1 = reduce max 1 t0
  store v1[i, one, k] = t1
}
)");
  const std::vector<HostTensor> inputs = {
      tensor_of<float>({2, 4, 2}, {1, 2, 3, 1, 0, 5, 2, 2, -1, -2, -3, -1, -9, -9, -8, -7})};
  EXPECT_EQ(values_of<float>(tile::interpret(program, {}, inputs)[0]),
            (std::vector<float>{3, 5, -1, -1}));
}

/// Of 1 + 2^-10 all of it, of 1 + 2^-11 only 1; where no tensor core multiplies, of both.
TEST(TileInterpret, TensorCoresReadTenBitsOfAMantissaInFloat32) {
  std::string text = R"(tile f(A: float32[2, 1], B: float32[1, 2], C: float32[2, 2] output) {
  blocks i: 2 by 2, j: 2 by 2
  view v0 = A[2, 1]
  view v1 = B[1, 2]
  view v2 = C[2, 2]
  t0 = constant float32[2, 2] 0
  t1 = for k: 1 by 1 with t2 = t0 {
    t3 = load v0[i, k]
    t4 = load v1[k, j]
    t5 = mma_tf32 t3, t4, t2
    yield t5
  }
  store v2[i, j] = t1
}
)";
  const std::vector<HostTensor> inputs = {tensor_of<float>({2, 1}, {1 + 0x1p-10F, 1 + 0x1p-11F}),
                                          tensor_of<float>({1, 2}, {1, -3})};
  EXPECT_EQ(values_of<float>(tile::interpret(tile::parse(text), {}, inputs)[0]),
            (std::vector<float>{1 + 0x1p-10F, -3 - 3 * 0x1p-10F, 1, -3}));
  constexpr std::string_view kTensorCores = "mma_tf32";
  text.replace(text.find(kTensorCores), kTensorCores.size(), "mma");
  EXPECT_EQ(values_of<float>(tile::interpret(tile::parse(text), {}, inputs)[0]),
            (std::vector<float>{1 + 0x1p-10F, -3 - 3 * 0x1p-10F, 1 + 0x1p-11F, -3 - 3 * 0x1p-11F}));
}

/// Of how a GPU adds up in fewer bits nothing is known that a test could ask for.
TEST(TileInterpret, AddsUpFastProductsAsOthers) {
  const std::vector<HostTensor> inputs = {counted(DType::Float8E4M3FN, {9, 20}, 7),
                                          counted(DType::Float8E4M3FN, {12, 20}, 5),
                                          counted(DType::Float32, {12}, 11)};
  const auto result_of = [&](std::string_view mma) {
    return tile::interpret(tile::parse(byte_float_product(mma)), {{9}}, inputs).at(0);
  };
  EXPECT_TRUE(result_of("mma_fast").bytes == result_of("mma").bytes);
}

TEST(TileInterpret, NoBlocksStoreNothing) {
  const std::vector<HostTensor> inputs = {zeros(DType::BFloat16, {0, 20}),
                                          zeros(DType::BFloat16, {12, 20}),
                                          zeros(DType::Float32, {12})};
  const std::vector<HostTensor> outputs = tile::interpret(tile::parse(kProduct), {{0}}, inputs);
  EXPECT_EQ(outputs[0].bytes.size(), 0u);
}

/// The last tile of 4 of 6 elements: what is read beyond the end is 0, and is not stored.
TEST(TileInterpret, TilesEndWithTheTensor) {
  const tile::Program program = tile::parse(R"(tile f(A: float32[2, 6], C: float32[6, 2] output) {
  blocks i: 6 by 4, b: 2 by 1
  view v0 = A[4, 1] order [1, 0]
  view v1 = C[4, 1]
  t0 = load v0[i, b]
  t1 = constant float32[4, 1] 0.5
  t2 = subtract t0, t1
  store v1[i, b] = t2
}
)");
  const std::vector<HostTensor> inputs = {
      tensor_of<float>({2, 6}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60})};
  EXPECT_EQ(values_of<float>(tile::interpret(program, {}, inputs)[0]),
            (std::vector<float>{0.5, 9.5, 1.5, 19.5, 2.5, 29.5, 3.5, 39.5, 4.5, 49.5, 5.5, 59.5}));
}

/// 2049 is no float16: 2048 and 1 are 2048, and 0.1 is rounded when it is made.
TEST(TileInterpret, EachInstructionRoundsToItsType) {
  const tile::Program program = tile::parse(R"(tile f(A: float16[1], C: float32[1] output) {
  blocks i: 1 by 1
  view v0 = A[1]
  view v1 = C[1]
  t0 = load v0[i]
  t1 = constant float16[1] 0.1
  t2 = add t0, t1
  t3 = constant float16[1] 0.1
  t4 = max t3, t3
  t5 = cast float32 t2
  t6 = cast float32 t4
  t7 = add t5, t6
  store v1[i] = t7
}
)");
  const std::vector<HostTensor> inputs = {counted(DType::Float16, {1}, 7)};
  const auto half = [](double value) {
    return language::convert(DType::Float16, Scalar::of_float(DType::Float64, value)).floating;
  };
  const double tenth = half(0.1);
  EXPECT_NE(tenth, 0.1);
  EXPECT_EQ(values_of<float>(tile::interpret(program, {}, inputs)[0])[0],
            static_cast<float>(half(-3 + tenth)) + static_cast<float>(tenth));
}

TEST(TileInterpret, FindsTwoBlocksThatStoreOneElement) {
  tile::Program program = tile::parse(R"(tile f(C: float32[8, 8] output) {
  blocks i: 8 by 4, j: 8 by 4
  view v0 = C[4, 4]
  t0 = constant float32[4, 4] 1
  store v0[i, j] = t0
}
)");
  std::get<tile::Store>(program.body[1].what).at = {0, 0};
  const Error error = expect_error([&] { tile::interpret(program, {}, {}); }, ErrorKind::Internal,
                                   "element 0 of C is stored by blocks 0 and 1");
  EXPECT_EQ(error.reason(), "TILE_RACE");
}

}  // namespace
}  // namespace kiln::testing
