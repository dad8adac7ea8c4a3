#include "compiler/codegen/cuda_source.h"

#include <algorithm>
#include <iterator>
#include <regex>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/codegen/cuda_expr.h"
#include "compiler/codegen/cuda_prelude.h"
#include "compiler/codegen/nvrtc.h"
#include "compiler/ir/build.h"
#include "compiler/ir/parse.h"
#include "compiler/lower.h"
#include "tests/support/cuda_text.h"
#include "tests/support/golden.h"
#include "tests/support/needs_nvrtc.h"

namespace kiln::codegen {
namespace {

using testing::expect_golden;

ir::Kernel lowered(std::string_view loops, Layout layout = Layout::Compact) {
  LoweringObserver observer;
  return run_passes(ir::parse(loops), Target{TargetKind::Cuda, "sm_90"}, CompileOptions{}, layout,
                    observer);
}

/// As build_loops makes them of the tutorial's cumulative sum and of an addition, both bound.
constexpr const char* kScan = R"(fn myscan(X: float32[m, n], s_scan: float32[m, n]) {
  for b in 0..floordiv(n + 255, 256) bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
    if likely(b*256 + t < n) { s_scan[0, b*256 + t] = X[0, b*256 + t] }
    for scan.idx in 0..m - 1 { if likely(b*256 + t < n) {
      s_scan[scan.idx + 1, b*256 + t] =
        s_scan[scan.idx, b*256 + t] + X[scan.idx + 1, b*256 + t] } } } } })";
constexpr const char* kAdd = R"(fn myadd(A: float32[n], B: float32[n], C: float32[n]) {
  for b in 0..floordiv(n + 63, 64) bind(blockIdx.x) { for t in 0..64 bind(threadIdx.x) {
    if likely(b*64 + t < n) { C[b*64 + t] = A[b*64 + t] + B[b*64 + t] } } } })";
constexpr const char* kReverse = R"(fn flip(A: float32[n, 32], C: float32[n, 32]) {
  for b in 0..n bind(blockIdx.x) {
    allocate s: float32[32] scope(global)
    for t in 0..32 bind(threadIdx.x) { s[t] = A[b, t] }
    for u in 0..32 bind(threadIdx.x) { C[b, u] = s[31 - u] } } })";
constexpr const char* kGather = R"(fn take(A: float32[n], I: int64[m], C: float32[m]) {
  for b in 0..m bind(blockIdx.x) { check I[b] < n #0  C[b] = A[I[b]] } }
  #0: stage 2, tensor 0, dimension 0)";
constexpr const char* kTwoStages = R"(fn two(A: float32[n], C: float32[n]) {
  allocate s: float32[n] scope(global)
  for b in 0..n bind(blockIdx.x) { s[b] = A[b]*2.0 }
  for c in 0..n bind(blockIdx.x) { C[c] = s[n - 1 - c] } })";

void expect_source(const std::string& golden, std::string_view loops,
                   Layout layout = Layout::Compact) {
  const ir::Kernel kernel = lowered(loops, layout);
  expect_golden(golden, cuda_text(kernel, nullptr));
}

TEST(CudaSource, Scan) { expect_source("cuda_scan.cu", kScan); }
TEST(CudaSource, ScanOfStridedArguments) {
  expect_source("cuda_scan_strided.cu", kScan, Layout::Strided);
}
TEST(CudaSource, ElementWise) { expect_source("cuda_add.cu", kAdd); }
TEST(CudaSource, SharedMemoryAndABarrier) { expect_source("cuda_reverse.cu", kReverse); }
TEST(CudaSource, ChecksWhatCouldNotBeProved) { expect_source("cuda_gather.cu", kGather); }
TEST(CudaSource, ALaunchForEachNestAndAWorkspaceBetween) {
  expect_source("cuda_two_stages.cu", kTwoStages);
}

