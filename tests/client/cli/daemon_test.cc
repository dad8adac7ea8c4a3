#include "tests/support/daemon.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/cli/npy.h"
#include "tests/client/cli/command.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

/// `kiln` on the examples, against a real daemon that all tests of this file share.
class Examples : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { daemon_ = new testing::Daemon({.program = KILND}); }
  static void TearDownTestSuite() {
    delete daemon_;
    daemon_ = nullptr;
  }

  Examples() {
    place_.environment["KILN_ADDRESS"] = daemon_->address();
    for (const auto& entry : fs::directory_iterator(fs::path(KILN_SOURCE) / "examples")) {
      if (entry.path().extension() == ".kiln") fs::copy(entry, place_.folder());
    }
  }

  /// Values without a pattern that a wrong index could repeat.
  std::vector<float> make(const std::string& file, std::int64_t rows, std::int64_t columns) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      values.push_back(static_cast<float>(i * 7919 % 1009) / 1009);
    }
    place_.write_array(file, values, {rows, columns});
    return values;
  }

  std::vector<float> take(const std::string& file) {
    const Array array = cli::read_npy(place_.folder() / file, float32);
    const auto values = array.values<float>();
    return {values.begin(), values.end()};
  }

  std::string output_of(const std::vector<std::string>& arguments) {
    const Finished finished = place_.kiln(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out;
  }

  static inline testing::Daemon* daemon_ = nullptr;
  Workplace place_;
};

TEST_F(Examples, CumsumAddsInOrder) {
  const std::vector<float> x = make("x.npy", 10, 100);
  output_of({"run", "cumsum.kiln", "--in", "X=x.npy", "--out", "S=s.npy"});
  std::vector<float> sums(100, 0);
  const std::vector<float> s = take("s.npy");
  for (std::size_t t = 0; t < 10; ++t) {
    for (std::size_t i = 0; i < 100; ++i) {
      sums[i] = t == 0 ? x[i] : sums[i] + x[t * 100 + i];
      ASSERT_EQ(s[t * 100 + i], sums[i]) << t << ", " << i;
    }
  }
}

TEST_F(Examples, RemainingAddsBackwardsAlongRows) {
  const std::vector<float> x = make("x.npy", 10, 100);
  output_of({"run", "remaining.kiln", "--in", "X=x.npy", "--out", "S=s.npy"});
  const std::vector<float> s = take("s.npy");
  for (std::size_t i = 0; i < 10; ++i) {
    float sum = 0;
    for (std::size_t t = 100; t-- > 0;) {
      sum = t == 99 ? x[i * 100 + t] : sum + x[i * 100 + t];
      ASSERT_EQ(s[i * 100 + t], sum) << i << ", " << t;
    }
  }
}

TEST_F(Examples, MatmulIsTheSameWithAndWithoutItsSchedule) {
  const std::vector<float> a = make("a.npy", 37, 50);
  const std::vector<float> b = make("b.npy", 50, 33);
  const std::vector<std::string> run{"run", "matmul.kiln", "--in", "A=a.npy", "--in", "B=b.npy"};
  for (const std::string flag : {"--strict", "--no-schedule", "--no-auto"}) {
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), {flag, "--out", "C=c.npy"});
    output_of(arguments);
    const std::vector<float> c = take("c.npy");
    for (std::size_t i = 0; i < 37; ++i) {
      for (std::size_t j = 0; j < 33; ++j) {
        double expected = 0;
        for (std::size_t k = 0; k < 50; ++k)
          expected += double{a[i * 50 + k]} * b[k * 33 + j];
        ASSERT_NEAR(c[i * 33 + j], expected, 1e-5 * expected) << flag << " " << i << ", " << j;
      }
    }
  }
}

