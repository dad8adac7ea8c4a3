#include <algorithm>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/compile.h"
#include "runtime/core/cpu_name.h"
#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

using Shape = std::vector<int64_t>;

/// An argument somewhere in memory, with a layout.
struct View {
  float* data;
  Shape shape;
  Shape strides;
};

class CpuDeviceTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Artifact> compile_te(const Te& te) {
    return compile_for_host(te.kernel, choose_schedule(te.kernel, te.schedule, kHost, {}),
                            {.strided = true});
  }

  void run(const std::shared_ptr<const Artifact>& artifact, const std::vector<View>& views,
           const std::atomic<int32_t>* cancelled = nullptr) {
    std::vector<ArgumentSlot> slots;
    std::vector<void*> pointers;
    for (const View& view : views) {
      slots.push_back({true, {DType::Float32, view.shape, view.strides}});
      pointers.push_back(view.data);
    }
    const KernelNames names = plain_names(*artifact);
    const BoundCall bound = bind_arguments(*artifact, names, slots, {});
    Device& device = cpu_device();
    device.run(*device.load(artifact), {pointers, &bound, &names, cancelled});
  }

  const Target kHost = {TargetKind::Llvm, ""};
};

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST_F(CpuDeviceTest, RunsAnArtifactThatWasSaved) {
  const auto artifact = compile_te(AddOne().te);
  const auto loaded = std::make_shared<const Artifact>(deserialize_artifact(serialize(*artifact)));
  std::vector<float> x = counting(6);
  std::vector<float> y(6);
  run(loaded, {{x.data(), {2, 3}, {}}, {y.data(), {2, 3}, {}}});
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(CpuDeviceTest, RefusesStridesThatItWasNotBuiltFor) {
  const AddOne add;
  const auto artifact =
      compile_for_host(add.te.kernel, choose_schedule(add.te.kernel, {}, kHost, {}));
  std::vector<float> x = counting(6);
  std::vector<float> y(3);
  run(artifact, {{x.data(), {1, 3}, {}}, {y.data(), {1, 3}, {}}});
  expect_error(
      [&] {
        run(artifact, {{x.data(), {1, 3}, {6, 2}}, {y.data(), {1, 3}, {}}});
      },
      ErrorKind::Unsupported,
      "K was built for arguments without strides; copy them, or build it for strides");
}

TEST_F(CpuDeviceTest, TakesArgumentsOfAnyLayout) {
  const auto artifact = compile_te(Matmul().te);
  constexpr int64_t n = 37, m = 21, l = 45;
  std::vector<float> a = counting(n * l);
  std::vector<float> b = counting(l * m);
  for (float& value : a) {
    value = std::fmod(value, 7.0f) - 3;
  }
  for (float& value : b) {
    value = std::fmod(value, 5.0f) - 2;
  }
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const bool transpose_c : {false, true}) {
        // Whole numbers: exact in any order.
        std::vector<float> c(n * m, -1);
        const Shape sa = transpose_a ? Shape{1, n} : Shape{l, 1};
        const Shape sb = transpose_b ? Shape{1, l} : Shape{m, 1};
        const Shape sc = transpose_c ? Shape{1, n} : Shape{m, 1};
        run(artifact, {{a.data(), {n, l}, sa}, {b.data(), {l, m}, sb}, {c.data(), {n, m}, sc}});
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < m; ++j) {
            float sum = 0;
            for (int64_t k = 0; k < l; ++k) {
              sum += a[static_cast<size_t>(i * sa[0] + k * sa[1])] *
                     b[static_cast<size_t>(k * sb[0] + j * sb[1])];
            }
            ASSERT_EQ(c[static_cast<size_t>(i * sc[0] + j * sc[1])], sum) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST_F(CpuDeviceTest, TakesRowsLastFirstAndElementsApart) {
  const auto artifact = compile_te(AddOne().te);
  std::vector<float> x = counting(12);
  std::vector<float> y(24, -1);
  // Rows from the last to the first; every second element of a wider array.
  run(artifact, {{x.data() + 8, {3, 4}, {-4, 1}}, {y.data(), {3, 4}, {8, 2}}});
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(y[i * 8 + j * 2], x[(2 - i) * 4 + j] + 1);
      EXPECT_EQ(y[i * 8 + j * 2 + 1], -1);
    }
  }
}