/// Of float32 alone, and with the exponent of the smallest number that is not subnormal.
TEST(CudaSource, FlushesPowersInOneInstruction) {
  const auto count = [](std::string_view value) {
    const std::string text =
        cuda_text(lowered(fmt::format(R"(fn f(A: float32[32], B: float32[32], C: float32[32]) {{
    for b in 0..32 bind(blockIdx.x) {{ C[b] = {} }} }})",
                                      value)),
                  nullptr);
    const size_t code = text.find("extern");
    return testing::count_in(text.substr(code), "kiln_flushed_power(");
  };
  EXPECT_EQ(count("select(fma(A[b], 2.0, B[b]) < -126.0, 0.0, exp2(fma(A[b], 2.0, B[b])))"), 1U);
  EXPECT_EQ(count("select(A[b] < -126.0, 0.0, exp2(B[b]))"), 0U);
  EXPECT_EQ(count("select(A[b] < -125.0, 0.0, exp2(A[b]))"), 0U);
  EXPECT_EQ(count("select(A[b] < -126.0, 1.0, exp2(A[b]))"), 0U);
  EXPECT_EQ(count("exp2(A[b])"), 0U);
}

/// Which nobody else changes meanwhile, unless threads hand something on in them.
TEST(CudaSource, RestrictsPointersOfWhatALaunchOnlyReadsOrOnlyWrites) {
  const std::string text = cuda_text(lowered(R"(fn f(A: float32[32], S: float32[32], C: float32[32],
                                                       H: int32[32]) {
    for b in 0..1 bind(blockIdx.x) { for t in 0..32 bind(threadIdx.x) { S[t] = A[t] } }
    for b in 0..32 bind(blockIdx.x) { C[b] = S[31 - b]  atomic add: H[0] = 1 }
    for b in 0..1 bind(blockIdx.x) { for t in 0..32 bind(threadIdx.x) {
      S[t] = A[t]
      C[t] = S[31 - t] } } })"),
                                     nullptr);
  const auto has = [&](const std::string& parameters) {
    EXPECT_NE(text.find(parameters), std::string::npos) << parameters << "\n" << text;
  };
  has("compact_0(const float* __restrict__ A, float* __restrict__ S, ");
  has("compact_1(const float* __restrict__ A, float* __restrict__ S, float* __restrict__ C, int* "
      "H, ");
  has("compact_2(const float* __restrict__ A, float* S, float* __restrict__ C, ");
}

TEST(CudaSource, LaunchesThatTheHostRepeatsAreGivenTheStep) {
  const ir::Kernel kernel = lowered(R"(fn f(S: float32[m, n], R: float32[m, n]) {
    for b in 0..n bind(blockIdx.x) { S[0, b] = 1.0 }
    for t in 0..m - 1 {
      for b in 0..n bind(blockIdx.x) { S[t + 1, b] = S[t, n - 1 - b] }
      for b in 0..n bind(blockIdx.x) { R[t, b] = S[t + 1, b] } } })");
  expect_golden("cuda_host_loop.cu", cuda_text(kernel, nullptr));
  const CudaEntry entry{"k", &kernel};
  const CudaSource source = cuda_source({&entry, 1});
  EXPECT_EQ(source.launches[0].size(), 3u);
  ASSERT_EQ(source.loops[0].size(), 1u);
  EXPECT_EQ(source.loops[0][0].first, 1);
  EXPECT_EQ(source.loops[0][0].end, 3);
  EXPECT_EQ(source.loops[0][0].count.evaluate(std::vector<int64_t>{7, 5, 5, 1, 5, 1}), 6);
}

/// Those of a loop that is written out.
TEST(CudaSource, GivesCopiesOfAnAllocationAScopeEach) {
  const std::string text = cuda_text(lowered(R"(fn f(A: float32[8], C: float32[8]) {
    for b in 0..4 bind(blockIdx.x) { for i in 0..2 unroll {
      allocate t: float32[2] scope(local)
      for k in 0..2000 unroll { t[0] = A[b*2 + i]*3.0  t[1] = t[0] }
      C[b*2 + i] = t[0] + t[1] } } })"),
                                     nullptr);
  const std::regex scope(R"(\{\n +(__shared__ )?float t\[2\];\n)");
  EXPECT_EQ(std::distance(std::sregex_iterator(text.begin(), text.end(), scope), {}), 2) << text;
}

