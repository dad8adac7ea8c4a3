#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "tests/cuda/fake_device.h"
#include "tests/support/expect_error.h"

// The fake NVRTC and what watches its code: kernels by hand, right ones and ones with a mistake.
namespace kiln::testing {
namespace {

/// CUDA C compiled by the fake NVRTC.
std::string compiled(const std::string& source) {
  static void* const library = dlopen(FAKE_LIBNVRTC, RTLD_NOW | RTLD_LOCAL);
  const auto function = [&](const char* name, auto* shape) {
    return reinterpret_cast<decltype(shape)>(dlsym(library, name));
  };
  using Sizes = int(void*, size_t*);
  using Texts = int(void*, char*);
  void* program = nullptr;
  function("nvrtcCreateProgram", static_cast<int (*)(void**, const char*, const char*, int,
                                                     const char* const*, const char* const*)>(
                                     nullptr))(&program, source.c_str(), "", 0, nullptr, nullptr);
  const char* const options[] = {"--gpu-architecture=sm_90"};
  const int result =
      function("nvrtcCompileProgram",
               static_cast<int (*)(void*, int, const char* const*)>(nullptr))(program, 1, options);
  const auto text = [&](const char* sizes, const char* texts) {
    size_t bytes = 0;
    function(sizes, static_cast<Sizes*>(nullptr))(program, &bytes);
    std::string text(bytes, '\0');
    function(texts, static_cast<Texts*>(nullptr))(program, text.data());
    return text;
  };
  EXPECT_EQ(result, 0) << text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
  std::string code = text("nvrtcGetCUBINSize", "nvrtcGetCUBIN");
  function("nvrtcDestroyProgram", static_cast<int (*)(void**)>(nullptr))(&program);
  return code;
}

/// Runs `body` as a kernel of 2 blocks of 64 threads: x and y have 128 elements, t is the number of
/// the thread among all, s shared memory of 64 elements. Gives y.
std::vector<float> run(const std::string& body, const std::vector<float>& x) {
  auto artifact = std::make_shared<Artifact>(*add_one());
  artifact->code = compiled(
      "extern \"C\" __global__ void __launch_bounds__(64) k(const float* x, float* y, long long n, "
      "long long, long long, unsigned char* workspace, void* fault) {\n"
      "  __shared__ float s[64];\n"
      "  const int i = threadIdx.x;\n"
      "  const int t = blockIdx.x * 64 + i;\n" +
      body + "\n}\n");
  const SizeExpr two = SizeExpr::constant(2);
  artifact->variants[0].launches = {{"k", {two}, {SizeExpr::constant(64)}}};
  const std::unique_ptr<Device> device = open_cuda_device(0);
  AddOneCall call(*device, x, artifact);
  call.run();
  return call.y();
}

std::vector<float> counting() {
  std::vector<float> x(128);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i);
  return x;
}

/// The mistake that is found in a kernel.
std::string found(const std::string& body) {
  const NewProcessAfterwards restart;
  std::string message;
  try {
    run(body, counting());
  } catch (const Error& error) {
    message = error.message();
  }
  constexpr std::string_view kBefore = "the CUDA driver could not run add_one: ";
  constexpr std::string_view kAfter = " (CUDA_ERROR_LAUNCH_FAILED, 719)";
  if (!message.starts_with(kBefore) || !message.ends_with(kAfter)) return message;
  return message.substr(kBefore.size(), message.size() - kBefore.size() - kAfter.size());
}

TEST(HostKernels, ThreadsOfABlockMeetAtBarriers) {
  const std::vector<float> y =
      run("s[i] = x[t]; __syncthreads();"
          "for (int half = 32; half > 0; half /= 2) {"
          "  if (i < half) s[i] += s[i + half];"
          "  __syncthreads();"
          "}"
          "y[t] = s[0];",
          counting());
  EXPECT_EQ(y.front(), 2016);
  EXPECT_EQ(y.back(), 6112);
}

TEST(HostKernels, LanesOfAWarpExchangeValues) {
  const std::vector<float> y =
      run("float v = x[t];"
          "for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffffu, v, by);"
          "v = __shfl_sync(0xffffffffu, v, 0);"
          "y[t] = v + __shfl_xor_sync(0xffffffffu, (float)i, 1);",
          counting());
  EXPECT_EQ(y[0], 496 + 1);
  EXPECT_EQ(y[33], 1520 + 32);
}

TEST(HostKernels, ChangeTheSameElementByAtomics) {
  const std::vector<float> y =
      run("s[i] = 0; __syncthreads(); atomicAdd(&s[0], x[t]); __syncthreads(); y[t] = s[0];",
          counting());
  EXPECT_EQ(y.front(), 2016);
}

TEST(HostKernels, AWarpThatMeetsNeedsNoBarrier) {
  const std::vector<float> y = run("s[i] = x[t]; __syncwarp(); y[t] = s[i ^ 1];", counting());
  EXPECT_EQ(y[0], 1);
}

/// No other thread reads what the loop adds to, though the host's compiler might in front of it.
TEST(HostKernels, OneThreadAddsUpWhileOthersLookOn) {
  const std::vector<float> y =
      run("if (i == 0) s[0] = 0;"
          "for (int k = 0; k < 64; ++k) {"
          "  if (i == 0) s[0] = s[0] + x[k];"
          "}"
          "__syncthreads(); y[t] = s[0];",
          counting());
  EXPECT_EQ(y[63], 2016);
}

TEST(HostKernels, AMissingBarrierIsFoundBeforeARead) {
  EXPECT_EQ(
      found("s[i] = x[t]; y[t] = s[63 - i];"),
      "uninitialised: thread 0 of block 0 reads byte 252 of shared memory of 256 bytes, which "
      "nobody has written");
  EXPECT_EQ(found("s[i] = x[t]; __syncthreads(); y[t] = s[63 - i]; s[i] = 0; y[t] += s[i ^ 1];"),
            "race: thread 1 of block 0 writes byte 4 of shared memory of 256 bytes, which thread 0 "
            "reads with nothing between");
}

TEST(HostKernels, EachBarrierIsMissedWhereItIsLeftOut) {
  const std::string tiles =
      "float sum = 0;"
      "for (int k = 0; k < 2; ++k) {"
      "  s[i] = x[k * 64 + i];"
      "  __syncthreads();"
      "  sum += s[63 - i];"
      "  __syncthreads();"
      "}"
      "y[t] = sum;";
  EXPECT_EQ(run(tiles, counting())[0], 63 + 127);
  for (const char* number : {"0", "1"}) {
    const Setting without("FAKE_NVRTC_WITHOUT_BARRIER", number);
    EXPECT_NE(found(tiles).find(": thread "), std::string::npos) << number;
  }
}

TEST(HostKernels, AMissingMeetingOfAWarpIsFound) {
  EXPECT_EQ(found("s[i] = x[t]; if (i > 0) y[t] = s[i - 1]; else y[t] = 0;"),
            "race: thread 1 of block 0 reads byte 0 of shared memory of 256 bytes, which thread 0 "
            "writes with nothing between");
}

TEST(HostKernels, BlocksThatTouchTheSameElementAreFound) {
  EXPECT_EQ(found("y[i] = x[t];"),
            "race: thread 0 of block 1 writes byte 0 of memory of 512 bytes, which thread 0 of "
            "another block writes with nothing between");
  EXPECT_EQ(found("y[t] = x[t]; if (t == 64) y[t] += y[0];"),
            "race: thread 0 of block 1 reads byte 0 of memory of 512 bytes, which thread 0 of "
            "another block writes with nothing between");
}

TEST(HostKernels, AnAccessBesideMemoryIsFound) {
  EXPECT_EQ(found("y[t] = x[t + 1];"),
            "out of bounds: thread 63 of block 1 reads 4 bytes at no memory of the device");
  EXPECT_EQ(found("s[i + 1] = x[t]; __syncthreads(); y[t] = s[i];"),
            "out of bounds: thread 63 of block 0 writes 4 bytes at no memory of the device");
}

TEST(HostKernels, AnAccessThatIsWrongDoesNotHappen) {
  // Beside the stores, nothing that the thread would do then, and nothing of other threads.
  EXPECT_EQ(found("for (int k = 0; k < 100000; ++k) y[t + 128 + k] = x[t];"),
            "out of bounds: thread 0 of block 0 writes 4 bytes at no memory of the device");
  EXPECT_EQ(found("const long long at = ((const long long*)y)[t / 2]; y[at] = x[t];"),
            "uninitialised: thread 0 of block 0 reads byte 0 of memory of 512 bytes, which nobody "
            "has written");
}

TEST(HostKernels, AReadOfWhatNobodyWroteIsFound) {
  EXPECT_EQ(found("y[t] = y[t] + x[t];"),
            "uninitialised: thread 0 of block 0 reads byte 0 of memory of 512 bytes, which nobody "
            "has written");
}

TEST(HostKernels, LanesThatDoNotComeAreADeadlock) {
  // One that has ended is in nobody's way.
  EXPECT_EQ(run("float v = x[t]; if (i != 5) v = __shfl_sync(0xffffffffu, v, 0); y[t] = v;",
                counting())[4],
            0);
  EXPECT_EQ(found("float v = x[t]; if (i != 5) v = __shfl_sync(0xffffffffu, v, 0); y[t] = v; "
                  "__syncthreads();"),
            "deadlock: thread 0 of block (0, 0, 0) waits for lanes of its warp that do not come");
}

}  // namespace
}  // namespace kiln::testing
