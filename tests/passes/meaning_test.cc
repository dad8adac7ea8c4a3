#include <cstring>
#include <map>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/mutator.h"
#include "compiler/lower.h"
#include "tests/passes/pass_test.h"
#include "tests/support/tensors.h"

namespace kiln::testing {
namespace {

struct Example {
  const char* name;
  const char* text;
  std::vector<int64_t> sizes;
};

/// Loops as build_loops makes them, each awkward for some pass. Numbers are small integers, so that
/// any order of additions gives the same bits.
const Example kExamples[] = {
    {"ElementWise",
     R"(fn f(A: float32[n], B: float32[n]) {
       for i in 0..floordiv(n + 7, 8) parallel { for j in 0..8 vectorize {
         if likely(i*8 + j < n) { B[i*8 + j] = A[i*8 + j]*2.0 } } } })",
     {37}},
    {"Scan",
     R"(fn f(X: float32[m, n], S: float32[m, n]) {
       for b in 0..floordiv(n + 15, 16) bind(blockIdx.x) { for t in 0..16 bind(threadIdx.x) {
         if likely(b*16 + t < n) { S[0, b*16 + t] = X[0, b*16 + t] }
         for i in 0..m - 1 { if likely(b*16 + t < n) {
           S[i + 1, b*16 + t] = S[i, b*16 + t] + X[i + 1, b*16 + t] } } } } })",
     {5, 41}},
    {"ScanOfRows",
     R"(fn f(X: float32[n, 70], Y: float32[n, 70], S: float32[n, 70]) {
       for b in 0..floordiv(n + 7, 8) bind(blockIdx.x) { for t in 0..8 bind(threadIdx.x) {
         if likely(b*8 + t < n) { S[b*8 + t, 0] = X[b*8 + t, 0] }
         for k in 0..69 { if likely(b*8 + t < n) {
           S[b*8 + t, k + 1] = S[b*8 + t, k]*0.5 + X[b*8 + t, k + 1] - Y[b*8 + t, k + 1] } } } } })",
     {13}},
    {"LongThreads",
     R"(fn f(X: float32[m, n], S: float32[m, n]) {
       for b in 0..floordiv(n + 99, 100) bind(blockIdx.x) { for t in 0..100 bind(threadIdx.x) {
         for i in 0..m { if likely(b*100 + t < n) { S[i, b*100 + t] = X[i, b*100 + t] + 1.0 } } } } })",
     {3, 141}},
    {"MatmulTiles",
     R"(fn f(A: float32[n, m], B: float32[m, n], C: float32[n, n]) {
       for io in 0..floordiv(n + 3, 4) parallel { for jo in 0..floordiv(n + 7, 8) parallel {
         for ii in 0..4 unroll { if likely(io*4 + ii < n) { for ji in 0..8 vectorize {
           if likely(jo*8 + ji < n) { C[io*4 + ii, jo*8 + ji] = 0.0 } } } }
         for k in 0..m { for ii in 0..4 unroll { if likely(io*4 + ii < n) {
           for ji in 0..8 vectorize { if likely(jo*8 + ji < n) {
             C[io*4 + ii, jo*8 + ji] =
               C[io*4 + ii, jo*8 + ji] + A[io*4 + ii, k]*B[k, jo*8 + ji] } } } } } } } })",
     {13, 6}},
    {"BoundMatmul",
     R"(fn f(A: float32[n, m], B: float32[m, n], C: float32[n, n]) {
       for by in 0..floordiv(n + 3, 4) bind(blockIdx.y) { for bx in 0..floordiv(n + 7, 8) bind(blockIdx.x) {
         for ty in 0..4 bind(threadIdx.y) { for tx in 0..8 bind(threadIdx.x) {
           if likely(by*4 + ty < n) { if likely(bx*8 + tx < n) {
             C[by*4 + ty, bx*8 + tx] = 0.0
             for k in 0..m { C[by*4 + ty, bx*8 + tx] =
               C[by*4 + ty, bx*8 + tx] + A[by*4 + ty, k]*B[k, bx*8 + tx] } } } } } } } })",
     {13, 5}},
    {"ReductionInVectors",
     R"(fn f(A: float32[n, m], C: float32[n]) {
       for i in 0..n parallel { C[i] = 0.0
         for o in 0..floordiv(m + 15, 16) { for k in 0..16 vectorize {
           if likely(o*16 + k < m) { C[i] = C[i] + A[i, o*16 + k] } } } } })",
     {3, 39}},
    {"MaximumInVectors",
     R"(fn f(A: float32[n], C: float32[1]) { C[0] = A[0]
       for o in 0..floordiv(n + 7, 8) { for k in 0..8 vectorize { if likely(o*8 + k < n) {
         C[0] = max(C[0], A[o*8 + k]) } } } })",
     {21}},
    {"OuterVector",
     R"(fn f(A: float32[m, n], C: float32[n]) {
       for o in 0..floordiv(n + 7, 8) { for i in 0..8 vectorize { if likely(o*8 + i < n) {
         C[o*8 + i] = 0.0  for k in 0..m { C[o*8 + i] = C[o*8 + i] + A[k, o*8 + i]*A[k, 0] } } } } })",
     {4, 19}},
    {"Padding",
     R"(fn f(A: float32[n], C: float32[n + 2]) { for i in 0..n + 2 parallel {
         C[i] = if_then_else(1 <= i && i < n + 1, A[i - 1], 0.0) } })",
     {9}},
    {"PaddingInVectors",
     R"(fn f(A: float32[10], C: float32[12]) { for i in 0..12 vectorize {
         C[i] = if_then_else(1 <= i && i < 11, A[i - 1]*A[0], 0.0) } })",
     {}},
    {"BufferInVectors",
     R"(fn f(A: float32[4, 8], C: float32[8]) { for i in 0..8 vectorize {
         allocate t: float32[2] scope(global)  t[0] = 0.0  t[1] = 1.0
         for k in 0..4 { t[0] = t[0] + A[k, i]  t[1] = max(t[1], A[k, i]) }
         C[i] = t[0] - t[1] } })",
     {}},
    {"Workspace",
     R"(fn f(A: float32[n, m], C: float32[n, m]) { for i in 0..n parallel {
         allocate s: float32[m] scope(global)
         for j in 0..m { s[j] = A[i, j]*3.0 }  for k in 0..m { C[i, k] = s[m - 1 - k] } } })",
     {4, 7}},
    {"LastIteration",
     R"(fn f(A: float32[n, 8], C: float32[n]) { for i in 0..n {
         for j in 0..8 vectorize { C[i] = A[i, j] } } })",
     {3}},
    {"FusedIndex",
     R"(fn f(A: float32[n, 5], C: float32[n, 5]) {
       for o in 0..floordiv(n*5 + 7, 8) { for i in 0..8 vectorize { if likely(o*8 + i < n*5) {
         C[floordiv(o*8 + i, 5), floormod(o*8 + i, 5)] =
           A[floordiv(o*8 + i, 5), floormod(o*8 + i, 5)] + 1.0 } } } })",
     {7}},
    {"RecurrenceMarkedVector",
     R"(fn f(A: float32[9], C: float32[9]) { C[0] = 0.0
       for i in 0..8 vectorize { C[i + 1] = C[i] + A[i] } })",
     {}},
    {"SharedMemory",
     R"(fn f(A: float32[n, 16], C: float32[n, 16]) { for b in 0..n bind(blockIdx.x) {
         allocate s: float32[16] scope(global)
         for t in 0..16 bind(threadIdx.x) { s[t] = A[b, t] }
         for u in 0..16 bind(threadIdx.x) { C[b, u] = s[15 - u] } } })",
     {3}},
    {"FilledByThreads",
     R"(fn f(A: float32[n, 16], C: float32[n, 16]) { for b in 0..n bind(blockIdx.x) {
         allocate s: float32[4, 4] scope(shared)
         for y in 0..4 bind(threadIdx.y) { for t in 0..8 bind(threadIdx.x) {
           allocate c: float32[1] scope(local)
           c[0] = 0.0
           for k in 0..4 {
             for u in 0..4 bind(threadIdx.y) { for v in 0..4 bind(threadIdx.x) {
               s[u, v] = A[b, u*4 + v]*2.0 } }
             if t < 4 { c[0] = c[0] + s[k, 3 - t] } }
           if t < 4 { C[b, y*4 + t] = c[0] } } } } })",
     {3}},
    {"Gather",
     R"(fn f(A: float32[n], I: int64[n], C: float32[n]) {
       for o in 0..floordiv(n + 3, 4) { for i in 0..4 vectorize { if likely(o*4 + i < n) {
         C[o*4 + i] = A[floormod(I[o*4 + i], n)] } } } })",
     {10}},
    {"NestedUnroll",
     R"(fn f(A: float32[6, 4], C: float32[6, 4]) { for i in 0..3 unroll {
         for j in 0..2 unroll { for k in 0..4 vectorize { C[i*2 + j, k] = A[i*2 + j, k] - 1.0 } } } })",
     {}},
    {"Empty",
     R"(fn f(A: float32[n], B: float32[n]) {
       for i in 0..floordiv(n + 7, 8) parallel { for j in 0..8 vectorize {
         if likely(i*8 + j < n) { B[i*8 + j] = A[i*8 + j]*2.0 } } } })",
     {0}},
};

