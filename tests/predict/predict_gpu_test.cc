#include "compiler/predict/predict_gpu.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/parse_ir.h"

namespace kiln::predict {
namespace {

using testing::parse_kernel;

autoschedule::GpuMachine h100() { return autoschedule::gpu_machine("sm_90"); }

double term_of_gpu(const Prediction& prediction, std::string_view name) {
  for (const Term& term : prediction.terms) {
    if (term.name == name) return term.cycles;
  }
  ADD_FAILURE() << "no term " << name;
  return 0;
}

Prediction predicted_on_gpu(const char* parameters, const char* body,
                            const std::vector<LaunchFacts>& facts = {}) {
  return predict_gpu(parse_kernel(parameters, body), {}, h100(), ir::gpu_arch("sm_90"), facts);
}

TEST(PredictGpu, CountsMultiplyAddsOfTheBusiestMultiprocessor) {
  const Prediction prediction = predicted_on_gpu("A: float32[1], C: float32[135168]", R"(
    for b in 0..1056 bind(blockIdx.x) { for t in 0..128 bind(threadIdx.x) {
      allocate s: float32[1] scope(local) {
        for k in 0..1000 { s[0] = s[0] + A[0]*A[0] }
        C[b*128 + t] = s[0] } } })");
  // 8 blocks on each of 132, 128 threads on 128 lanes.
  EXPECT_EQ(term_of_gpu(prediction, "multiply-adds"), 8 * 1000);
}

/// Of blocks 0 to 1055 the first adds up nothing, the last nearly all.
TEST(PredictGpu, LoopsThatBlocksEndElsewhereCountOnTheAverage) {
  const auto multiply_adds = [](const char* count) {
    const std::string body = std::string(R"(
      for b in 0..1056 bind(blockIdx.x) { for t in 0..128 bind(threadIdx.x) {
        allocate s: float32[1] scope(local) {
          for k in 0..)") + count +
                             R"( { s[0] = s[0] + A[0]*A[0] }
          C[b*128 + t] = s[0] } } })";
    return term_of_gpu(predicted_on_gpu("A: float32[1], C: float32[135168]", body.c_str()),
                       "multiply-adds");
  };
  EXPECT_NEAR(multiply_adds("b") / multiply_adds("1056"), 0.5, 0.01);
  EXPECT_NEAR(multiply_adds("max(b - 528, 0)") / multiply_adds("1056"), 0.125, 0.01);
}

/// They have the registers: ten of the 64 loads of a column at once, and of more threads four.
TEST(PredictGpu, FewThreadsHaveMoreLoadsUnderWay) {
  const auto waits = [](int blocks) {
    const std::string body = "for b in 0.." + std::to_string(blocks) + R"( bind(blockIdx.x) {
      for t in 0..512 bind(threadIdx.x) {
        allocate s: float32[1] scope(local) {
          for k in 0..64 { s[0] = s[0] + A[k*540672 + b*512 + t] }
          C[b*512 + t] = s[0] } } })";
    return term_of_gpu(predicted_on_gpu("A: float32[34603008], C: float32[540672]", body.c_str(),
                                        {{.instructions = 1, .blocks_at_once = 2}}),
                       "latency");
  };
  EXPECT_EQ(waits(132), 7 * autoschedule::kLoadCycles);
  EXPECT_EQ(waits(264), 7 * autoschedule::kLoadCycles);
  EXPECT_EQ(waits(396), 2 * 16 * autoschedule::kLoadCycles);
}

TEST(PredictGpu, WhatIsReadApartTakesWholeSectors) {
  const Prediction dense = predicted_on_gpu("A: float32[33554432], C: float32[33554432]", R"(
    for b in 0..131072 bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
      C[b*256 + t] = A[b*256 + t] } })");
  const Prediction apart = predicted_on_gpu("A: float32[33554432], C: float32[33554432]", R"(
    for b in 0..131072 bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
      C[b*256 + t] = A[b*256 + t*8] } })");
  EXPECT_NEAR(term_of_gpu(apart, "L2") / term_of_gpu(dense, "L2"), 4.5,
              0.01);  // 8 and 1, to 1 and 1
  EXPECT_EQ(dense.largest().name, "memory");
  EXPECT_NEAR(dense.seconds(), 2 * 33554432.0 * 4 / 3350e9, 3e-6);
}