TEST(CudaSource, LeavesLoopsToBeUnrolledToNvrtc) {
  const std::string text = cuda_text(lowered(R"(fn f(A: float32[n, 4], C: float32[n]) {
    for b in 0..n bind(blockIdx.x) {
      allocate c: float32[4] scope(local)
      for k in 0..4 unroll { c[k] = A[b, k] }
      C[b] = c[0] + c[3] } })"),
                                     nullptr);
  EXPECT_NE(text.find("#pragma unroll\n  for (int k = 0; k < 4; ++k) {\n    c[k] = "),
            std::string::npos)
      << text;
}

TEST(CudaSource, DividesByNumbersAsCDoes) {
  const std::string text = cuda_text(lowered(R"(fn f(A: int32[n, 8], C: int32[n, 8]) {
    for b in 0..n bind(blockIdx.x) { for t in 0..64 bind(threadIdx.x) {
      C[b, floormod(t, 8)] = truncdiv(A[b, floordiv(t, 8)], 3) + truncdiv(A[b, 0], -1) } } })"),
                                     nullptr);
  EXPECT_NE(text.find("(unsigned)threadIdx_x / 8u"), std::string::npos) << text;
  EXPECT_NE(text.find("(unsigned)threadIdx_x % 8u"), std::string::npos) << text;
  EXPECT_NE(text.find(" / 3"), std::string::npos) << text;
  // The quotient of the least number and -1 is out of its range.
  EXPECT_NE(text.find("kiln_truncdiv<int>("), std::string::npos) << text;
}

/// By what the call brings; of those that a loop changes, each is another one.
TEST(CudaSource, DividesOnceWhereTheResultIsTheSame) {
  const std::string text =
      cuda_text(lowered(R"(fn f(A: float32[m, n], C: float32[n, m], D: float32[p, q]) {
    for b in 0..m*n bind(blockIdx.x) {
      C[floormod(b, n), floordiv(b, n)] = A[floordiv(b, n), floormod(b, n)]
      for k in 0..q { D[b, k] = A[floordiv(b, n), floormod(k, n)] } } })"),
                nullptr);
  const std::string one = text.substr(text.find("kiln_narrow_0"),
                                      text.find("kiln_compact_0") - text.find("kiln_narrow_0"));
  const std::regex division("kiln_trunc(div|mod)<");
  EXPECT_EQ(std::distance(std::sregex_iterator(one.begin(), one.end(), division), {}), 3) << one;
  EXPECT_NE(one.find("  const int quotient = "), std::string::npos) << one;
  EXPECT_NE(one.find("A[quotient * n + (int)kiln_truncmod<unsigned>((unsigned)k, (unsigned)n)]"),
            std::string::npos)
      << one;
}

TEST(CudaSource, GivesGridAndBlockAsExpressionsOverTheSizes) {
  const ir::Kernel kernel = lowered(kScan);
  const CudaEntry entry{"k", &kernel};
  const CudaSource source = cuda_source({&entry, 1});
  ASSERT_EQ(source.launches.size(), 1u);
  ASSERT_EQ(source.launches[0].size(), 1u);
  const Launch& launch = source.launches[0][0];
  EXPECT_EQ(launch.entry, "k_0");
  const std::vector<int64_t> scalars = {10, 1000, 1000, 1, 1000, 1};  // m, n, then strides
  EXPECT_EQ(launch.grid[0].evaluate(scalars), 4);
  EXPECT_EQ(launch.grid[1].evaluate(scalars), 1);
  EXPECT_EQ(launch.block[0].evaluate(scalars), 256);
}