TEST_F(Examples, SoftmaxSumsToOne) {
  const std::vector<float> x = make("x.npy", 5, 40);
  output_of({"run", "softmax.kiln", "--in", "X=x.npy", "--out", "Y=y.npy"});
  const std::vector<float> y = take("y.npy");
  for (std::size_t i = 0; i < 5; ++i) {
    double total = 0;
    for (std::size_t j = 0; j < 40; ++j)
      total += std::exp(double{x[i * 40 + j]});
    for (std::size_t j = 0; j < 40; ++j) {
      ASSERT_NEAR(y[i * 40 + j], std::exp(double{x[i * 40 + j]}) / total, 1e-6);
    }
  }
}

TEST_F(Examples, ElementwisePrintsWhatItComputes) {
  place_.write_array("x.npy", {-2, -1, 0, 1, 2}, {5});
  EXPECT_EQ(output_of({"run", "elementwise.kiln", "--kernel", "relu", "--in", "x=x.npy"}),
            "y: float32[5]\n[0. 0. 0. 1. 2.]\n");
  EXPECT_EQ(output_of({"run", "elementwise.kiln", "--kernel", "saxpy", "--in", "x=x.npy", "--in",
                       "y=x.npy"}),
            "out: float32[5]\n[-6. -3.  0.  3.  6.]\n");
}

TEST_F(Examples, JacobiStepsUntilNothingChanges) {
  std::vector<float> plate(16 * 16, 0);
  for (std::size_t j = 0; j < 16; ++j)
    plate[j] = 1;
  place_.write_array("u.npy", plate, {16, 16});
  output_of({"run", "jacobi.kiln", "--in", "u=u.npy", "--steps", "1000", "--out", "u=warm.npy",
             "--out", "change=change.npy"});
  const Array change = cli::read_npy(place_.folder() / "change.npy", float64);
  const auto changes = change.values<double>();
  ASSERT_GT(changes.size(), 10U);
  EXPECT_LT(changes.back(), 1e-4);
  EXPECT_GE(changes[changes.size() - 2], 1e-4);
  const std::vector<float> warm = take("warm.npy");
  for (std::size_t i = 1; i < 15; ++i) {
    for (std::size_t j = 1; j < 15; ++j) {
      const float mean = (warm[(i - 1) * 16 + j] + warm[(i + 1) * 16 + j] + warm[i * 16 + j - 1] +
                          warm[i * 16 + j + 1]) /
                         4;
      ASSERT_NEAR(warm[i * 16 + j], mean, 1e-3) << i << ", " << j;
    }
  }
}

TEST_F(Examples, InspectPrintsAndDrawsWhatAStepRuns) {
  const std::string text =
      output_of({"inspect", "jacobi.kiln", "--shape", "u=64,64", "--svg", "plan.svg"});
  EXPECT_TRUE(text.starts_with("jacobi: ")) << text;
  EXPECT_NE(text.find("v: float32[64, 64], becomes u"), std::string::npos) << text;
  const std::string picture = place_.read("plan.svg");
  EXPECT_TRUE(picture.starts_with("<svg ")) << picture;
  EXPECT_NE(picture.find("<title>v: float32[64, 64], becomes u</title>"), std::string::npos);
  const std::string json = output_of({"inspect", "jacobi.kiln", "--shape", "u=64,64", "--json"});
  EXPECT_TRUE(json.starts_with("{\n  \"program\": \"jacobi\",")) << json;

  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& error) {
    const Finished finished = place_.kiln(arguments);
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "error: " + error + "\n");
  };
  refused({"inspect", "jacobi.kiln"},
          "jacobi needs the shape of u: give it with --shape u=ROWS,COLUMNS");
  refused({"inspect", "jacobi.kiln", "--shape", "u"}, "--shape u: write NAME=ROWS,COLUMNS");
  refused({"inspect", "jacobi.kiln", "--shape", "u=3,x"},
          "--shape of u must be sizes with commas between, as in u=3,4, or u=() of a number");
  refused({"inspect", "jacobi.kiln", "--shape", "u=3,4", "--shape", "w=1"},
          "w is no input of jacobi; its inputs are u");
  refused({"inspect", "matmul.kiln"},
          "matmul.kiln has no program; the loops of a kernel are printed by kiln lower");
}