std::vector<HostTensor> arguments_of(const ir::Kernel& kernel, const std::vector<int64_t>& sizes) {
  ir::Substitution values;
  for (size_t i = 0; i < sizes.size(); ++i) {
    values.emplace(kernel.sizes[i], ir::IntImm::make(ir::kIndexType, sizes[i]));
  }
  std::vector<HostTensor> arguments;
  for (const ir::BufferRef& parameter : kernel.parameters) {
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : parameter->shape) {
      shape.push_back(*ir::as_const_int(analysis::simplify(ir::substitute(extent, values))));
    }
    HostTensor tensor = zeros(parameter->type, shape);
    const auto count = static_cast<size_t>(element_count(shape));
    for (size_t i = 0; i < count; ++i) {
      const auto value = static_cast<int>((i * 7 + 3) % 11);
      if (parameter->type == DType::Float32) {
        const auto number = static_cast<float>(value - 4);
        std::memcpy(tensor.bytes.data() + i * 4, &number, 4);
      } else {
        const int64_t number = value;
        std::memcpy(tensor.bytes.data() + i * 8, &number, 8);
      }
    }
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

/// Interprets the kernel after each pass and compares with the loops as they were written.
class SameNumbers : public LoweringObserver {
 public:
  SameNumbers(const ir::Kernel& kernel, const std::vector<int64_t>& sizes)
      : sizes_(sizes), inputs_(arguments_of(kernel, sizes)), wanted_(inputs_) {
    ir::interpret(kernel, sizes_, wanted_);  // without barriers, as they were written
  }

  void after(std::string_view pass, ir::Kernel& kernel) override {
    ++passes;
    std::vector<HostTensor> tensors = inputs_;
    try {
      watch_.has_barriers = watch_.has_barriers || pass == "insert_barriers";
      ir::interpret(kernel, sizes_, tensors, watch_);
    } catch (const Error& error) {
      ADD_FAILURE() << "after " << pass << ": " << error.message() << "\n" << ir::print(kernel);
      return;
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(tensors[i].bytes == wanted_[i].bytes)
          << "argument " << i << " differs after " << pass << "\n"
          << ir::print(kernel);
    }
    const std::string text = ir::print(kernel);
    EXPECT_TRUE(ir::equal_kernels(ir::parse(text), kernel))
        << "the text is read as another kernel\n"
        << text;
  }

  int passes = 0;

 private:
  /// From insert_barriers on, threads must wait where they need to.
  struct Watch : ir::InterpretWatch {
    bool wants_races() const override { return has_barriers; }
    bool has_barriers = false;
  };
  Watch watch_;
  const std::vector<int64_t>& sizes_;
  std::vector<HostTensor> inputs_;
  std::vector<HostTensor> wanted_;
};

class Meaning : public ::testing::TestWithParam<Example> {
 protected:
  void expect_same_numbers(TargetKind target, Layout layout) {
    const Example& example = GetParam();
    const ir::Kernel kernel = ir::parse(example.text);
    SameNumbers observer(kernel, example.sizes);
    run_passes(kernel, Target{target, ""}, CompileOptions{}, layout, observer);
    EXPECT_GT(observer.passes, 8);
  }
};

TEST_P(Meaning, StaysAfterEachPassForLlvm) {
  expect_same_numbers(TargetKind::Llvm, Layout::Compact);
}
TEST_P(Meaning, StaysWithStrides) { expect_same_numbers(TargetKind::Llvm, Layout::Strided); }
TEST_P(Meaning, StaysAfterEachPassForCuda) {
  expect_same_numbers(TargetKind::Cuda, Layout::Compact);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Meaning, ::testing::ValuesIn(kExamples),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kiln::testing