TEST(CudaSource, BoundsTheRegistersOfABlockWhoseSizeTheCallDecides) {
  const auto bounds = [](const char* axes) {
    const std::string text = cuda_text(
        lowered(fmt::format("fn f(A: float32[n, m]) {{ {} {{ A[i, j] = 0.0 }} }} }}", axes)),
        nullptr);
    const size_t at = text.find("__launch_bounds__(");
    return at == std::string::npos ? text : text.substr(at, text.find(')', at) + 1 - at);
  };
  EXPECT_EQ(bounds("for i in 0..n bind(blockIdx.x) { for j in 0..m bind(threadIdx.x)"),
            "__launch_bounds__(1024)");
  EXPECT_EQ(bounds("for i in 0..n bind(threadIdx.y) { for j in 0..32 bind(threadIdx.x)"),
            "__launch_bounds__(1024)");
  EXPECT_EQ(bounds("for i in 0..8 bind(threadIdx.y) { for j in 0..32 bind(threadIdx.x)"),
            "__launch_bounds__(256)");
}

/// Which a thread that loads in a loop makes of, unless others have them.
TEST(CudaSource, GivesTheRegistersOfAMultiprocessorToFewThreads) {
  const auto bounds = [](int64_t blocks, std::string_view body, int64_t multiprocessors) {
    const std::string text =
        cuda_text(lowered(fmt::format(
                      "fn f(A: float32[8, {0}, 512], B: float32[{0}, 512]) {{"
                      " for i in 0..{0} bind(blockIdx.x) {{ for j in 0..512 bind(threadIdx.x) "
                      "{{ {1} }} }} }}",
                      blocks, body)),
                  nullptr, {.multiprocessors = multiprocessors});
    const size_t at = text.find("__launch_bounds__(");
    return at == std::string::npos ? text : text.substr(at, text.find(')', at) + 1 - at);
  };
  constexpr std::string_view kSum = "for k in 0..8 { B[i, j] = B[i, j] + A[k, i, j] }";
  EXPECT_EQ(bounds(128, kSum, 132), "__launch_bounds__(512, 2)");
  EXPECT_EQ(bounds(264, kSum, 132), "__launch_bounds__(512, 2)");
  EXPECT_EQ(bounds(265, kSum, 132), "__launch_bounds__(512)");
  EXPECT_EQ(bounds(128, kSum, 0), "__launch_bounds__(512)");
  EXPECT_EQ(bounds(128, "B[i, j] = A[0, i, j]", 132), "__launch_bounds__(512)");
}

TEST(CudaSource, ComputesSmallFloatsInFloat) {
  expect_source("cuda_half.cu", R"(fn half(A: float16[n], B: bfloat16[n], C: float16[n]) {
    for b in 0..floordiv(n + 63, 64) bind(blockIdx.x) { for t in 0..64 bind(threadIdx.x) {
      if likely(b*64 + t < n) {
        C[b*64 + t] = max(A[b*64 + t]*1.5, 0.0) + float16(B[b*64 + t]) } } } })");
}

TEST(CudaPrelude, HoldsOnlyWhatIsCalledAndWhatThatCalls) {
  EXPECT_EQ(cuda_prelude("x = y;"), "");
  EXPECT_EQ(cuda_prelude("kiln_floordiv_float<float>(a, b)").find("kiln_floordiv("),
            std::string::npos);
  const std::string text = cuda_prelude("kiln_fire(fault, 0, i, n);");
  EXPECT_LT(text.find("struct KilnFault {"), text.find("void kiln_fire("));
  EXPECT_NE(text.find("void kiln_fire("), std::string::npos);
}

/// Tests that really compile.
class CudaArtifact : public testing::NeedsNvrtc<> {};

