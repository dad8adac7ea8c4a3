#include "compiler/predict/predict_tiles.h"

#include <gtest/gtest.h>

#include "compiler/tile/text.h"

namespace kiln::predict {
namespace {

double term_of(const Prediction& prediction, std::string_view name) {
  for (const Term& term : prediction.terms)
    if (term.name == name) return term.cycles;
  ADD_FAILURE() << "no term " << name;
  return 0;
}

autoschedule::GpuMachine h100() { return autoschedule::gpu_machine("sm_90"); }

/// 132 blocks of 64 x 64 sums, one for each multiprocessor of an H100, of n x 32 products.
std::string product(std::string_view type, std::string_view rows) {
  return fmt::format(
      R"(tile product[n](A: {0}[132, {1}, n], B: {0}[n, 64], C: float32[132, {1}, 64] output) {{
  blocks b: 132 by 1, i: {1} by {1}, j: 64 by 64
  view v0 = A[1, {1}, 32]
  view v1 = B[32, 64]
  view v2 = C[1, {1}, 64]
  t0 = constant float32[{1}, 64] 0
  t1 = for k: n by 32 with t2 = t0 {{
    t3 = load v0[b, i, k]
    t4 = reshape [{1}, 32] t3
    t5 = load v1[k, j]
    t6 = mma t4, t5, t2
    yield t6
  }}
  t7 = exp2 t1
  t8 = reshape [1, {1}, 64] t7
  store v2[b, i, j] = t8
}}
)",
      type, rows);
}

Prediction predicted(const std::string& text, int64_t size) {
  return predict_tiles(tile::parse(text), {{size}}, h100());
}

TEST(PredictTiles, TensorCoresMultiplyWholeParts) {
  const Prediction floats = predicted(product("float16", "64"), 1000);
  EXPECT_EQ(term_of(floats, "tensor cores"), 64 * 64 * 1024 / 2048);
  EXPECT_EQ(term_of(floats, "functions"), 64 * 64 / 16);
  EXPECT_EQ(term_of(floats, "issue"), 64 * 64 / 128);
  EXPECT_EQ(term_of(floats, "memory"), 0);  // it stays in L2
  const Prediction bytes = predicted(product("float8_e5m2", "64"), 1000);
  EXPECT_EQ(term_of(bytes, "tensor cores"), 64 * 64 * 1024 / 2048 / 2);
}

TEST(PredictTiles, LanesMultiplyFloat32AndTensorCoresTf32) {
  std::string text = product("float32", "64");
  const Prediction lanes = predicted(text, 1024);
  EXPECT_EQ(term_of(lanes, "multiply-adds"), 64 * 64 * 1024 / 128);
  EXPECT_GT(term_of(lanes, "issue"), term_of(lanes, "multiply-adds"));
  EXPECT_EQ(term_of(lanes, "tensor cores"), 0);
  constexpr std::string_view kProduct = "mma ";
  text.replace(text.find(kProduct), kProduct.size(), "mma_tf32 ");
  const Prediction tf32 = predicted(text, 1024);
  EXPECT_EQ(term_of(tf32, "tensor cores"), 64 * 64 * 1024 / 1024);
  EXPECT_EQ(term_of(tf32, "multiply-adds"), 0);
}

/// Of the one factor that does not go along the sum, on the way to tensor cores that read it so.
TEST(PredictTiles, ThreadsTurnBytesOnHopper) {
  const std::string bytes = product("float8_e5m2", "64");
  const Prediction on_hopper = predicted(bytes, 1024);
  EXPECT_EQ(term_of(on_hopper, "bytes turned"), 5.5 * 64 * 1024 / 128);
  EXPECT_EQ(on_hopper.cycles, term_of(on_hopper, "tensor cores") +
                                  term_of(on_hopper, "bytes turned") +
                                  term_of(on_hopper, "launches"));
  EXPECT_EQ(term_of(predicted(product("float16", "64"), 1024), "bytes turned"), 0);
  const Prediction on_blackwell =
      predict_tiles(tile::parse(bytes), {{1024}}, autoschedule::gpu_machine("sm_100"));
  EXPECT_EQ(term_of(on_blackwell, "bytes turned"), 0);
}

/// Without it nothing is known of either.
TEST(PredictTiles, CodeSaysWhatProductsTakeAndHowManyBlocksWaitTogether) {
  const tile::Sequence sequence = tile::alone(tile::parse(product("float16", "64")));
  autoschedule::GpuMachine quarter = h100();
  quarter.multiprocessors /= 4;
  const auto predicted_with = [&](const std::optional<TileFacts>& facts) {
    return predict_tiles(sequence, {{1024}}, quarter, facts);
  };
  constexpr double kOfBlock = 64.0 * 64;  // results, and thousands of products
  EXPECT_EQ(term_of(predicted_with(std::nullopt), "issue"), 4 * kOfBlock / 128);
  EXPECT_EQ(term_of(predicted_with(std::nullopt), "waits"), 0);
  const Prediction alone = predicted_with(TileFacts{.issue = 3, .blocks_at_once = 1});
  EXPECT_EQ(term_of(alone, "issue"), 4 * (kOfBlock / 128 + kOfBlock * 3));
  EXPECT_EQ(term_of(alone, "waits"), 4 * 2 * autoschedule::kLoadCycles);
  const Prediction three = predicted_with(TileFacts{.issue = 0, .blocks_at_once = 3});
  EXPECT_EQ(term_of(three, "waits"), 2 * 2 * autoschedule::kLoadCycles);
}

