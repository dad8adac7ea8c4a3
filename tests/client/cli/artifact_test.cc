// Compiled kernels in files: written over a daemon, run where there is none.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>
#include <sys/stat.h>

#include "client/cli/npy.h"
#include "tests/client/cli/command.h"
#include "tests/support/daemon.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScaled =
    "kernel scaled(A: float32[n, m], I: int64[n]) -> (B: float32[n, m], S: float32[n]) {\n"
    "  B[i, j] = A[I[i], j] * 2\n"
    "  S[i] = sum[k < m](A[i, k])\n"
    "}\n";

class ArtifactFiles : public ::testing::Test {
 protected:
  ArtifactFiles() {
    place_.write("scaled.kiln", kScaled);
    place_.write_array("a.npy", {1, 2, 3, 4, 5, 6}, {2, 3});
    write_indices({1, 0});
  }

  void write_indices(const std::vector<std::int64_t>& values) {
    cli::write_npy(place_.folder() / "i.npy",
                   Array(values, {static_cast<std::int64_t>(values.size())}));
  }

  /// Compiles with a daemon that is gone when this returns.
  void compile(const std::vector<std::string>& more = {}) {
    const testing::Daemon daemon({.program = KILND});
    place_.environment["KILN_ADDRESS"] = daemon.address();
    std::vector<std::string> arguments{"compile", "scaled.kiln", "-o", "scaled.kart"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = place_.kiln(arguments);
    place_.environment["KILN_ADDRESS"] = "unix:/nowhere/kilnd.sock";
    place_.environment["PATH"] = "/nowhere";
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    said_ = finished.out;
  }

  Finished run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"run", "scaled.kart", "--in", "A=a.npy", "--in", "I=i.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return place_.kiln(arguments);
  }

  void expect_refused(const Finished& finished, const std::string& sentence, int code = 1) const {
    EXPECT_EQ(finished.exit_code, code);
    EXPECT_EQ(finished.err, "error: " + sentence + "\n");
    EXPECT_EQ(finished.out, "");
  }

  Workplace place_;
  std::string said_;
};

TEST_F(ArtifactFiles, RunWithoutADaemon) {
  compile();
  EXPECT_EQ(said_.find("scaled: compiled for llvm in "), 0u) << said_;
  const auto bytes = std::to_string(fs::file_size(place_.folder() / "scaled.kart"));
  EXPECT_NE(said_.find("; " + bytes + " bytes in scaled.kart\n"), std::string::npos) << said_;

  const Finished finished = run({"--out", "B=b.npy", "--out", "S=s.npy"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const Array b = cli::read_npy(place_.folder() / "b.npy", float32);
  EXPECT_EQ(b.shape(), (std::vector<std::int64_t>{2, 3}));
  const auto values = b.values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{8, 10, 12, 2, 4, 6}));
  const Array s = cli::read_npy(place_.folder() / "s.npy", float32);
  EXPECT_EQ(s.values<float>()[0], 6);
  EXPECT_EQ(s.values<float>()[1], 15);
}

TEST_F(ArtifactFiles, AreKnownByHowTheyBegin) {
  compile();
  fs::rename(place_.folder() / "scaled.kart", place_.folder() / "scaled.bin");
  const Finished finished =
      place_.kiln({"run", "scaled.bin", "--in", "A=a.npy", "--in", "I=i.npy", "--out", "B=b.npy"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "S: float32[2]\n[ 6. 15.]\n");
}

TEST_F(ArtifactFiles, CheckArgumentsAndIndices) {
  compile();
  expect_refused(place_.kiln({"run", "scaled.kart", "--in", "A=a.npy"}),
                 "scaled needs I: int64[n]: give it with --in NAME=FILE.npy", 2);
  expect_refused(run({"--out", "C=c.npy"}), "scaled has no output C; it has B, S", 2);
  write_indices({0, 7});
  expect_refused(run(), "B of scaled reads index 7 of dimension 0 of A, but its extent there is 2");
  write_indices({0, 1, 0});
  expect_refused(
      run(), "argument I of scaled: dimension 0 is 3, but must be 2 (n, from dimension 0 of A)");
}

TEST_F(ArtifactFiles, TakeNoFlagsOfACompiler) {
  compile();
  expect_refused(run({"--strict"}),
                 "--strict has no effect on scaled.kart, which is compiled already", 2);
  expect_refused(run({"--device", "cuda"}),
                 "scaled.kart is compiled for llvm, so it cannot run on cuda", 2);
}

TEST_F(ArtifactFiles, ThatAreDamagedAreRefused) {
  compile();
  const std::string whole = place_.read("scaled.kart");
  for (std::size_t at : {std::size_t{30}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    place_.write("scaled.kart", damaged);
    expect_refused(run(),
                   "scaled.kart is damaged: its checksum is wrong; write it again with kiln "
                   "compile -o");
  }
  place_.write("scaled.kart", whole.substr(0, whole.size() / 2));
  expect_refused(run(),
                 "scaled.kart is damaged: it ends early; write it again with kiln compile -o");
  place_.write("scaled.kart", "");
  expect_refused(
      run(),
      "scaled.kart is no compiled kernel; write one with kiln compile FILE.kiln -o NAME.kart");
  fs::remove(place_.folder() / "scaled.kart");
  expect_refused(run(), "scaled.kart cannot be read: No such file or directory");
  fs::create_directory(place_.folder() / "scaled.kart");
  expect_refused(run(), "scaled.kart cannot be read: Is a directory");
}

TEST_F(ArtifactFiles, ForAnotherCpuSayWhatIsMissing) {
  // No CPU has the instructions of both.
  for (const char* arch : {"sapphirerapids", "bdver4"}) {
    compile({"--arch", arch});
    const Finished finished = run();
    if (finished.exit_code == 0) continue;
    EXPECT_EQ(finished.exit_code, 1);
    const std::string begin = std::string("error: scaled.kart: the kernel was compiled for ") +
                              arch + ", but this host lacks ";
    EXPECT_EQ(finished.err.substr(0, begin.size()), begin) << finished.err;
    EXPECT_TRUE(finished.err.ends_with("; compile it for a lesser CPU, as x86-64-v3\n"))
        << finished.err;
    return;
  }
  FAIL() << "this host runs code of both";
}

TEST_F(ArtifactFiles, ForAGpuNeedOne) {
  compile({"--target", "cuda", "--arch", "sm_90"});
  const Finished finished = run();
  if (finished.exit_code == 0) GTEST_SKIP() << "this host has a GPU";
  EXPECT_EQ(finished.exit_code, 3) << finished.err;
  EXPECT_EQ(finished.err.substr(0, 7), "error: ");
}

}  // namespace
}  // namespace kiln::test