TEST_F(Examples, ProgramsSayWhatTheyLack) {
  const auto error_of = [&](const std::vector<std::string>& arguments) {
    const Finished finished = place_.kiln(arguments);
    EXPECT_NE(finished.exit_code, 0);
    return finished.err;
  };
  EXPECT_EQ(error_of({"run", "jacobi.kiln"}),
            "error: jacobi needs parameter u: give it with --in NAME=FILE.npy\n");
  make("u.npy", 4, 4);
  EXPECT_EQ(error_of({"run", "jacobi.kiln", "--in", "u=u.npy", "--in", "x=u.npy"}),
            "error: jacobi has no input x\n");
  EXPECT_EQ(error_of({"run", "jacobi.kiln", "--program", "heat", "--in", "u=u.npy"}),
            "error: jacobi.kiln has no program heat; it has jacobi\n");
  EXPECT_EQ(
      error_of({"run", "jacobi.kiln", "--kernel", "relax", "--steps", "3", "--in", "u=u.npy"}),
      "error: only programs take steps, but a kernel of jacobi.kiln is run; leave --steps, "
      "--epochs, --batch, --first-step and --stop-on-nan out\n");
  EXPECT_EQ(error_of({"run", "jacobi.kiln", "--in", "u=u.npy", "--size", "n=4"}),
            "error: a program takes no --size; its sizes are those of its arrays\n");
  EXPECT_EQ(error_of({"run", "jacobi.kiln", "--in", "u=u.npy", "--in", "u=u.npy"}),
            "error: --in names u twice\n");
  make("wide.npy", 16, 16);
  EXPECT_EQ(error_of({"run", "jacobi.kiln", "--in", "u=wide.npy", "--steps", "2"}).substr(0, 40),
            "error: done of jacobi was still 0 after ");
}

TEST_F(Examples, LowerPrintsTheLoops) {
  EXPECT_EQ(output_of({"lower", "cumsum.kiln"}),
            "fn cumsum(X: float32[m, n], S: float32[m, n]) {\n"
            "  for i in 0..n {\n"
            "    S[0, i] = X[0, i]\n"
            "  }\n"
            "  for S.idx in 0..m - 1 {\n"
            "    for i_1 in 0..n {\n"
            "      S[S.idx + 1, i_1] = S[S.idx, i_1] + X[S.idx + 1, i_1]\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(Examples, DifferentiatePrintsTheGradients) {
  EXPECT_EQ(output_of({"differentiate", "matmul.kiln", "--by", "B"}),
            "kernel matmul(A: float32[n, l], B: float32[l, m], C_head: float32[n, m])"
            " -> (B_grad: float32[l, m]) {\n"
            "  B_grad[k, j] = sum[i < n](C_head[i, j] * A[i, k])\n"
            "}\n");
}

TEST_F(Examples, CompileKnowsWhereTheKernelCameFrom) {
  EXPECT_NE(output_of({"compile", "cumsum.kiln", "--fast"}).find("(cache: compiled)"),
            std::string::npos);
  EXPECT_NE(output_of({"compile", "cumsum.kiln", "--fast"}).find("(cache: memory)"),
            std::string::npos);
  EXPECT_NE(output_of({"compile", "matmul.kiln", "--report"}).find("guards: 0\n"),
            std::string::npos);
  EXPECT_NE(output_of({"compile", "matmul.kiln", "--emit", "llvm"}).find("define"),
            std::string::npos);
}

TEST_F(Examples, CudaCompilesWithoutAGpu) {
  const std::vector<std::string> compile{
      "compile", "elementwise.kiln", "--kernel", "saxpy",   "--target",
      "cuda",    "--arch",           "sm_90",    "--report"};
  const std::string doctor = output_of({"doctor"});
  const bool nvrtc = doctor.find("ok       nvrtc") != std::string::npos;
  const Finished finished = place_.kiln(compile);
  if (nvrtc) {
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.out.find("registers"), std::string::npos) << finished.out;
  } else {
    EXPECT_EQ(finished.exit_code, 3);
    EXPECT_NE(finished.err.find("NVRTC"), std::string::npos) << finished.err;
  }
}