TEST_F(CpuDeviceTest, WorksInPlace) {
  const auto artifact = compile_te(AddOne().te);
  std::vector<float> x = counting(40);
  run(artifact, {{x.data(), {5, 8}, {}}, {x.data(), {5, 8}, {}}});
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(x[i], static_cast<float>(i) + 1);
  }
}

TEST_F(CpuDeviceTest, ReadsInputsAsTheyWereWhereTheOutputOverlapsThem) {
  const auto artifact = compile_te(AddOne().te);
  std::vector<float> x = counting(41);
  run(artifact, {{x.data(), {1, 40}, {}}, {x.data() + 1, {1, 40}, {}}});
  EXPECT_EQ(x[0], 0);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(x[i + 1], static_cast<float>(i) + 1);
  }
}

TEST_F(CpuDeviceTest, RefusesOutputsThatShareMemory) {
  const TwoStateScan kernel;
  const auto artifact = compile_te(kernel.te);
  std::vector<float> x = counting(20);
  std::vector<float> y(40);
  expect_error(
      [&] {
        run(artifact,
            {{x.data(), {2, 10}, {}}, {y.data(), {2, 10}, {}}, {y.data() + 19, {2, 10}, {}}});
      },
      ErrorKind::InvalidArgument, "arguments p1 and p2 of K are both written, but share memory");
}

TEST_F(CpuDeviceTest, RefusesMemoryThatIsNotAligned) {
  const auto artifact = compile_te(AddOne().te);
  std::vector<float> x = counting(8);
  auto* odd = reinterpret_cast<float*>(reinterpret_cast<char*>(x.data()) + 1);
  std::vector<float> y(4);
  expect_error(
      [&] {
        run(artifact, {{odd, {1, 4}, {}}, {y.data(), {1, 4}, {}}});
      },
      ErrorKind::InvalidArgument,
      "argument p0 of K is at an address that is no multiple of 4 bytes, the size of its "
      "elements");
}

/// B[i] = A[cast(I[i])]
struct Gather {
  Te te;
  TeExpr n = te.var("n");
  TeTensor A = te.placeholder("A", {te.integer(10)});
  TeTensor I = te.placeholder("I", {n});
  TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(te.cast(DType::Int64, I(v[0]))); });
  Gather() { te.arguments({A, I, B}); }
};

TEST_F(CpuDeviceTest, SaysWhichReadIsOutOfRange) {
  const auto artifact = compile_te(Gather().te);
  std::vector<float> a = counting(10);
  for (float& value : a) {
    value *= 3;
  }
  std::vector<float> i(1000, 4);
  std::vector<float> b(1000);
  const std::vector<View> views = {
      {a.data(), {10}, {}}, {i.data(), {1000}, {}}, {b.data(), {1000}, {}}};
  run(artifact, views);
  EXPECT_EQ(b, std::vector<float>(1000, 12));

  // The first of them, whichever thread comes to which first.
  i[700] = 12;
  i[701] = -1;
  for (int round = 0; round < 20; ++round) {
    const Error error = expect_error([&] { run(artifact, views); }, ErrorKind::InvalidArgument,
                                     "stage2 of K reads index 12 of dimension 0 of stage0, but its "
                                     "extent there is 10");
    EXPECT_EQ(error.reason(), "INDEX_OUT_OF_RANGE");
  }
  i[3] = -7;
  expect_error([&] { run(artifact, views); }, ErrorKind::InvalidArgument,
               "stage2 of K reads index -7 of dimension 0 of stage0, but its extent there is 10");
}

TEST_F(CpuDeviceTest, StopsWhenCancelled) {
  const auto artifact = compile_te(Matmul().te);
  std::vector<float> a(300 * 300);
  std::vector<float> c(300 * 300);
  const Shape shape = {300, 300};
  const std::atomic<int32_t> cancelled{1};
  expect_error(
      [&] {
        run(artifact, {{a.data(), shape, {}}, {a.data(), shape, {}}, {c.data(), shape, {}}},
            &cancelled);
      },
      ErrorKind::Cancelled, "the call of K was cancelled");
}

