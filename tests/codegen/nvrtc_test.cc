#include "compiler/codegen/nvrtc.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/main_loop.h"
#include "compiler/codegen/nvrtc_library.h"
#include "tests/support/expect_error.h"
#include "tests/support/needs_nvrtc.h"

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#define KILN_HAS_NVRTC_HEADER 1
#endif

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;

using testing::expect_error;

constexpr const char* kSource = R"(
extern "C" __global__ void twice(float* x, long long n) {
  __shared__ float tile[64];
  long long i = blockIdx.x * 64ll + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) x[i] = tile[63 - threadIdx.x] * 2.0f;
}
)";

class Nvrtc : public testing::NeedsNvrtc<> {};

/// Its files among those that this process has mapped.
bool is_mapped() {
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  return text.find("libnvrtc") != std::string::npos;
}

TEST_F(Nvrtc, IsNotKeptForBeingAskedWhichItIs) {
  const bool was_mapped = is_mapped();  // by a test of this process that compiled
  const std::string text = describe_nvrtc();
  EXPECT_TRUE(text.starts_with("NVRTC ")) << text;
  EXPECT_EQ(is_mapped(), was_mapped);
  compile_cuda_source(kSource, {"sm_90"});
  EXPECT_TRUE(is_mapped());
  EXPECT_EQ(describe_nvrtc(), text);
  EXPECT_FALSE(compile_cuda_source(kSource, {"sm_90"}).cubin.empty());
}

/// A wheel's folder is none that the loader looks into.
TEST_F(Nvrtc, HasItsOtherHalfFromItsOwnFolder) {
  const fs::path folder = fs::path(nvrtc_library().path).parent_path();
  size_t halves = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("libnvrtc-builtins.so.")) continue;
    ++halves;
    void* const handle = dlopen(entry.path().c_str(), RTLD_NOW | RTLD_NOLOAD);
    EXPECT_NE(handle, nullptr) << entry.path();
    if (handle != nullptr) dlclose(handle);
  }
  EXPECT_GT(halves, 0u) << folder;
}

TEST_F(Nvrtc, MakesCubinAndPtxWithoutAGpu) {
  const CudaBinary binary = compile_cuda_source(kSource, {"sm_90"});
  EXPECT_NE(binary.ptx.find(".entry twice"), std::string::npos);
  EXPECT_EQ(binary.ptx.find('\0'), std::string::npos);
  const std::vector<CubinKernel> kernels = kernels_of_cubin(binary.cubin);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "twice");
  EXPECT_GT(kernels[0].registers, 4);
  EXPECT_LT(kernels[0].registers, 64);
  EXPECT_EQ(kernels[0].stack_bytes, 0);
  EXPECT_GE(kernels[0].shared_bytes, 256);
  EXPECT_GT(kernels[0].instructions, 10);
}

constexpr const char* kMultiplyAdd = R"(
extern "C" __global__ void axpy(const float* x, float* y, float a) {
  y[threadIdx.x] = a * x[threadIdx.x] + y[threadIdx.x];
}
extern "C" __global__ void fused(const float* x, float* y, float a) {
  y[threadIdx.x] = ::fmaf(a, x[threadIdx.x], y[threadIdx.x]);
}
)";

int count(std::string_view text, std::string_view word) {
  int result = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++result;
  return result;
}

TEST_F(Nvrtc, ContractsAProductAndASumUnlessItIsStrict) {
  EXPECT_EQ(count(compile_cuda_source(kMultiplyAdd, {"sm_90"}).ptx, "fma.rn"), 2);
  // What asks for one rounding keeps it.
  EXPECT_EQ(count(compile_cuda_source(kMultiplyAdd, {"sm_90", true}).ptx, "fma.rn"), 1);
}

TEST_F(Nvrtc, RefusesWhatIsNoArchitecture) {
  expect_error([] { compile_cuda_source(kSource, {"znver5"}); }, ErrorKind::InvalidArgument,
               "znver5 is not an architecture of CUDA; they are written like sm_90");
}

TEST_F(Nvrtc, RefusesAnArchitectureItDoesNotKnow) {
  try {
    compile_cuda_source(kSource, {"sm_999"});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    EXPECT_EQ(error.reason(), "ARCH");
    EXPECT_TRUE(error.message().ends_with(" does not compile for sm_999")) << error.message();
  }
}

TEST_F(Nvrtc, TellsOfWrongSource) {
  expect_error([] { compile_cuda_source("__global__ void f() { x = 1; }\n", {"sm_90"}); },
               ErrorKind::Internal,
               "the CUDA C made from the kernel does not compile: kernel.cu(1): error: identifier "
               "\"x\" is undefined");
}

TEST(Cubin, IsEmptyForBytesThatAreNone) {
  EXPECT_TRUE(kernels_of_cubin("").empty());
  EXPECT_TRUE(kernels_of_cubin("not a cubin").empty());
  EXPECT_TRUE(kernels_of_cubin(std::string(4096, '\x7f')).empty());
}