TEST_F(CudaArtifact, HasCodeAndLaunchesForBothLayouts) {
  const ir::Kernel compact = lowered(kScan);
  const ir::Kernel strided = lowered(kScan, Layout::Strided);
  const Artifact artifact = make_cuda_artifact(compact, &strided, {"sm_90"});
  EXPECT_EQ(artifact.target, TargetKind::Cuda);
  EXPECT_EQ(artifact.arch, "sm_90");
  EXPECT_EQ(artifact.code.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_NE(artifact.ptx.find(".entry kiln_strided_0"), std::string::npos);
  ASSERT_EQ(artifact.variants.size(), 2u);
  EXPECT_EQ(artifact.variants[0].condition.evaluate(std::vector<int64_t>{2, 3, 3, 1, 3, 1}), 1);
  EXPECT_EQ(artifact.variants[0].condition.evaluate(std::vector<int64_t>{2, 3, 4, 1, 3, 1}), 0);
  EXPECT_NE(artifact.report.find("\"registers\":"), std::string::npos);
}

TEST_F(CudaArtifact, RoundsAProductBeforeItIsAddedWhereStrict) {
  const ir::Kernel kernel = lowered(R"(fn axpy(A: float32[n], B: float32[n]) {
    for b in 0..n bind(blockIdx.x) { B[b] = A[b]*3.0 + B[b] } })");
  EXPECT_NE(make_cuda_artifact(kernel, nullptr, {"sm_90"}).ptx.find("fma.rn"), std::string::npos);
  const std::string strict = make_cuda_artifact(kernel, nullptr, {"sm_90", true}).ptx;
  EXPECT_EQ(strict.find("fma.rn"), std::string::npos);
}

TEST_F(CudaArtifact, StoresASumOnce) {
  const ir::Kernel kernel = lowered(R"(fn rows(A: float32[n, l], C: float32[n]) {
    for b in 0..floordiv(n + 255, 256) bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
      if b*256 + t < n { C[b*256 + t] = 0.0
        for k in 0..l { C[b*256 + t] = C[b*256 + t] + A[b*256 + t, k] } } } } })");
  const std::string ptx = make_cuda_artifact(kernel, nullptr, {"sm_90"}).ptx;
  const std::regex store(R"(st\.global)");
  // In the variant of few elements, and in that of any.
  EXPECT_EQ(std::distance(std::sregex_iterator(ptx.begin(), ptx.end(), store), {}), 2);
}

TEST_F(CudaArtifact, DividesIndicesThatAreNotNegativeInLittleCode) {
  const ir::Kernel kernel = lowered(R"(fn transpose(A: float32[m, n], C: float32[n, m]) {
    for b in 0..floordiv(m*n + 255, 256) bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
      if b*256 + t < m*n {
        C[floormod(b*256 + t, n), floordiv(b*256 + t, n)] =
          A[floordiv(b*256 + t, n), floormod(b*256 + t, n)] } } } })");
  const Artifact artifact = make_cuda_artifact(kernel, nullptr, {"sm_90"});
  const std::vector<CubinKernel> kernels = kernels_of_cubin(artifact.code);
  const auto instructions = [&](const char* name) {
    const auto found = std::ranges::find(kernels, name, &CubinKernel::name);
    return found != kernels.end() ? found->instructions : 0;
  };
  EXPECT_LE(instructions("kiln_compact_0"), 250);  // 304 with signs
  EXPECT_GT(instructions("kiln_narrow_0"), 0);
  EXPECT_LE(instructions("kiln_narrow_0"), 96);
}

/// Without a header, from the oldest architecture to the newest.
TEST_F(CudaArtifact, OfFloatsOf8And16Bits) {
  for (const char* type : {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}) {
    const bool is_byte = std::string_view(type).starts_with("float8");
    const ir::Kernel kernel = lowered(fmt::format(
        R"(fn f(A: {0}[n], I: int64[n], D: float64[n], B: {0}[n], C: {0}[n], J: int32[n], U: {1}[n]) {{
          for b in 0..n bind(blockIdx.x) {{
            B[b] = nextafter(fma(exp(A[b]), -A[b], min(A[b], 1.0)), {0}(D[b]))
            C[b] = if_then_else(isnan(A[b]) || A[b] < B[b], {0}(I[b]), ldexp(A[b], sqrt(B[b])))
            J[b] = int32(A[b])
            U[b] = bits_of(A[b]) }} }})",
        type, is_byte ? "uint8" : "uint16"));
    for (const char* arch : {"sm_75", "sm_90", "sm_120"}) {
      EXPECT_FALSE(make_cuda_artifact(kernel, nullptr, {arch}).code.empty()) << type << arch;
    }
  }
}

