#include "compiler/tile/verify.h"

#include <span>

#include <gtest/gtest.h>

#include "compiler/tile/text.h"
#include "tests/support/expect_error.h"
#include "tests/tile/programs.h"

namespace kiln::testing {
namespace {

struct Broken {
  std::string_view part;
  std::string_view other;
  std::string_view message;
};

void expect_refused(std::string_view program, std::span<const Broken> breaches) {
  for (const Broken& broken : breaches) {
    const std::string text = program_with(program, broken.part, broken.other);
    ASSERT_NE(text, "") << broken.part;
    const Error error =
        expect_error([&] { tile::parse(text); }, ErrorKind::Internal, broken.message);
    EXPECT_EQ(error.reason(), "TILE_PROGRAM");
  }
}

constexpr Broken kBroken[] = {
    {"C: float16[n, 12]", "C: int64[n, 12]",
     "C has elements of int64; tiles have floats of 8, 16 and 32 bits, int8, uint8 and int32"},
    {"A: bfloat16[n, 20]", "A: bfloat16[n, 20] rows by 12",
     "A has no rows that begin at multiples of 12"},
    {"i: n by 8", "i: n by 6", "axis i goes by 6, which is not a power of two"},
    {"v2 = bias[8]", "v2 = bias[8, 8]", "bias has 1 dimensions, but its view has tiles of 2"},
    {"v2 = bias[8]", "v2 = bias[12]",
     "the tile float32[12] has an extent that is not a power of two"},
    {"v2 = bias[8]", "v2 = bias[2097152]", "the tile float32[2097152] is too large"},
    {"order [1, 0]", "order [1, 1]",
     "the order [1, 1] of a view of B does not name each dimension once"},
    {"load v0[i, k]", "load v0[i]", "a place in A has 1 axes, but 2 dimensions"},
    {"load v0[i, k]", "load v0[k, i]", "axis k does not go over dimension 0 of A in steps of 8"},
    {"t6 = load v2[j]", "t6 = load v2[i]",
     "axis i does not go over dimension 0 of bias in steps of 8"},
    {"t8 = broadcast [8, 8] t7", "t12 = load v0[i, k]\n t8 = broadcast [8, 8] t7",
     "axis k is used outside of its loop"},
    {"t6 = load v2[j]", "t6 = load v2[j]\n  t12 = load v3[i, j]", "output C is read"},
    {"bias: float32[12]", "bias: float32[12] output", "output bias is read"},
    {"store v3[i, j] = t11", "", "output C is not stored"},
    {"store v3[i, j] = t11", "store v3[i, j] = t11\n  store v3[i, j] = t11",
     "output C is stored twice"},
    {"store v3[i, j] = t11", "store v0[i, j] = t11",
     "axis j does not go over dimension 1 of A in steps of 16"},
    {"store v3[i, j] = t11", "store v2[j] = t6", "input bias is stored to"},
    {"store v3[i, j] = t11", "store v3[i, j] = t10",
     "a tile float32[8, 8] is stored where C has float16[8, 8]"},
    {"blocks i: n by 8", "blocks b: 2 by 1, i: n by 8",
     "the place where C is stored does not name block axis b, so that several blocks would store "
     "one tile"},
    {"mma t3, t4, t2", "mma t4, t3, t2",
     "mma adds no product of bfloat16[16, 8] and bfloat16[8, 16] to float32[8, 8]"},
    {"mma t3, t4, t2", "mma t3, t4", "mma takes 3 operands, but got 2"},
    {"mma t3, t4, t2", "mma_tf32 t3, t4, t2",
     "mma reads tf32 of tiles of float32, not of bfloat16[8, 16]"},
    {"mma t3, t4, t2", "mma_fast t3, t4, t2",
     "mma adds up fast products of 8-bit floats, not of bfloat16[8, 16]"},
    {"t9 = add t1, t8", "t9 = add t1", "add takes 2 operands, but got 1"},
    {"t9 = add t1, t8", "t9 = add t1, t7",
     "add takes tiles of one type, but got float32[8, 8] and float32[1, 8]"},
    {"t9 = add t1, t8", "t9 = sin t1", "sin is not done element by element on tiles of float32"},
    {"t9 = add t1, t8", "t12 = cast float16 t1\n  t13 = divide t12, t12\n  t9 = add t1, t8",
     "divide is not done element by element on tiles of float16; cast them first"},
    {"t9 = add t1, t8", "t9 = select t1, t1, t8",
     "select takes tiles of one type, but got float32[8, 8] and float32[8, 8]"},
    {"t9 = add t1, t8", "t9 = reduce prod 1 t1", "prod of float32 is not done along a tile"},
    {"t9 = add t1, t8", "t9 = reduce sum 2 t1", "the tile float32[8, 8] has no dimension 2"},
    {"t9 = add t1, t8", "t9 = reduce sum 1 t1, t1", "reduce takes 1 operands, but got 2"},
    {"t9 = add t1, t8", "t12 = places [8, 8] j\n  t9 = add t1, t8",
     "the places on axis j that a part of 8 has are no int32[8, 8]"},
    {"t9 = add t1, t8", "t12 = places [1, 4] j\n  t9 = add t1, t8",
     "the places on axis j that a part of 8 has are no int32[1, 4]"},
    {"t9 = add t1, t8", "t12 = places [16] k\n  t9 = add t1, t8",
     "axis k is used outside of its loop"},
    {"t9 = add t1, t8", "t12 = constant bool[8, 8] 1\n  t9 = add t1, t8", "t9 is a constant bool"},
    {"t9 = add t1, t8", "t12 = size [2] n\n  t9 = add t1, t8",
     "t9 is int32[1], but is said to be int32[2]"},
    {"k: 20 by 16 with", "k: 20 by 16 from t0 with",
     "a loop begins where float32[8, 8] says, which is no int32"},
    {"k: 20 by 16 with", "k: 20 by 16 until t0 with",
     "a loop ends where float32[8, 8] says, which is no int32"},
    {"k: 20 by 16 with", "k: 20 by 16, l: 2 by 1 until t0 with",
     "a loop that ends elsewhere is over 2 axes"},
    {"reshape [1, 8] t6", "reshape [2, 8] t6", "float32[8] cannot be reshaped to float32[2, 8]"},
    {"broadcast [8, 8] t7\n  t9 = add t1, t8", "broadcast [16, 4] t7\n  t9 = add t1, t1",
     "float32[1, 8] cannot be broadcast to float32[16, 4]"},
    {"t11 = cast float16 t10", "t12 = cast int32 t10\n  t11 = cast float16 t10",
     "float32 is not cast to int32 on tiles"},
    {"t11 = cast float16 t10", "t12 = cast float8_e5m2 t10\n  t11 = cast float16 t10",
     "float32 is not cast to float8_e5m2 on tiles"},
    {"yield t5", "yield t3", "a loop begins with float32[8, 8], but t3 is bfloat16[8, 16]"},
    {"yield t5", "yield t5, t5",
     "a loop carries 1 values, but has 1 operands, 1 results and yields 2"},
};

TEST(TileVerify, RefusesEachBreachOfARule) { expect_refused(kProduct, kBroken); }

constexpr Broken kBrokenWindows[] = {
    {"x*2 + s - 1, c] over", "x*2 + s - 1] over", "a window of X has 3 indices, but 4 dimensions"},
    {"t4 = load", "t8 = window Y[b, y + r, x, m] over b, y, x by m\n    t4 = load",
     "output Y is read"},
    {"over b, y, x by c", "over b, y, y by c", "axis y gives a window no rows of a block"},
    {"t4 = load", "t8 = window X[b, y + r, x, c] over b, y, c by c\n    t4 = load",
     "axis c gives a window no rows of a block"},
    {"t4 = load", "t8 = window X[b, y + r, x, c] over b, y by c\n    t4 = load",
     "a window is over no axis x, which goes by 2"},
    {"s - 1, c] over", "s - 1, c + 1] over", "axis c is not the last dimension of X"},
    {"y*2 + r - 1", "y*2 + c - 1", "axis c is not the last dimension of X"},
    {"X: bfloat16[n, 6, 5, 20]", "X: bfloat16[n, 6, n, 20]",
     "X, of which a window is read, has more than one open dimension"},
    {"t7 = reshape", "t8 = window X[b, y + r, x, m] over b, y, x by m\n  t7 = reshape",
     "axis r is used outside of its loop"},
};

TEST(TileVerify, RefusesEachBreachOfARuleOfWindows) {
  expect_refused(kConvolution, kBrokenWindows);
}

TEST(TileVerify, RefusesToComputeWithShortTypes) {
  std::string text = product_with("bias: float32[12]", "bias: int8[12]");
  constexpr std::string_view kSum = "t9 = add t1, t8";
  text.replace(text.find(kSum), kSum.size(), "t12 = negative t8\n  t9 = add t1, t1");
  expect_error([&] { tile::parse(text); }, ErrorKind::Internal,
               "negative is not done element by element on tiles of int8; cast them first");
}

constexpr Broken kBrokenTensorFloats[] = {
    {"t4 = load v1[k, j]", "t12 = load v1[k, j]\n    t4 = add t12, t12",
     "t5 is a factor in float32 that is no tile of an input"},
    {"t5 = mma_tf32 t3, t4, t2", "t12 = add t3, t3\n    t5 = mma_tf32 t3, t4, t2",
     "t3 is a factor in float32 and has another use"},
    {"t5 = mma_tf32 t3, t4, t2", "t5 = mma_tf32 t3, t2, t2",
     "t2 is a factor in float32 and has another use"},
    {"t5 = mma_tf32 t3, t4, t2", "t5 = mma_tf32 t3, t2, t0",
     "t2 is a factor in float32 that a loop carries"},
};

TEST(TileVerify, RefusesFactorsInFloat32ThatAreComputedWith) {
  std::string whole = product_with("A: bfloat16[n, 20]", "A: float32[n, 8]");
  whole = program_with(whole, "B: bfloat16[12, 20]", "B: float32[12, 8]");
  whole = program_with(whole, "k: 20 by 16", "k: 8 by 8");
  whole = program_with(whole, "A[8, 16]", "A[8, 8]");
  whole = program_with(whole, "B[16, 8]", "B[8, 8]");
  tile::parse(
      program_with(whole, "t5 = mma t3, t4, t2", "t12 = add t3, t3\n    t5 = mma t12, t4, t2"));
  whole = program_with(whole, "mma", "mma_tf32");
  tile::parse(whole);
  expect_refused(whole, kBrokenTensorFloats);
}

/// What no text can say.
TEST(TileVerify, RefusesValuesOutOfPlace) {
  const tile::Program product = tile::parse(kProduct);
  tile::Program program = product;
  program.body[1].operands[0] = 9;
  expect_error([&] { verify(program); }, ErrorKind::Internal, "t9 is used before it is made");
  program = product;
  program.body[5].results[0] = 8;
  expect_error([&] { verify(program); }, ErrorKind::Internal, "t8 is made twice");
  program = product;
  program.values[9].element = DType::Float16;
  expect_error([&] { verify(program); }, ErrorKind::Internal,
               "t9 is float32[8, 8], but is said to be float16[8, 8]");
  program = tile::parse(kSums);
  std::get<tile::SizeOf>(program.body[2].what).size = 1;
  expect_error([&] { verify(program); }, ErrorKind::Internal, "there is no size 1");
  program = tile::parse(kSums);
  program.values[1].element = DType::Float32;
  expect_error([&] { verify(program); }, ErrorKind::Internal, "places on axis i are int32");
  program = product;
  program.body[2].results.clear();
  expect_error([&] { verify(program); }, ErrorKind::Internal, "an instruction has 0 results");
  program = product;
  std::get<tile::For>(program.body[1].what).axes = {0};
  expect_error([&] { verify(program); }, ErrorKind::Internal, "axis i is not that of one loop");
}

}  // namespace
}  // namespace kiln::testing