TEST_F(Nvrtc, ADamagedCubinIsReadWithoutHarm) {
  const std::string cubin = compile_cuda_source(kSource, {"sm_90"}).cubin;
  for (size_t length = 0; length < cubin.size(); length += 61) {
    kernels_of_cubin(std::string_view(cubin).substr(0, length));
  }
  for (size_t at = 0; at < cubin.size(); at += 37) {
    std::string damaged = cubin;
    damaged[at] = static_cast<char>(~damaged[at]);
    kernels_of_cubin(damaged);
  }
}

constexpr const char* kLoops = R"(
extern "C" __global__ void loops(const float4* x, float* y, int n) {
  __shared__ float4 part[256];
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    __syncthreads();
    part[threadIdx.x] = x[i * 256 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float4 row = part[(threadIdx.x + k) & 255];
      sum = ::fmaf(row.x, row.y, sum);
      sum = ::fmaf(row.z, row.w, sum);
    }
  }
  y[threadIdx.x] = sum;
}
)";

/// Each generation has branches of its own, and each width its own bits.
TEST_F(Nvrtc, TheMainLoopIsReadFromTheMachineCode) {
  for (const char* const arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    SCOPED_TRACE(arch);
    const std::string cubin = compile_cuda_source(kLoops, {arch}).cubin;
    const MainLoop loop = main_loop_of(kernels_of_cubin(cubin).at(0).code, arch);
    EXPECT_TRUE(loop.is_loop);
    EXPECT_EQ(loop.kind, "FFMA");
    // NVRTC may write several iterations out.
    EXPECT_EQ(loop.arithmetic % 16, 0);
    const int64_t turns = loop.arithmetic / 16;
    EXPECT_GT(turns, 0);
    EXPECT_EQ(loop.barriers, 2 * turns);
    EXPECT_EQ(loop.spills, 0);
    ASSERT_EQ(loop.accesses.size(), 3u);
    for (const MainLoop::Access& access : loop.accesses) {
      EXPECT_EQ(access.bytes, 16) << access.kind;
      EXPECT_EQ(access.count, access.kind == "LDS" ? 8 * turns : turns) << access.kind;
    }
    EXPECT_GT(loop.instructions, loop.arithmetic);
    EXPECT_LT(loop.share(), 1);
  }
}

TEST_F(Nvrtc, CodeWithoutALoopIsReadWhole) {
  const std::string cubin = compile_cuda_source(kMultiplyAdd, {"sm_90"}).cubin;
  const CubinKernel kernel = kernels_of_cubin(cubin).at(0);
  const MainLoop loop = main_loop_of(kernel.code, "sm_90");
  EXPECT_FALSE(loop.is_loop);
  EXPECT_EQ(loop.instructions, kernel.instructions);
  EXPECT_EQ(loop.arithmetic, 1);
}

TEST(MainLoop, OfBytesThatAreNoCodeIsReadWithoutHarm) {
  EXPECT_EQ(main_loop_of("", "sm_90").instructions, 0);
  EXPECT_EQ(main_loop_of("short", "sm_90").instructions, 0);
  for (int byte = 0; byte < 256; ++byte) {
    const std::string code(1600, static_cast<char>(byte));
    for (const char* const arch : {"sm_80", "sm_90", "sm_100", "znver5"})
      EXPECT_LE(main_loop_of(code, arch).instructions, 100);
  }
}

#ifdef KILN_HAS_NVRTC_HEADER
TEST(NvrtcLibrary, IsDeclaredAsTheToolkitDeclaresIt) {
  static_assert(sizeof(nvrtcProgram) == sizeof(void*));
  static_assert(sizeof(nvrtcResult) == sizeof(int));
  static_assert(static_cast<int>(NVRTC_SUCCESS) == 0);
  static_assert(static_cast<int>(NVRTC_ERROR_INVALID_OPTION) == kNvrtcInvalidOption);
  static_assert(
      std::is_invocable_r_v<nvrtcResult, decltype(&nvrtcCreateProgram), nvrtcProgram*, const char*,
                            const char*, int, const char* const*, const char* const*>);
  static_assert(std::is_invocable_r_v<nvrtcResult, decltype(&nvrtcCompileProgram), nvrtcProgram,
                                      int, const char* const*>);
  static_assert(std::is_invocable_r_v<nvrtcResult, decltype(&nvrtcGetCUBIN), nvrtcProgram, char*>);
  static_assert(
      std::is_invocable_r_v<nvrtcResult, decltype(&nvrtcGetCUBINSize), nvrtcProgram, size_t*>);
  static_assert(std::is_invocable_r_v<nvrtcResult, decltype(&nvrtcGetPTX), nvrtcProgram, char*>);
  static_assert(
      std::is_invocable_r_v<nvrtcResult, decltype(&nvrtcGetProgramLog), nvrtcProgram, char*>);
  static_assert(std::is_invocable_r_v<nvrtcResult, decltype(&nvrtcVersion), int*, int*>);
}
#endif

}  // namespace
}  // namespace kiln::codegen
