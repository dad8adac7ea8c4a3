#include "compiler/ir/interpret.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/parse_ir.h"

namespace kiln::testing {
namespace {

using ir::HostTensor;

HostTensor floats(std::vector<float> values) {
  HostTensor tensor{DType::Float32, {static_cast<int64_t>(values.size())}, {}};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

std::vector<float> values_of(const HostTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

struct WatchThreads : ir::InterpretWatch {
  bool wants_races() const override { return true; }
};

/// Runs `fn f(A: float32[n], B: float32[n]) { BODY }` on A = 1, 2, ... and gives B.
std::vector<float> run(std::string_view body, int64_t n) {
  const ir::Kernel kernel = parse_kernel("A: float32[n], B: float32[n] output", body);
  std::vector<float> input;
  for (int64_t i = 0; i < n; ++i)
    input.push_back(static_cast<float>(i + 1));
  std::vector<HostTensor> arguments = {floats(input), floats(std::vector<float>(n, -1.0f))};
  const int64_t sizes[] = {n};
  WatchThreads watch;
  ir::interpret(kernel, sizes, arguments, watch);
  return values_of(arguments[1]);
}

void expect_breach(std::string_view body, int64_t n, std::string_view message) {
  expect_error([&] { run(body, n); }, ErrorKind::Internal,
               "internal error: " + std::string(message));
}

TEST(Interpret, LoopsAndConditions) {
  EXPECT_EQ(run("for i in 0..n { if i < 2 { B[i] = A[i]*2.0 } else { B[i] = A[i - 1] } }", 4),
            (std::vector<float>{2, 4, 2, 3}));
}

TEST(Interpret, SumsOfProducts) {
  EXPECT_EQ(run("B[0] = dot(1.0, A[ramp(0, 1, 2)], A[ramp(2, 1, 2)]) B[1] = 0.0", 4)[0], 12);
  EXPECT_EQ(run("B[ramp(0, 1, 2)] = dot(broadcast(0.0, 2), A[ramp(0, 1, 2)], A[ramp(0, 1, 4)])", 4),
            (std::vector<float>{5, 11, -1, -1}));
  EXPECT_EQ(run("B[ramp(0, 1, 2)] = dot(broadcast(0.0, 2), A[ramp(0, 1, 4)], A[ramp(0, 1, 4)])", 4),
            (std::vector<float>{5, 25, -1, -1}));
}

TEST(Interpret, RefusesMemoryPastTheEndOfInt64) {
  expect_error(
      [] { run("allocate s: float32[n, 4611686018427387904, 16] scope(global) B[0] = 1.0", 1); },
      ErrorKind::ResourceExhausted,
      "s would have more than 140737488355328 elements; compute it inside the loops that read it "
      "(compute_at, compute_inline), or call the kernel with smaller tensors");
}

TEST(Interpret, MemoryWithANegativeExtentIsEmpty) {
  EXPECT_EQ(run("allocate s: float32[n - 2, 3] scope(global) "
                "for i in 0..n - 2 { s[i, 0] = A[i] } B[0] = A[0]",
                1),
            (std::vector<float>{1}));
}

TEST(Interpret, PrefetchesNameElements) {
  EXPECT_EQ(run("prefetch A[1] B[0] = A[0]", 2)[0], 1);
  expect_breach("prefetch A[n] B[0] = A[0]", 2, "A[2] is outside its shape (2)");
}

TEST(Interpret, ParallelLoopsRunBackwards) {
  EXPECT_EQ(run("B[0] = 0.0 for i in 0..n parallel { B[0] = A[i] }", 3)[0], 1);
}

TEST(Interpret, Vectors) {
  EXPECT_EQ(run("B[ramp(0, 1, 4)] = A[ramp(3, -1, 4)] + broadcast(A[0], 4)", 4),
            (std::vector<float>{5, 4, 3, 2}));
  EXPECT_EQ(run("B[ramp(0, 1, 4) where ramp(0, 1, 4) < broadcast(n, 4)] = "
                "A[ramp(0, 1, 4) where ramp(0, 1, 4) < broadcast(n, 4)]",
                3),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(run("B[0] = reduce_sum(100.0, A[ramp(0, 1, 4)])", 4)[0], 110);
}

TEST(Interpret, AVectorIsReadBeforeItIsWritten) {
  EXPECT_EQ(run("for i in 0..n { B[i] = A[i] } B[ramp(1, 1, 3)] = B[ramp(0, 1, 3)]", 4),
            (std::vector<float>{1, 1, 2, 3}));
}

TEST(Interpret, IfThenElseComputesOneBranch) {
  EXPECT_EQ(run("for i in 0..n { B[i] = if_then_else(1 <= i, A[i - 1], 0.0) }", 3),
            (std::vector<float>{0, 1, 2}));
}

TEST(Interpret, ChecksEveryIndex) {
  expect_breach("B[n] = 1.0", 3, "B[3] is outside its shape (3)");
  expect_breach("B[0] = A[0 - 1]", 3, "A[-1] is outside its shape (3)");
  expect_breach("B[0] = select(1 <= n, A[0], A[n])", 3, "A[3] is outside its shape (3)");
  expect_breach("B[ramp(0, 1, 4)] = broadcast(1.0, 4)", 3, "B[3] is outside its shape (3)");
}

TEST(Interpret, FindsReadsOfWhatWasNeverWritten) {
  expect_breach("B[1] = A[0]  B[0] = B[1] + B[2]", 3,
                "element 2 of B is read before it is written");
  expect_breach(
      "for i in 0..2 { allocate s: float32[1] scope(local) "
      "if i == 0 { s[0] = 1.0 } B[i] = s[0] }",
      3, "element 0 of s is read before it is written");
}

TEST(Interpret, ACheckThatFiresIsTheUsersError) {
  const Error error =
      expect_error([&] { run("for i in 0..5 { check i < n #0 B[i] = 1.0 }", 3); },
                   ErrorKind::InvalidArgument, "index 3 is outside of 0..3 (check #0)");
  EXPECT_EQ(error.reason(), "INDEX_OUT_OF_RANGE");
}

TEST(Interpret, ThreadsRunInStepBetweenBarriers) {
  const char* const body =
      "allocate s: float32[4] scope(shared) for threadIdx.x in 0..4 bind { "
      "s[threadIdx.x] = A[threadIdx.x] BARRIER B[threadIdx.x] = s[3 - threadIdx.x] }";
  std::string with(body);
  with.replace(with.find("BARRIER"), 7, "barrier");
  EXPECT_EQ(run(with, 4), (std::vector<float>{4, 3, 2, 1}));

  std::string without(body);
  without.replace(without.find("BARRIER"), 7, "");
  expect_breach(without, 4, "element 3 of s is read before it is written");
}

TEST(Interpret, WhatIsStoredInTheBackgroundArrivesWhereItIsAwaited) {
  const auto body = [](std::string_view before, std::string_view read) {
    return fmt::format(
        "allocate s: float32[2, 4] scope(shared) for threadIdx.x in 0..4 bind {{ "
        "background {{ s[0, threadIdx.x] = A[threadIdx.x] }} "
        "background {{ s[1, threadIdx.x] = 2.0 }} {} B[threadIdx.x] = s[{}] }}",
        before, read);
  };
  EXPECT_EQ(run(body("await 1 barrier", "0, 3 - threadIdx.x"), 4),
            (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(run(body("await 0", "1, threadIdx.x"), 4), (std::vector<float>{2, 2, 2, 2}));
  expect_breach(body("await 1 barrier", "1, threadIdx.x"), 4,
                "element 4 of s is read before it is written");
  expect_breach(body("barrier", "0, threadIdx.x"), 4,
                "element 0 of s is read before it is written");
  expect_breach(body("await 0", "0, 3 - threadIdx.x"), 4,
                "element 3 of s is read before it is written");
}

TEST(Interpret, BarriersInLoopsOfATwoDimensionalBlock) {
  EXPECT_EQ(run("allocate s: float32[4] scope(shared) "
                "for threadIdx.y in 0..2 bind { for threadIdx.x in 0..2 bind { "
                "allocate r: float32[1] scope(local) r[0] = 0.0 for k in 0..2 { "
                "s[threadIdx.y*2 + threadIdx.x] = A[threadIdx.y*2 + threadIdx.x]*float32(k + 1) "
                "barrier r[0] = r[0] + s[3 - (threadIdx.y*2 + threadIdx.x)] barrier } "
                "B[threadIdx.y*2 + threadIdx.x] = r[0] } }",
                4),
            (std::vector<float>{12, 9, 6, 3}));
}

TEST(Interpret, ABarrierThatNotAllThreadsReach) {
  expect_breach("for threadIdx.x in 0..4 bind { if threadIdx.x < 2 { barrier } }", 4,
                "not all threads reach the barrier under threadIdx.x < 2");
}

TEST(Interpret, AThreadThatDoesNotWaitForAStore) {
  const char* const body =
      "for blockIdx.x in 0..1 bind { allocate s: float32[4] scope(shared) "
      "for threadIdx.x in 0..4 bind { s[threadIdx.x] = A[threadIdx.x] } "
      "for threadIdx.x in 0..4 bind { BARRIER B[threadIdx.x] = s[3 - threadIdx.x] } }";
  std::string with(body);
  with.replace(with.find("BARRIER"), 7, "barrier");
  EXPECT_EQ(run(with, 4), (std::vector<float>{4, 3, 2, 1}));

  std::string without(body);
  without.replace(without.find("BARRIER"), 7, "");
  expect_breach(without, 4,
                "element 3 of s is read by a GPU thread that did not wait for the store to it");
}

TEST(Interpret, AThreadThatOverwritesWhatAnotherOneMayStillRead) {
  expect_breach(
      "allocate s: float32[4] scope(shared) "
      "for threadIdx.x in 0..4 bind { s[threadIdx.x] = A[threadIdx.x] "
      "barrier B[threadIdx.x] = s[3 - threadIdx.x] s[threadIdx.x] = 0.0 }",
      4, "element 0 of s is stored to by a GPU thread while another one may use it");
}

TEST(Interpret, BlocksOfOneLaunchThatMeet) {
  expect_breach("for blockIdx.x in 0..4 bind { B[0] = A[blockIdx.x] }", 4,
                "element 0 of B is stored to by a GPU thread while another one may use it");
  expect_breach(
      "for blockIdx.x in 0..4 bind { B[blockIdx.x] = A[blockIdx.x] "
      "if 0 < blockIdx.x { B[blockIdx.x] = B[blockIdx.x - 1] } }",
      4, "element 0 of B is read by a GPU thread that did not wait for the store to it");
}

TEST(Interpret, LaunchesSeeWhatThoseBeforeThemStored) {
  EXPECT_EQ(run("allocate s: float32[4] scope(global) "
                "for blockIdx.x in 0..4 bind { s[blockIdx.x] = A[blockIdx.x] } "
                "for blockIdx.x in 0..4 bind { B[blockIdx.x] = s[3 - blockIdx.x] } "
                "for blockIdx.x in 0..4 bind { s[3 - blockIdx.x] = 0.0 }",
                4),
            (std::vector<float>{4, 3, 2, 1}));
}

TEST(Interpret, ShufflesTakeWhatAThreadBehindHas) {
  EXPECT_EQ(run("for threadIdx.x in 0..4 bind { allocate r: float32[1] scope(local) "
                "shuffle 1 of 2: r[0] = A[threadIdx.x] B[threadIdx.x] = r[0] }",
                4),
            (std::vector<float>{2, 2, 4, 4}));
  EXPECT_EQ(run("for threadIdx.y in 0..2 bind { for threadIdx.x in 0..2 bind { "
                "allocate r: float32[1] scope(local) "
                "shuffle 1 of 2: r[0] = A[threadIdx.y*2 + threadIdx.x] "
                "B[threadIdx.y*2 + threadIdx.x] = r[0] } }",
                4),
            (std::vector<float>{2, 2, 4, 4}));
}

TEST(Interpret, ShufflesTakeWhatALaneHas) {
  EXPECT_EQ(run("for threadIdx.x in 0..4 bind { allocate r: float32[1] scope(local) "
                "shuffle lane 3 - threadIdx.x of 4: r[0] = A[threadIdx.x] "
                "B[threadIdx.x] = r[0] }",
                4),
            (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(run("for threadIdx.x in 0..4 bind { allocate r: float32[1] scope(local) "
                "shuffle lane threadIdx.x + 1 of 2: r[0] = A[threadIdx.x] "
                "B[threadIdx.x] = r[0] }",
                4),
            (std::vector<float>{2, 1, 4, 3}));
}

TEST(Interpret, UpdatesInOnePieceMeetEachOtherAndNothingElse) {
  const std::string threads =
      "allocate s: float32[1] scope(shared) for threadIdx.x in 0..4 bind { "
      "if threadIdx.x == 0 { s[0] = 0.0 } barrier atomic add: s[0] = A[threadIdx.x] ";
  EXPECT_EQ(run(threads + "barrier B[threadIdx.x] = s[0] }", 4),
            (std::vector<float>{10, 10, 10, 10}));
  EXPECT_EQ(
      run("B[0] = 0.0 for blockIdx.x in 0..4 bind { atomic max: B[0] = A[blockIdx.x] }", 4)[0], 4);
  expect_breach(threads + "B[threadIdx.x] = s[0] }", 4,
                "element 0 of s is read by a GPU thread that did not wait for the store to it");
  expect_breach(threads + "if threadIdx.x == 3 { s[0] = 0.0 } }", 4,
                "element 0 of s is stored to by a GPU thread while another one may use it");
  expect_breach(
      "B[0] = 0.0 for blockIdx.x in 0..4 bind { atomic add: B[0] = 1.0 "
      "if blockIdx.x == 3 { B[1] = B[0] } }",
      4, "element 0 of B is read by a GPU thread that did not wait for the store to it");
}

/// Nobody sees who of them did it.
TEST(Interpret, ThreadsThatAllStoreTheSameValue) {
  EXPECT_EQ(run("allocate s: float32[1] scope(shared) "
                "for threadIdx.x in 0..4 bind { s[0] = A[3] B[threadIdx.x] = s[0] }",
                4),
            (std::vector<float>{4, 4, 4, 4}));
}

/// Notes the NaN it is told of, and throws to stop.
class WatchNan : public ir::InterpretWatch {
 public:
  struct Found {
    std::string buffer;
    std::vector<int64_t> indices;
    bool given;
  };
  bool wants_nan() const override { return true; }
  void found_nan(const ir::Buffer& buffer, const std::vector<int64_t>& indices,
                 bool given) override {
    throw Found{buffer.name, indices, given};
  }
};

WatchNan::Found nan_of(std::string_view body, const std::vector<float>& a) {
  const ir::Kernel kernel = parse_kernel("A: float32[n], B: float32[n] output", body);
  const int64_t sizes[] = {static_cast<int64_t>(a.size())};
  std::vector<HostTensor> arguments = {floats(a), floats(std::vector<float>(a.size()))};
  WatchNan watch;
  try {
    ir::interpret(kernel, sizes, arguments, watch);
  } catch (const WatchNan::Found& found) {
    return found;
  }
  return {"none", {}, false};
}

TEST(Interpret, TellsOfTheFirstNan) {
  const char* const twice =
      "allocate E: float32[n] scope(global) { for i in 0..n { E[i] = A[i]/A[i] } "
      "for i in 0..n { B[i] = E[i] } }";
  const WatchNan::Found made = nan_of(twice, {1, 0, 0});
  EXPECT_EQ(made.buffer, "E");
  EXPECT_EQ(made.indices, (std::vector<int64_t>{1}));
  EXPECT_FALSE(made.given);
  EXPECT_EQ(nan_of(twice, {1, 2, 3}).buffer, "none");

  const WatchNan::Found given = nan_of(twice, {1, 0, std::nanf("")});
  EXPECT_EQ(given.buffer, "A");
  EXPECT_EQ(given.indices, (std::vector<int64_t>{2}));
  EXPECT_TRUE(given.given);
}

/// Cancels after so many iterations.
class CancelLater : public ir::InterpretWatch {
 public:
  bool is_cancelled() const override { return --left_ < 0; }

 private:
  mutable int left_ = 100;
};

TEST(Interpret, EndsSoonAfterItIsCancelled) {
  const ir::Kernel kernel = parse_kernel("A: float32[n], B: float32[n] output",
                                         "for t in 0..1000000000000 { B[0] = A[0] }");
  const int64_t sizes[] = {1};
  std::vector<HostTensor> arguments = {floats({1}), floats({0})};
  CancelLater watch;
  EXPECT_FALSE(ir::interpret(kernel, sizes, arguments, watch));
}

TEST(Interpret, ARampPastTheEndOfInt64IsOutside) {
  expect_breach("B[0] = dot(0.0, A[ramp(9223372036854775807, 1, 2)], A[ramp(0, 1, 2)])", 4,
                "A[9223372036854775807] is outside its shape (4)");
  expect_breach("B[ramp(1, 9223372036854775807, 3)] = broadcast(1.0, 3)", 4,
                "B[-9223372036854775808] is outside its shape (4)");
}

TEST(Interpret, AnArgumentWithoutElementsMayHaveAnyOtherExtents) {
  const ir::Kernel kernel = ir::parse(
      "fn f(A: float32[m, n, n] strides[s0, s1, s2], B: float32[1] strides[s3]) { "
      "for i in 0..m { B[0] = A[i*s0] } }");
  const int64_t large = int64_t{1} << 40;
  HostTensor a{DType::Float32, {0, large, large}, {}};
  std::vector<HostTensor> arguments = {a, floats({7})};
  const int64_t sizes[] = {0, large};
  ir::interpret(kernel, sizes, arguments);
  EXPECT_EQ(values_of(arguments[1]), std::vector<float>{7});
}

TEST(Interpret, FlattenedIndicesWithStrides) {
  const ir::Kernel kernel = ir::parse(
      "fn f(A: float32[m, n] strides[s0, s1], B: float32[n] strides[s2]) { "
      "for j in 0..n { B[j*s2] = A[(m - 1)*s0 + j*s1] } }");
  HostTensor a = floats({1, 2, 3, 4, 5, 6});
  a.shape = {2, 3};
  std::vector<HostTensor> arguments = {a, floats({0, 0, 0})};
  const int64_t sizes[] = {2, 3};
  ir::interpret(kernel, sizes, arguments);
  EXPECT_EQ(values_of(arguments[1]), (std::vector<float>{4, 5, 6}));
}

}  // namespace
}  // namespace kiln::testing