/// Three places that slide: what two of them load L1 has, but for the ends of a block.
TEST(PredictGpu, WhatOverlapsComesFromL2Once) {
  const auto bytes_of_l2 = [](const char* value) {
    const std::string body = std::string(R"(
      for b in 0..1056 bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
        C[b*256 + t] = )") + value +
                             " } }";
    return term_of_gpu(predicted_on_gpu("A: float32[540672], C: float32[270336]", body.c_str()),
                       "L2");
  };
  const double once = bytes_of_l2("A[b*256 + t]");
  EXPECT_NEAR(bytes_of_l2("A[b*256 + t] + A[b*256 + t + 1] + A[b*256 + t + 2]"), once, 0.01 * once);
  EXPECT_DOUBLE_EQ(bytes_of_l2("A[b*256 + t] + A[b*256 + t + 256]"), 1.5 * once);
}

/// L2 gives all multiprocessors together what it has, and one alone what its way takes.
TEST(PredictGpu, AFewBlocksShareL2WithNobody) {
  const auto cycles_of_l2 = [](int blocks) {
    const std::string body = "for b in 0.." + std::to_string(blocks) + R"( bind(blockIdx.x) {
      for t in 0..256 bind(threadIdx.x) { C[b*256 + t] = A[b*256 + t] } })";
    return term_of_gpu(predicted_on_gpu("A: float32[270336], C: float32[270336]", body.c_str()),
                       "L2");
  };
  constexpr double kBytesOfBlock = 2 * 256 * 4;
  EXPECT_EQ(cycles_of_l2(12), kBytesOfBlock / autoschedule::kL2BytesOfOne);
  EXPECT_DOUBLE_EQ(cycles_of_l2(1056), 8 * kBytesOfBlock / h100().l2_bytes);
}

TEST(PredictGpu, WhatIsInL2IsThereSooner) {
  const auto latency = [](const char* parameters) {
    return term_of_gpu(predicted_on_gpu(parameters, R"(
      for b in 0..132 bind(blockIdx.x) { for t in 0..8 bind(threadIdx.x) {
        C[b*8 + t] = A[b*8 + t] } })"),
                       "latency");
  };
  EXPECT_EQ(latency("A: float32[33554432], C: float32[1056]"), autoschedule::kLoadCycles);
  EXPECT_EQ(latency("A: float32[1056], C: float32[1056]"), autoschedule::kL2LoadCycles);
}

/// What a block computes it computes after it has waited, where nothing is fetched meanwhile.
TEST(PredictGpu, ABlockThatFillsSharedMemoryComputesThen) {
  const auto predicted = [](const std::string& fetch) {
    const std::string body = R"(
      for b in 0..132 bind(blockIdx.x) { allocate s: float32[128] scope(shared) {
        for t in 0..128 bind(threadIdx.x) { allocate c: float32[1] scope(local) {
          c[0] = 0.0
          for k in 0..10 {
            )" + fetch + R"(
            barrier
            for j in 0..64 { c[0] = c[0] + s[j]*s[t] }
            barrier }
          C[b*128 + t] = c[0] } } } })";
    return predicted_on_gpu("A: float32[1280], C: float32[16896]", body.c_str());
  };
  const Prediction in_turn = predicted("s[t] = A[k*128 + t]");
  const Prediction beside = predicted("background { s[t] = A[k*128 + t] } await 0");
  double busy = 0;
  for (const char* const term : {"multiply-adds", "issue", "shared"}) {
    EXPECT_EQ(term_of_gpu(in_turn, term), term_of_gpu(beside, term)) << term;
    busy = std::max(busy, term_of_gpu(in_turn, term));
  }
  EXPECT_GT(busy, 0);
  EXPECT_DOUBLE_EQ(term_of_gpu(in_turn, "latency"), term_of_gpu(beside, "latency") + busy);
}