/// Macros of NVRTC, which would be replaced wherever they stand, and names that the source has.
TEST_F(CudaArtifact, OfTensorsByAnyName) {
  for (const char* name : {"NULL", "assert", "CUDART_VERSION", "CUDARTAPI", "cudaCpuDeviceId",
                           "CU_UUID_HAS_BEEN_DEFINED", "KilnFault", "kiln_fire", "int", "fault",
                           "atomicCAS", "threadIdx", "fmaf"}) {
    const ir::Kernel kernel = lowered(fmt::format(
        R"(fn f({0}: float32[n], I: int64[n], C: float32[n]) {{
          for b in 0..n bind(blockIdx.x) {{ check I[b] < n #0  C[b] = fma({0}[I[b]], 2.0, 1.0) }} }}
          #0: stage 2, tensor 0, dimension 0)",
        name));
    EXPECT_FALSE(make_cuda_artifact(kernel, nullptr, {"sm_90"}).code.empty()) << name;
  }
}

TEST_F(CudaArtifact, OfEveryOtherExample) {
  for (const char* loops : {kAdd, kReverse, kGather, kTwoStages}) {
    const ir::Kernel compact = lowered(loops);
    EXPECT_FALSE(make_cuda_artifact(compact, nullptr, {"sm_80"}).code.empty());
  }
}

/// Every operator on every type it takes, in one source: what NVRTC accepts is well typed.
TEST_F(CudaArtifact, OfEveryOperator) {
  constexpr DType kTypes[] = {DType::Bool,   DType::Int8,    DType::Int16,  DType::Int32,
                              DType::Int64,  DType::UInt8,   DType::UInt16, DType::UInt32,
                              DType::UInt64, DType::Float32, DType::Float64};
  CudaNames names;
  std::string body;
  for (const DType type : kTypes) {
    const ir::BufferRef in = ir::Buffer::make("in", type, {ir::index(4)}, ir::Scope::Global);
    const auto load = [&](int64_t i) { return ir::Load::make(in, {ir::index(i)}); };
    body += fmt::format("{{ {}* {} = ({}*)memory;\n", cuda_type(type), names[in], cuda_type(type));
    const auto add = [&](const ir::Expr& value) {
      body += fmt::format("  *({}*)out++ = {};\n", cuda_type(value->type.element),
                          cuda_expr(value, {names}));
    };
    for (const language::OperatorRow& row : language::operator_table()) {
      std::vector<ir::Expr> args;
      std::vector<DType> types;
      for (int i = 0; i < row.arity; ++i) {
        const bool is_condition = row.type_rule == language::TypeRule::Choose && i == 0;
        args.push_back(is_condition
                           ? ir::less(ir::index(0), ir::Cast::make(ir::kIndexType, load(0)))
                           : load(i));
        types.push_back(args.back()->type.element);
      }
      DType result;
      try {
        result = language::result_type(row.op, types);
      } catch (const Error&) {
        continue;  // the operator does not take this type
      }
      if (std::find(std::begin(kTypes), std::end(kTypes), result) == std::end(kTypes)) continue;
      const bool is_call =
          row.arity != 2 || row.op == language::Operator::Atan2 ||
          row.op == language::Operator::Pow || row.op == language::Operator::Fmod ||
          row.op == language::Operator::Hypot || row.op == language::Operator::CopySign ||
          row.op == language::Operator::Ldexp || row.op == language::Operator::NextAfter;
      add(is_call ? ir::Call::make(row.op, args) : ir::Binary::make(row.op, args[0], args[1]));
    }
    for (const DType to : kTypes)
      add(ir::Cast::make({to, 1}, load(0)));
    body += "}\n";
  }
  const std::string code =
      "extern \"C\" __global__ void all(void* memory, unsigned long long* out) {\n" + body + "}\n";
  EXPECT_FALSE(compile_cuda_source(cuda_prelude(code) + code, {"sm_90"}).cubin.empty());
}

}  // namespace
}  // namespace kiln::codegen