TEST_F(Examples, CudaNeedsADeviceToRun) {
  if (output_of({"doctor"}).find("ok       cuda device") != std::string::npos) {
    GTEST_SKIP() << "this host has a GPU";
  }
  place_.write_array("x.npy", {1}, {1});
  const Finished finished = place_.kiln(
      {"run", "elementwise.kiln", "--kernel", "relu", "--in", "x=x.npy", "--device", "cuda"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.out, "");
  EXPECT_NE(finished.err.find("error: "), std::string::npos);
}

TEST_F(Examples, WrongShapesAreExplained) {
  make("a.npy", 5, 4);
  const Finished finished =
      place_.kiln({"run", "matmul.kiln", "--in", "A=a.npy", "--in", "B=a.npy"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "error: argument B of matmul: dimension 0 is 5, but must be 4 (l, from dimension 1 of "
            "A)\n");
}

TEST_F(Examples, JobsOutliveTheCommandThatSubmitsThem) {
  const std::vector<float> x = make("x.npy", 600, 1000);  // 2.4 MB: streamed
  const std::string printed = output_of({"submit", "cumsum.kiln", "--in", "X=x.npy"});
  const std::string id = printed.substr(0, printed.size() - 1);
  output_of({"wait", id, "--out", "S=s.npy"});
  EXPECT_EQ(take("s.npy")[999], x[999]);
  EXPECT_EQ(take("s.npy")[1999], x[999] + x[1999]);
  EXPECT_NE(output_of({"jobs"}).find(id), std::string::npos);
}

TEST_F(Examples, DoctorFindsTheCpu) {
  EXPECT_NE(output_of({"doctor"}).find("ok       cpu "), std::string::npos);
}

TEST_F(Examples, ExplainHasTheCostOfEachStageAndItsCode) {
  const std::vector<std::string> command = {"explain", "softmax.kiln", "--size",
                                            "n=64",    "--size",       "m=128"};
  const std::string text = output_of(command);
  for (const char* stage : {"largest", "E", "total", "Y", "softmax"})
    EXPECT_NE(text.find("\n" + std::string(stage) + " "), std::string::npos) << text;
  EXPECT_NE(text.find("sizes: m = 128, n = 64\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n       llvm  "), std::string::npos) << text;
  EXPECT_NE(text.find("\n        asm  "), std::string::npos) << text;
  std::vector<std::string> to_page = command;
  to_page.insert(to_page.end(), {"--html", "page.html"});
  EXPECT_EQ(output_of(to_page).find("llvm"), std::string::npos);
  EXPECT_NE(place_.read("page.html").find("<h2>asm</h2>"), std::string::npos);
}

TEST_F(Examples, ExplainTakesSizesAndOperatorsByName) {
  const std::string text = output_of({"explain", "softmax", "--no-run", "--no-code"});
  EXPECT_NE(text.find("(taken where not given: --size NAME=NUMBER, or --in)"), std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with(
      "operations and bytes are counted; times need a run on a device that is here\n"))
      << text;
}

TEST_F(Examples, ScheduleExplainHasEachCandidateWithItsBottlenecks) {
  const std::vector<std::string> command = {"schedule",      "explain", "matmul.kiln",
                                            "--no-schedule", "--top",   "3"};
  const std::string text = output_of(command);
  EXPECT_EQ(text.substr(0, 9), "machine: ") << text;
  EXPECT_NE(text.find("\nSCHEDULE "), std::string::npos) << text;
  EXPECT_NE(text.find(" BOUND BY "), std::string::npos) << text;
  EXPECT_NE(text.find(" + THREADS"), std::string::npos) << text;
  // Which are the first three depends on what the host was measured at.
  std::vector<std::string> all = command;
  all.back() = "100";
  EXPECT_NE(output_of(all).find("\nC: outer products("), std::string::npos) << output_of(all);
  EXPECT_NE(text.find(" more are predicted to take longer: --top "), std::string::npos) << text;
  EXPECT_EQ(text.find("MEASURED"), std::string::npos) << text;
  std::vector<std::string> measured = command;
  measured.insert(measured.end(),
                  {"--measure", "--steps", "--size", "m=64", "--size", "n=64", "--size", "l=64"});
  const std::string ran = output_of(measured);
  EXPECT_NE(ran.find(" MEASURED "), std::string::npos) << ran;
  EXPECT_NE(ran.find("\n  split("), std::string::npos) << ran;
}

TEST_F(Examples, ScheduleExplainPlansForCoresThatAreNotHere) {
  const auto seconds = [&](const std::string& threads) {
    const std::string text = output_of({"schedule", "explain", "matmul.kiln", "--no-schedule",
                                        "--threads", threads, "--arch", "znver4", "--json"});
    const std::string key = "\"seconds\": ";
    return std::stod(text.substr(text.find(key) + key.size()));
  };
  EXPECT_LT(seconds("16"), seconds("1") / 4);
}

TEST_F(Examples, ScheduleExplainPlansForACpuWhoseCodeIsNotMade) {
  const std::string text = output_of({"schedule", "explain", "matmul.kiln", "--no-schedule",
                                      "--arch", "neoverse-v2", "--top", "1", "--steps"});
  EXPECT_TRUE(text.starts_with("machine: Neoverse V2: 32 vectors of 16 bytes, 4 multiply-adds"))
      << text;
  EXPECT_NE(text.find("\n  vectorize("), std::string::npos) << text;
}

TEST_F(Examples, ScheduleExplainHasTheTermsOfAGpuThatIsNotHere) {
  const std::string text =
      output_of({"schedule", "explain", "matmul.kiln", "--no-schedule", "--target", "cuda",
                 "--arch", "sm_89", "--size", "m=512", "--size", "n=512", "--size", "l=512"});
  EXPECT_TRUE(text.starts_with("machine: L4: 58 multiprocessors of 128 float32 lanes")) << text;
  for (const char* const term : {" BOUND BY ", " MULTIPLY-ADDS ", " ISSUE ", " LATENCY ",
                                 " SHARED ", " L2 ", " MEMORY ", " + LAUNCHES "})
    EXPECT_NE(text.find(term), std::string::npos) << term << "\n" << text;
  EXPECT_NE(text.find("\nC: a tile a block, "), std::string::npos) << text;
}

TEST_F(Examples, BenchTimesAKernelAloneAndInCalls) {
  make("x.npy", 10, 100);
  const std::string text =
      output_of({"bench", "cumsum.kiln", "--in", "X=x.npy", "--calls", "10", "--json"});
  const auto number = [&](const std::string& key) {
    const size_t at = text.find("\"" + key + "\": ");
    return at == std::string::npos ? 0.0 : std::stod(text.substr(at + key.size() + 4));
  };
  EXPECT_GT(number("back_to_back"), 0) << text;
  EXPECT_GT(number("in_a_call"), 0) << text;
  EXPECT_GT(number("call"), number("in_a_call")) << text;
  EXPECT_EQ(number("n"), 100) << text;
  const std::string table = output_of({"bench", "matmul.kiln", "--size", "n=20", "--calls", "5"});
  EXPECT_NE(table.find("BACK TO BACK"), std::string::npos) << table;
  EXPECT_NE(table.find("n = 20"), std::string::npos) << table;
}

TEST_F(Examples, ProfileDrawsWhatEachProcessDid) {
  make("x.npy", 10, 100);
  output_of({"profile", "cumsum.kiln", "--in", "X=x.npy", "--html", "calls.html"});
  const std::string page = place_.read("calls.html");
  EXPECT_NE(page.find("<h1>cumsum on cpu</h1>"), std::string::npos) << page;
  const std::string alone = page.substr(page.find("<h2>The last call</h2>"));
  EXPECT_NE(alone.find("<title>kernel cumsum: "), std::string::npos) << alone;
}

}  // namespace
}  // namespace kiln::test