TEST(PredictGpu, EachLaunchOfALoopOfTheHostIsCounted) {
  const Prediction prediction = predicted_on_gpu("C: float32[256]", R"(
    for s in 0..10 host { for b in 0..2 bind(blockIdx.x) { for t in 0..128 bind(threadIdx.x) {
      C[b*128 + t] = 1.0 } } })");
  EXPECT_NEAR(term_of_gpu(prediction, "launches") / (h100().gigahertz * 1e9), 20e-6, 1e-9);
  EXPECT_GT(prediction.seconds(), 20e-6);
}

/// What the launches take that are bound by another term than the whole comes on top of it.
TEST(PredictGpu, LaunchesWithTermsOfTheirOwnAreBoundByOneOfThem) {
  const std::string products = R"(
    for b in 0..1056 bind(blockIdx.x) { for t in 0..128 bind(threadIdx.x) {
      allocate s: float32[1] scope(local) {
        for k in 0..1000 { s[0] = s[0] + A[0]*A[0] }
        C[b*128 + t] = s[0] } } })";
  const std::string conflicts = R"(
    for b in 0..132 bind(blockIdx.x) { allocate s: float32[1056] scope(shared) {
      for t in 0..32 bind(threadIdx.x) { for k in 0..100 { s[t*32] = 1.0 } } } })";
  const auto predicted = [](const std::string& body) {
    return predicted_on_gpu("A: float32[1], C: float32[135168]", body.c_str());
  };
  const Prediction first = predicted(products);
  const Prediction second = predicted(conflicts);
  const Prediction both = predicted(products + conflicts);
  EXPECT_EQ(term_of_gpu(first, "launch by launch"), 0);
  EXPECT_NE(first.largest().name, second.largest().name);
  EXPECT_EQ(both.largest().name, first.largest().name);
  EXPECT_NEAR(both.cycles, first.cycles + second.cycles, 1e-6 * both.cycles);
}

TEST(PredictGpu, NeighboursAreOneAccess) {
  const Prediction prediction = predicted_on_gpu("C: float32[540672]", R"(
    for b in 0..132 bind(blockIdx.x) { allocate s: float32[1024] scope(shared) {
      for t in 0..128 bind(threadIdx.x) {
        s[t*4] = 1.0  s[t*4 + 1] = 1.0  s[t*4 + 2] = 1.0  s[t*4 + 3] = 1.0 } } })");
  // Each of four warps moves 32 times 16 bytes.
  EXPECT_EQ(term_of_gpu(prediction, "shared"), 4 * 32 * 16 / 128);
}

/// NVRTC makes the same of both.
TEST(PredictGpu, ALoopToBeUnrolledIsWhatItBecomes) {
  const auto predicted = [](const char* products) {
    const std::string body = std::string(R"(
      for b in 0..132 bind(blockIdx.x) { allocate s: float32[1024] scope(shared) {
        for t in 0..128 bind(threadIdx.x) { allocate c: float32[4] scope(local) {
          for k in 0..100 { )") +
                             products + R"( }
          C[b*128 + t] = c[0] + c[1] + c[2] + c[3] } } } })";
    return predicted_on_gpu("C: float32[16896]", body.c_str());
  };
  const Prediction loops = predicted(R"(for i in 0..2 unroll { for j in 0..2 unroll {
    c[i*2 + j] = c[i*2 + j] + s[t*2 + i]*s[256 + k*2 + j] } })");
  const Prediction copies = predicted(R"(
    c[0] = c[0] + s[t*2]*s[256 + k*2]  c[1] = c[1] + s[t*2]*s[257 + k*2]
    c[2] = c[2] + s[t*2 + 1]*s[256 + k*2]  c[3] = c[3] + s[t*2 + 1]*s[257 + k*2])");
  for (const Term& term : copies.terms)
    EXPECT_EQ(term_of_gpu(loops, term.name), term.cycles) << term.name;
}

