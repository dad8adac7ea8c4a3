// Compiled kernels of files, over the functions and classes that programs of users call.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/runtime.h>
#include <unistd.h>

#include "compiler/compile.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/exported_kernel.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using runtime::Tensor;

class RuntimeLibrary : public ::testing::Test {
 protected:
  RuntimeLibrary() {
    const language::TextKernel text = kernel_of(
        "kernel picked(A: float32[n, m], I: int64[n]) -> (B: float32[n, m], S: float32[n]) {\n"
        "  B[i, j] = A[I[i], j] * 2\n"
        "  S[i] = sum[k < m](A[i, k])\n"
        "}\n");
    ExportedKernel kernel;
    kernel.artifact = compile(text.kernel, {}, {TargetKind::Llvm, host_cpu()}, {});
    kernel.names = {.kernel = "picked",
                    .parameters = {"A", "I", "B", "S"},
                    .sizes = {"n", "m"},
                    .stages = {"A", "I", "B", "S"}};
    bytes_ = serialize(kernel);
    write(bytes_);
  }
  ~RuntimeLibrary() override { std::filesystem::remove(path_); }

  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  template <typename Body>
  static void expect_error(Body&& body, const std::string& reason, const std::string& sentence) {
    try {
      body();
      ADD_FAILURE() << "no error: " << sentence;
    } catch (const runtime::Error& error) {
      EXPECT_EQ(error.what(), sentence);
      EXPECT_EQ(error.reason(), reason);
      EXPECT_EQ(error.kind(), "InvalidArgument");
    }
  }

  const std::string path_ = ::testing::TempDir() + "picked" + std::to_string(::getpid()) + ".kart";
  std::string bytes_;
  std::vector<float> a_ = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> i_ = {1, 0};
  std::vector<float> b_ = std::vector<float>(6);
  std::vector<float> s_ = std::vector<float>(2);
};

TEST_F(RuntimeLibrary, RunsAKernelOfAFile) {
  const runtime::Artifact picked(path_, {.threads = 2});
  EXPECT_EQ(picked.name(), "picked");
  EXPECT_EQ(picked.target(), "llvm");
  EXPECT_EQ(picked.arch(), host_cpu());
  EXPECT_EQ(picked.sizes(), (std::vector<std::string>{"n", "m"}));
  ASSERT_EQ(picked.parameters().size(), 4u);
  EXPECT_STREQ(picked.parameters()[2].name, "B");
  EXPECT_STREQ(picked.parameters()[2].shape, "n, m");
  EXPECT_EQ(picked.parameters()[2].is_output, 1);

  const std::vector<Tensor> inputs = {{a_.data(), {2, 3}}, {i_.data(), {2}}, {}, {}};
  EXPECT_EQ(picked.shapes(inputs), (std::vector<std::vector<int64_t>>{{2, 3}, {2}, {2, 3}, {2}}));
  EXPECT_GT(picked({{a_.data(), {2, 3}}, {i_.data(), {2}}, {b_.data(), {2, 3}}, {s_.data(), {2}}}),
            0);
  EXPECT_EQ(b_, (std::vector<float>{8, 10, 12, 2, 4, 6}));
  EXPECT_EQ(s_, (std::vector<float>{6, 15}));
  // The columns of A as rows.
  std::vector<float> sums(3);
  std::vector<int64_t> rows = {0, 1, 2};
  picked(
      {{a_.data(), {3, 2}, {1, 3}}, {rows.data(), {3}}, {b_.data(), {3, 2}}, {sums.data(), {3}}});
  EXPECT_EQ(sums, (std::vector<float>{5, 7, 9}));
  // And outputs with gaps, backwards.
  std::vector<float> apart(12, -1);
  picked(
      {{a_.data(), {2, 3}}, {i_.data(), {2}}, {apart.data(), {2, 3}, {6, 2}}, {&s_[1], {2}, {-1}}});
  EXPECT_EQ(apart, (std::vector<float>{8, -1, 10, -1, 12, -1, 2, -1, 4, -1, 6, -1}));
  EXPECT_EQ(s_, (std::vector<float>{15, 6}));
}

TEST_F(RuntimeLibrary, RefusesWrongArgumentsInTheNamesOfTheKernel) {
  const runtime::Artifact picked(path_);
  const Tensor a(a_.data(), {2, 3});
  const Tensor b(b_.data(), {2, 3});
  const Tensor i(i_.data(), {2});
  const Tensor s(s_.data(), {2});
  expect_error(
      [&] {
        picked({a, i});
      },
      "ARGUMENT_COUNT", "picked takes 4 arguments (A, I, B, S), but got 2");
  expect_error(
      [&] {
        picked({a, i, b, {}});
      },
      "ARGUMENT_MISSING", "argument S of picked has no memory");
  expect_error(
      [&] {
        picked({a, {99, i_.data(), {2}}, b, s});
      },
      "ARGUMENT_TYPE", "argument I of picked has element type 99, which there is not");
  expect_error(
      [&] {
        picked({a, i, b, s}, {{"q", 1}});
      },
      "SIZE_UNKNOWN", "picked has no size q; its sizes are n, m");
  i_[1] = 2;
  expect_error(
      [&] {
        picked({a, i, b, s});
      },
      "INDEX_OUT_OF_RANGE",
      "B of picked reads index 2 of dimension 0 of A, but its extent there is 2");
  EXPECT_THROW(Tensor(a_.data(), {2, 3}, {1}), std::invalid_argument);
}

/// Whatever bit of a whole kernel is damaged: a sentence, and nothing of it is run.
TEST_F(RuntimeLibrary, RefusesAFileWithAnyBitFlipped) {
  for (size_t at = 0; at < bytes_.size(); at += 7) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    write(damaged);
    try {
      const runtime::Artifact loaded(path_);
      ADD_FAILURE() << "byte " << at;
    } catch (const runtime::Error& error) {
      EXPECT_EQ(std::string(error.what()).find(path_), 0u) << error.what();
      EXPECT_EQ(error.reason().substr(0, 9), "ARTIFACT_") << error.what();
    }
  }
}

TEST_F(RuntimeLibrary, RefusesCodeForAnotherCpu) {
  ExportedKernel kernel = deserialize_exported(bytes_, path_);
  kernel.artifact.arch = "laterlake";
  kernel.artifact.features = {"avx1024", "avx2048"};
  write(serialize(kernel));
  expect_error([&] { const runtime::Artifact loaded(path_); }, "ARTIFACT_TARGET",
               path_ +
                   ": the kernel was compiled for laterlake, but this host lacks avx1024, "
                   "avx2048; compile it for a lesser CPU, as x86-64-v3");
}

TEST_F(RuntimeLibrary, SaysWhatFailedInEachThread) {
  EXPECT_EQ(kiln_artifact_load("/nowhere/f.kart", 0, 0), nullptr);
  const KilnError error = kiln_runtime_error();
  EXPECT_STREQ(error.message, "/nowhere/f.kart cannot be read: No such file or directory");
  EXPECT_STREQ(error.reason, "ARTIFACT_FILE");
  EXPECT_STREQ(error.kind, "NotFound");
}

}  // namespace
}  // namespace kiln::testing