TEST(PredictTiles, CopiesOfFactorsComeOnTop) {
  const tile::Program copy =
      tile::parse(R"(tile copies[n](A: float16[132, 64, n], T: float16[132, n, 64] output) {
  blocks b: 132 by 1, k: n by 64, i: 64 by 64
  view v0 = A[1, 64, 64]
  view v1 = T[1, 64, 64] order [0, 2, 1]
  t0 = load v0[b, i, k]
  store v1[b, i, k] = t0
})");
  const tile::Program add = tile::parse(product("float16", "64"));
  tile::Sequence sequence = tile::alone(add);
  sequence.tensors.push_back(copy.parameters[1]);
  sequence.steps.insert(sequence.steps.begin(), {copy, {0, 3}});
  const Prediction alone = predict_tiles(add, {{4096}}, h100());
  const Prediction copied = predict_tiles(copy, {{4096}}, h100());
  EXPECT_GE(term_of(copied, "issue"), 64 * 4096 * 7 / 128);
  const Prediction whole = predict_tiles(sequence, {{4096}}, h100());
  const double taken = copied.cycles + autoschedule::kLoadCycles;
  EXPECT_DOUBLE_EQ(term_of(whole, "copies of factors"), taken);
  EXPECT_DOUBLE_EQ(whole.cycles, alone.cycles + taken);
}

TEST(PredictTiles, CopiesAreMadeWhereRowsAreUneven) {
  const tile::Program copy =
      tile::parse(R"(tile copies[n](A: float16[n, n], T: float16[n, n] rows by 8 output) {
  blocks i: n by 16, j: n by 256
  view v0 = A[16, 256]
  view v1 = T[16, 256]
  t0 = load v0[i, j]
  store v1[i, j] = t0
})");
  tile::Sequence sequence = tile::alone(tile::parse(product("float16", "64")));
  const tile::Sequence without = sequence;
  const auto tensor = static_cast<uint32_t>(sequence.tensors.size());
  sequence.tensors.push_back(copy.parameters[0]);
  sequence.tensors.push_back(copy.parameters[1]);
  sequence.steps.insert(sequence.steps.begin(), {copy, {tensor, tensor + 1}, true});
  const Prediction uneven = predict_tiles(sequence, {{4095}}, h100());
  EXPECT_DOUBLE_EQ(uneven.cycles, predict_tiles(without, {{4095}}, h100()).cycles +
                                      term_of(uneven, "copies of factors"));
  EXPECT_EQ(predict_tiles(sequence, {{4096}}, h100()).cycles,
            predict_tiles(without, {{4096}}, h100()).cycles);
  // The place of each element of an open row is computed in 64 bits.
  EXPECT_GE(term_of(predict_tiles(copy, {{4095}}, h100()), "issue"), 31.0 * 4096 * 46 / 128);
}

TEST(PredictTiles, FewRowsAreMultipliedByWarps) {
  const Prediction few = predicted(product("float16", "32"), 1024);
  EXPECT_DOUBLE_EQ(term_of(few, "tensor cores"), 32 * 64 * 1024 / (2048 * 0.629));
}

TEST(PredictTiles, AMultiprocessorHasItsBlocksInTurns) {
  std::string text = product("float16", "64");
  for (size_t at = text.find("132"); at != std::string::npos; at = text.find("132", at))
    text.replace(at, 3, "133");
  EXPECT_EQ(term_of(predicted(text, 1024), "tensor cores"), 2 * 64 * 64 * 1024 / 2048);
}

TEST(PredictTiles, TensorsThatAreNotInL2ComeFromMemory) {
  const double bytes = 2.0 * (132 * 64 + 64) * 65536 + 4.0 * 132 * 64 * 64;
  EXPECT_DOUBLE_EQ(term_of(predicted(product("float16", "64"), 65536), "memory"),
                   bytes / (h100().memory_bytes * 132));
}

TEST(PredictTiles, TensorsThatAProgramDoesNotReadAreNotMoved) {
  tile::Program program = tile::parse(product("float16", "64"));
  const Prediction alone = predict_tiles(program, {{65536}}, h100());
  program.parameters.push_back(program.parameters[0]);
  EXPECT_EQ(predict_tiles(program, {{65536}}, h100()).cycles, alone.cycles);
}

/// A loop over the parts up to that of the block, of 1 to 8 parts: 4.5 of 8 on average.
TEST(PredictTiles, LoopsThatEndEarlierTakeLess) {
  const auto loop = [](std::string_view ends) {
    return fmt::format(R"(tile sums(A: float16[132, 512, 512], C: float32[132, 512, 64] output) {{
  blocks b: 132 by 1, i: 512 by 64, j: 64 by 64
  view v0 = A[1, 64, 64]
  view v1 = C[1, 64, 64]
  t0 = constant float32[64, 64] 0
  t1 = places [1, 1] i
  t2 = constant int32[1, 1] 64
  t3 = add t1, t2
  t4 = for k: 512 by 64 {} with t5 = t0 {{
    t6 = load v0[b, i, k]
    t7 = reshape [64, 64] t6
    t8 = mma t7, t7, t5
    yield t8
  }}
  t9 = reshape [1, 64, 64] t4
  store v1[b, i, j] = t9
}}
)",
                       ends);
  };
  const double part = 8.0 * 64 * 64 * 64 / 2048;  // of the 8 blocks that a multiprocessor has
  EXPECT_EQ(term_of(predicted(loop(""), 0), "tensor cores"), 8 * part);
  EXPECT_EQ(term_of(predicted(loop("until t3"), 0), "tensor cores"), 4.5 * part);
  EXPECT_EQ(term_of(predicted(loop("from t3"), 0), "tensor cores"), 3.5 * part);
}

}  // namespace
}  // namespace kiln::predict