TEST_F(CpuDeviceTest, StopsALongCallSoonAfterItIsCancelled) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor B =
      te.compute("B", "i j", {n, n}, [&](auto v) { return te.sum(A(v[0]) * A(k) * A(v[1]), {k}); });
  te.arguments({A, B});
  const auto artifact = compile_te(te);
  constexpr int64_t count = 8192;  // 5e11 products: minutes
  std::vector<float> a(count);
  std::vector<float> b(count * count);
  std::atomic<int32_t> cancelled{0};
  std::thread caller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = 1;
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run(artifact, {{a.data(), {count}, {}}, {b.data(), {count, count}, {}}}, &cancelled),
               Error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  caller.join();
}

TEST_F(CpuDeviceTest, ServesSeveralCallersAtOnce) {
  const auto artifact = compile_te(Matmul().te);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<float> a(64 * 64, static_cast<float>(caller));
      for (int round = 0; round < 50; ++round) {
        std::vector<float> c(64 * 64);
        run(artifact,
            {{a.data(), {64, 64}, {}}, {a.data(), {64, 64}, {}}, {c.data(), {64, 64}, {}}});
        for (const float value : c) {
          wrong += value != static_cast<float>(64 * caller * caller);
        }
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(CpuDeviceTest, RefusesAnArtifactForAnotherCpu) {
  Artifact artifact = *compile_te(AddOne().te);
  artifact.arch = "nocpu";
  artifact.features = {"avx2", "nofeature"};
  const std::string host = host_cpu();
  expect_error([&] { cpu_device().load(std::make_shared<Artifact>(artifact)); },
               ErrorKind::InvalidArgument,
               "the kernel was compiled for nocpu, but this host (" + host +
                   ") lacks nofeature; compile it for " + host);
  artifact.features = {};  // every host has what it needs
  EXPECT_NO_THROW(cpu_device().load(std::make_shared<Artifact>(artifact)));
  artifact.target = TargetKind::Cuda;
  expect_error([&] { cpu_device().load(std::make_shared<Artifact>(artifact)); },
               ErrorKind::InvalidArgument,
               "the kernel was compiled for cuda, but cpu:0 runs kernels compiled for llvm");
}

TEST_F(CpuDeviceTest, RefusesCodeWithoutItsEntry) {
  Artifact artifact = *compile_te(AddOne().te);
  artifact.variants[0].launches[0].entry = "elsewhere";
  expect_error([&] { cpu_device().load(std::make_shared<Artifact>(artifact)); },
               ErrorKind::InvalidArgument,
               "the kernel's code cannot be loaded: it has no function elsewhere");
}

TEST_F(CpuDeviceTest, RefusesCodeThatIsNone) {
  Artifact artifact = *compile_te(AddOne().te);
  artifact.code = "this is no object";
  EXPECT_EQ(expect_error([&] { cpu_device().load(std::make_shared<Artifact>(artifact)); },
                         ErrorKind::InvalidArgument,
                         "the kernel's code cannot be loaded: it is no object")
                .reason(),
            "ARTIFACT_CORRUPT");
}

/// The host passes for another CPU while this lives.
class PassesFor {
 public:
  explicit PassesFor(const std::string& cpu) { ::setenv("KILN_CPU", cpu.c_str(), 1); }
  ~PassesFor() { ::unsetenv("KILN_CPU"); }
  PassesFor(const PassesFor&) = delete;
  PassesFor& operator=(const PassesFor&) = delete;
};

TEST(HostCpu, IsTheOneThatKilnCpuNames) {
  const PassesFor level("x86-64-v2");
  EXPECT_EQ(host_cpu(), "x86-64-v2");
  EXPECT_EQ(runnable_cpu(), "x86-64-v2");
}

TEST(HostCpu, WhoseNameNobodyKnowsIsRefusedWhenItIsToRun) {
  const PassesFor nothing("pentium9");
  EXPECT_EQ(host_cpu(), "pentium9");
  expect_error([] { runnable_cpu(); }, ErrorKind::Unsupported,
               "KILN_CPU is pentium9, but there is no such CPU; names are those of -march, as " +
                   own_cpu() + " (this host) or x86-64-v3");
}

TEST(HostCpu, ThatTheHostCannotRunIsRefusedWithWhatItLacks) {
  std::string cpu;
  for (const char* name : {"sapphirerapids", "znver4"}) {
    if (!host_can_run(name)) cpu = name;
  }
  ASSERT_NE(cpu, "") << "no CPU has the instructions of both";
  const PassesFor other(cpu);
  try {
    runnable_cpu();
    FAIL() << cpu;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_EQ(error.reason(), "KILN_CPU");
    const std::string message = error.message();
    const size_t begin = std::min(message.size(), message.find("it lacks ") + 9);
    const std::string lacks = message.substr(begin, message.find("; compile") - begin);
    EXPECT_FALSE(lacks.empty());
    EXPECT_EQ(message, "KILN_CPU is " + cpu + ", whose code this host (" + own_cpu() +
                           ") cannot run: it lacks " + lacks + "; compile for it with --arch " +
                           cpu +
                           ", and leave KILN_CPU unset or name a lesser CPU, as x86-64-v3, to run");
  }
}

TEST(Compile, CompilesForOtherCpus) {
  const AddOne kernel;
  for (const char* arch :
       {"x86-64", "x86-64-v3", "skylake-avx512", "znver5", "x86-64-v4+avx512vnni"}) {
    EXPECT_EQ(compile(kernel.te.kernel, {}, {TargetKind::Llvm, arch}, {}).arch, arch);
  }
}

TEST(Compile, RefusesACpuThatLlvmDoesNotKnow) {
  const AddOne kernel;
  expect_error(
      [&] {
        compile(kernel.te.kernel, {}, {TargetKind::Llvm, "pentium9"}, {});
      },
      ErrorKind::Unsupported,
      "there is no CPU pentium9; names are those of -march, as " + host_cpu() +
          " (this host), znver4, skylake-avx512 or x86-64-v3");
}

TEST(Compile, GivesTheSameBytesEachTime) {
  const Matmul kernel;
  const language::Schedule schedule = choose_schedule(kernel.te.kernel, {}, {}, {});
  const Target target{TargetKind::Llvm, "x86-64-v3"};
  const std::string first = serialize(compile(kernel.te.kernel, schedule, target, {}));
  std::vector<std::thread> compilers;
  std::atomic<int> different{0};
  for (int i = 0; i < 4; ++i) {
    compilers.emplace_back(
        [&] { different += serialize(compile(kernel.te.kernel, schedule, target, {})) != first; });
  }
  for (std::thread& compiler : compilers) {
    compiler.join();
  }
  EXPECT_EQ(different, 0);
}

TEST(Compile, RequiresRoomForTheInitialStepsOfAScan) {
  const Cumsum kernel;
  const auto artifact = compile_for_host(kernel.te.kernel, {});
  std::vector<HostTensor> tensors = {zeros(DType::Float32, {0, 5}), {}};
  expect_error(
      [&] { run_artifact(artifact, tensors); }, ErrorKind::InvalidArgument,
      "argument p0 of K: dimension 0 is 0, but must be at least 1 (initial steps of stage4)");
}

TEST(SourceOf, ShowsLoopsIrAndAssembly) {
  const AddOne kernel;
  const Target target{TargetKind::Llvm, "x86-64-v3"};
  EXPECT_EQ(source_of(kernel.te.kernel, {}, target, {}, "lowered"), kernel.te.lowered());
  EXPECT_NE(source_of(kernel.te.kernel, {}, target, {}, "llvm").find("define i32 @kiln_compact"),
            std::string::npos);
  EXPECT_NE(source_of(kernel.te.kernel, {}, target, {}, "asm").find("kiln_compact:"),
            std::string::npos);
  expect_error([&] { source_of(kernel.te.kernel, {}, target, {}, "ptx"); },
               ErrorKind::InvalidArgument,
               "there is no source ptx of a kernel for llvm; there are lowered, llvm and asm");
}

TEST(CompilerBuildId, NamesTheBuildAndLlvm) {
  const std::string id = compiler_build_id();
  EXPECT_EQ(id.find("-llvm19."), 40u) << id;  // after the 40 digits of a SHA-1
}

}  // namespace
}  // namespace kiln::testing