TEST(PredictGpu, BanksThatThreadsShareTakeTurns) {
  const auto shared = [](const char* stride) {
    const std::string body = std::string(R"(
      for b in 0..132 bind(blockIdx.x) { allocate s: float32[1056] scope(shared) {
        for t in 0..32 bind(threadIdx.x) { for k in 0..100 { s[t*)") +
                             stride + "] = 1.0 } } } }";
    return term_of_gpu(predicted_on_gpu("C: float32[1]", body.c_str()), "shared");
  };
  EXPECT_EQ(shared("32"), 32 * shared("1"));
  EXPECT_EQ(shared("33"), shared("1"));
}

/// 8 blocks on each of 132 multiprocessors; a thread has 1000 products.
Prediction products(const LaunchFacts& facts) {
  return predicted_on_gpu("A: float32[1], C: float32[135168]", R"(
    for b in 0..1056 bind(blockIdx.x) { for t in 0..128 bind(threadIdx.x) {
      allocate s: float32[1] scope(local) {
        for k in 0..1000 { s[0] = s[0] + A[0]*A[0] }
        C[b*128 + t] = s[0] } } })",
                          {facts});
}

TEST(PredictGpu, CodeSaysHowManyInstructionsAProductTakes) {
  const double by_loops = term_of_gpu(products({}), "issue");
  const double tenth = term_of_gpu(products({.share = 0.1}), "issue");
  // 8 blocks of 4 warps with 1000 products each, a tenth of the instructions, four a cycle.
  EXPECT_EQ(tenth, 8 * 4 * 1000 / 0.1 / 4);
  EXPECT_LT(by_loops, tenth);
  EXPECT_EQ(term_of_gpu(products({.share = 1}), "issue"), by_loops);  // never fewer than the loops'
  EXPECT_EQ(term_of_gpu(products({.instructions = 80000}), "issue"), 8 * 4 * 80000 / 4);
}

TEST(PredictGpu, TensorCoresMultiplyInPlaceOfLanes) {
  EXPECT_EQ(term_of_gpu(products({}), "tensor cores"), 0);
  const LaunchFacts facts{
      .unit = LaunchFacts::Unit::Warps, .share = 0.5, .products = 2048, .shared_cycles = 3};
  const Prediction warps = products(facts);
  const double all = 8 * 128 * 1000;
  EXPECT_EQ(term_of_gpu(warps, "multiply-adds"), 0);
  EXPECT_DOUBLE_EQ(term_of_gpu(warps, "tensor cores"), all / (2048 * 0.629));
  EXPECT_DOUBLE_EQ(term_of_gpu(warps, "issue"), all / 2048 / 0.5 / 4);
  EXPECT_DOUBLE_EQ(term_of_gpu(warps, "shared"), all / 2048 * 3);
}

/// Without the code, loops in the order of a warp's fragments say so: 4 warps of 132 blocks have
/// 64 x 64 sums and 16 steps each.
TEST(PredictGpu, LoopsSayWhatTensorCoresMultiply) {
  constexpr const char* kLoops = R"(
    for b in 0..132 bind(blockIdx.x) {
      allocate A: float16[6144] scope(shared) { allocate B: float16[6144] scope(shared) {
        for z in 0..4 bind(threadIdx.z) { for y in 0..8 bind(threadIdx.y) {
          for x in 0..4 bind(threadIdx.x) { allocate s: float32[128] scope(local) {
            for k in 0..16 { for m in 0..4 { for n in 0..8 { for i in 0..2 { for j in 0..2 {
              s[m*32 + n*4 + i*2 + j] = s[m*32 + n*4 + i*2 + j] +
                float32(A[m*384 + i*192 + y*24 + k])*float32(B[n*192 + x*48 + j*24 + k])
            } } } } }
            C[0] = s[0] } } } } } } })";
  const Prediction prediction = predicted_on_gpu("C: float32[1]", kLoops);
  EXPECT_DOUBLE_EQ(term_of_gpu(prediction, "tensor cores"), 4 * 32 * 2048 / (2048 * 0.629));
  EXPECT_EQ(term_of_gpu(prediction, "multiply-adds"), 0);
  // Fragments of 4 tiles of rows and 8 of columns, which are loaded two at once: 8 times 512 bytes.
  EXPECT_EQ(term_of_gpu(prediction, "shared"), 4 * 8 * 4);
  const Prediction older =
      predict_gpu(parse_kernel("C: float32[1]", kLoops), {}, h100(), ir::gpu_arch("sm_75"));
  EXPECT_GT(term_of_gpu(older, "multiply-adds"), 0);
}

/// A sum whose last iteration has a rest of 4 steps, which is no matrix instruction's.
constexpr const char* kWithRest = R"(
    for b in 0..132 bind(blockIdx.x) {
      allocate A: float16[6144] scope(shared) { allocate B: float16[6144] scope(shared) {
        for z in 0..4 bind(threadIdx.z) { for y in 0..8 bind(threadIdx.y) {
          for x in 0..4 bind(threadIdx.x) { allocate s: float32[128] scope(local) {
            for p in 0..3 {
              for k in 0..16 { for m in 0..4 { for n in 0..8 { for i in 0..2 { for j in 0..2 {
                s[m*32 + n*4 + i*2 + j] = s[m*32 + n*4 + i*2 + j] +
                  float32(A[m*384 + i*192 + y*24 + k])*float32(B[n*192 + x*48 + j*24 + k])
              } } } } }
              if 2 <= p { for k in 0..4 {
                for m in 0..4 unroll { for n in 0..8 unroll {
                for i in 0..2 unroll { for j in 0..2 unroll {
                  s[m*32 + n*4 + i*2 + j] = s[m*32 + n*4 + i*2 + j] +
                    float32(A[m*384 + i*192 + y*24 + k])*float32(B[n*192 + x*48 + j*24 + k])
                } } } } } }
            }
            C[0] = s[0] } } } } } } })";

/// In one of three iterations; a cast of an element that is had already is none.
TEST(PredictGpu, TheRestOfASumIsCountedOnce) {
  const Prediction prediction = predicted_on_gpu("C: float32[1]", kWithRest);
  EXPECT_DOUBLE_EQ(term_of_gpu(prediction, "tensor cores"), 3 * 4 * 32 * 2048 / (2048 * 0.629));
  // 4 warps on 128 lanes: 128 products of 4 steps, and 8 + 16 elements of each that are cast.
  EXPECT_NEAR(term_of_gpu(prediction, "multiply-adds"), 4 * (128 + 8 + 16), 1e-6);
}

/// Code says what the matrix instructions of the main loop take, and not what the rest does.
TEST(PredictGpu, TheRestOfASumStandsBesideTheMainLoop) {
  const LaunchFacts facts{
      .unit = LaunchFacts::Unit::Warps, .share = 0.5, .products = 4096, .shared_cycles = 1};
  const Prediction by_loops = predicted_on_gpu("C: float32[1]", kWithRest);
  const Prediction by_code = predicted_on_gpu("C: float32[1]", kWithRest, {facts});
  for (const char* const term : {"tensor cores", "multiply-adds"})
    EXPECT_DOUBLE_EQ(term_of_gpu(by_code, term), term_of_gpu(by_loops, term)) << term;
  // Of 4 warps, four instructions a cycle: twice the 3 * 32 of matrices, and those of lanes.
  EXPECT_GT(term_of_gpu(by_code, "issue"), 2 * 3 * 32 + 4 * (128 + 8 + 16));
  EXPECT_LT(term_of_gpu(by_code, "issue"), 2 * 3 * 32 + 2 * 4 * (128 + 8 + 16));
  EXPECT_GT(term_of_gpu(by_code, "shared"), 4 * 3 * 32);
}

TEST(PredictGpu, BytesAreMultipliedTwiceAsFast) {
  const auto tensor_cores = [](int64_t bytes) {
    return term_of_gpu(
        products({.unit = LaunchFacts::Unit::Warps, .share = 1, .element_bytes = bytes}),
        "tensor cores");
  };
  EXPECT_DOUBLE_EQ(tensor_cores(2), 2 * tensor_cores(1));
}

TEST(PredictGpu, SpilledRegistersWaitForTheStack) {
  const double without = term_of_gpu(products({.share = 0.5}), "shared");
  const double with = term_of_gpu(products({.share = 0.5, .spills = 0.25}), "shared");
  EXPECT_EQ(with - without, 8 * 4 * 1000 * 0.25);
}

TEST(PredictGpu, FewBlocksAtOnceHideLessOfALatency) {
  const double many = term_of_gpu(products({}), "latency");
  EXPECT_EQ(term_of_gpu(products({.blocks_at_once = 8}), "latency"), many);
  EXPECT_EQ(term_of_gpu(products({.blocks_at_once = 1}), "latency"), 8 * many);
}

}  // namespace
}  // namespace kiln::predict
