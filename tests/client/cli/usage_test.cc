#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/connection.h>

#include "tests/client/cli/command.h"

namespace kiln::test {
namespace {

constexpr const char* kTwoKernels =
    "kernel inc(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] + 1 }\n"
    "kernel add(A: float32[n], C: float32[n, m]) -> (B: float32[n, m]) { B[i, j] = A[i] + C[i, j] "
    "}\n";

/// What is wrong before any service is asked.
class Usage : public ::testing::Test {
 protected:
  Usage() {
    place_.write("two.kiln", kTwoKernels);
    place_.write("one.kiln", "kernel inc(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] + 1 }\n");
    place_.write_array("a.npy", {1, 2, 3}, {3});
  }

  /// The command ends with exit code 2 and this one line.
  void refused(const std::vector<std::string>& arguments, const std::string& message) {
    const Finished finished = place_.kiln(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.err, "error: " + message + "\n");
    EXPECT_EQ(finished.out, "");
  }

  Workplace place_;
};

TEST_F(Usage, NeedsACommand) {
  refused({"bake"},
          "there is no command bake; known: run, compile, bench, profile, lower, differentiate, "
          "inspect, "
          "schedule, "
          "fmt, "
          "submit, wait, result, jobs, cancel, devices, describe, tensors, doctor, explain, login, "
          "logout, "
          "cache, "
          "serve, top, "
          "tune, "
          "version, "
          "completion");
  refused({"runn", "one.kiln"}, "there is no command runn; did you mean run");
  refused({"tun", "one.kiln"}, "there is no command tun; did you mean tune");
}

TEST_F(Usage, SaysWhichCommandsMayFollow) {
  refused({"cache"},
          "kiln cache needs one of list, size, clear, prune, warm; kiln cache --help shows how");
  refused({"cache", "stats", "X=x.npy"},
          "kiln cache has no stats; known: list, size, clear, prune, warm; kiln cache --help shows "
          "how");
  refused({"cache", "lst"},
          "kiln cache has no lst; did you mean list; kiln cache --help shows how");
}

TEST_F(Usage, WithoutACommandShowsTheFirstOnes) {
  const Finished finished = place_.kiln({});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  for (const char* command : {"doctor", "run", "lower", "compile", "submit"}) {
    EXPECT_NE(finished.out.find(std::string("  kiln ") + command + " "), std::string::npos);
  }
}

TEST_F(Usage, ExplainsAnErrorByItsReason) {
  const Finished finished = place_.kiln({"explain", "split-factor"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_NE(finished.out.find("the factor must be at least 1\n"), std::string::npos);
  EXPECT_NE(finished.out.find("InvalidArgument, SPLIT_FACTOR, by the call. Instead: "),
            std::string::npos);
  EXPECT_NE(finished.out.find("  # <-\n"), std::string::npos);
  EXPECT_EQ(finished.out.find('`'), std::string::npos);
  EXPECT_NE(place_.kiln({"explain"}).out.find("\nSPLIT_FACTOR "), std::string::npos);
  EXPECT_NE(place_.kiln({"explain", "SPLIT_FACTOR", "--json"}).out.find("\"reason\": "),
            std::string::npos);
}

TEST_F(Usage, NamesTheReasonNearest) {
  const Finished finished = place_.kiln({"explain", "SPLIT_FACTORS"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "error: no error has the reason SPLIT_FACTORS; did you mean SPLIT_FACTOR\n");
  EXPECT_EQ(place_.kiln({"explain", "XYZZY"}).err,
            "error: no error has the reason XYZZY; kiln explain lists all reasons\n");
  EXPECT_EQ(place_.kiln({"explain", "softmx"}).err,
            "error: unknown operator softmx; did you mean softmax\n");
  refused({"explain", "--html", "page.html"},
          "--html draws a kernel: name its file, or an operator");
}

TEST_F(Usage, VersionIsAFlagToo) {
  const Finished finished = place_.kiln({"--version"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "kiln " + client::version() + "\n");
}

TEST_F(Usage, ATimeoutIsAboveZero) {
  refused({"run", "one.kiln", "--timeout", "0"},
          "--timeout must be a number above 0, but got 0; kiln run --help shows how");
  refused({"submit", "one.kiln", "--timeout=-1"},
          "--timeout must be a number above 0, but got -1; kiln submit --help shows how");
}

TEST_F(Usage, OfSeveralProgramsOneIsChosen) {
  place_.write("programs.kiln",
               std::string(kTwoKernels) +
                   "program once { input A  B = inc(A)  output B }\n"
                   "program twice { input A  B = inc(A)  C = inc(B)  output C }\n");
  refused(
      {"run", "programs.kiln"},
      "programs.kiln has several programs: choose one of once, twice with --program, or a kernel "
      "with --kernel");
  refused({"run", "programs.kiln", "--program", "thrice"},
          "programs.kiln has no program thrice; it has once, twice");
  refused({"run", "one.kiln", "--program", "once"}, "one.kiln has no program once; it has none");
  refused({"run", "programs.kiln", "--program", "once"},
          "once needs input A: give it with --in NAME=FILE.npy");
}

TEST_F(Usage, StandardInputAndOutputAreOneThingEach) {
  place_.input = "one.kiln";
  refused(
      {"run", "-", "--in", "A=-"},
      "the kernel file and an input cannot both be read from standard input; give one of them a "
      "file");
  const Finished json =
      place_.kiln({"run", "one.kiln", "--in", "A=a.npy", "--out", "B=-", "--json"});
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_NE(
      json.out.find("--json and B cannot both go to standard output; give one of them a file"),
      std::string::npos);
}

TEST_F(Usage, CompletesCommandsAndFlags) {
  const std::string bash = place_.kiln({"completion", "bash"}).out;
  EXPECT_NE(bash.find("words=\"run compile bench profile lower"), std::string::npos);
  EXPECT_NE(bash.find("    tune) words=\""), std::string::npos);
  EXPECT_NE(bash.find("--trials"), std::string::npos);
  EXPECT_NE(place_.kiln({"completion", "fish"})
                .out.find("'__fish_seen_subcommand_from run' -l timeout -d "),
            std::string::npos);
  refused({"completion", "tcsh"},
          "SHELL must be one of bash, zsh, fish, but got tcsh; kiln completion --help shows how");
}

TEST_F(Usage, NeedsAFile) { refused({"run"}, "FILE is required; kiln run --help shows how"); }

TEST_F(Usage, KnowsItsFlags) {
  refused({"run", "one.kiln", "--speed"},
          "kiln run has no flag --speed; kiln run --help shows how");
  refused({"run", "one.kiln", "--time-out", "3"},
          "kiln run has no flag --time-out; did you mean --timeout; kiln run --help shows how");
  refused({"run", "one.kiln", "two.kiln"},
          "kiln run takes no two.kiln here; kiln run --help shows how");
  refused({"run", "one.kiln", "X=x.npy"},
          "kiln run takes no X=x.npy here; did you mean --in X=x.npy; kiln run --help shows how");
  refused({"run", "one.kiln", "n=8"},
          "kiln run takes no n=8 here; did you mean --size n=8; kiln run --help shows how");
  refused({"jobs", "X=x.npy"}, "kiln jobs takes no X=x.npy here; kiln jobs --help shows how");
  refused({"compile", "one.kiln", "--emit", "ptx"},
          "ptx is code of a GPU: add --target cuda, and --arch sm_90 where the service has none");
  refused({"compile", "one.kiln", "--emit", "wasm"},
          "--emit must be one of lowered, llvm, asm, cuda, ptx, tile, but got wasm; kiln compile "
          "--help shows how");
  refused({"tune", "one.kiln", "--trials", "-3"},
          "--trials must be a whole number of 0 or more, but got -3; kiln tune --help shows how");
  refused({"tune", "one.kiln", "--seconds=-1"},
          "--seconds must be a number of 0 or more, but got -1; kiln tune --help shows how");
  refused({"tune", "one.kiln", "--seconds", "soon"},
          "--seconds must be a number of 0 or more, but got soon; kiln tune --help shows how");
}

TEST_F(Usage, NamesTheFirstOfSeveralMistakes) {
  refused({"run", "--speed", "--timeout", "soon"},
          "kiln run has no flag --speed; kiln run --help shows how");
  refused({"run", "one.kiln", "--speed", "3", "--timeout", "soon"},
          "kiln run has no flag --speed; kiln run --help shows how");
  refused({"run", "one.kiln", "--timeout", "soon", "--speed"},
          "--timeout must be a number above 0, but got soon; kiln run --help shows how");
  refused({"tune", "one.kiln", "--seconds", "soon", "--trials", "many"},
          "--seconds must be a number of 0 or more, but got soon; kiln tune --help shows how");
  refused({"tune", "one.kiln", "--trials", "many", "--seconds", "soon"},
          "--trials must be a whole number of 0 or more, but got many; kiln tune --help shows how");
  refused({"run", "one.kiln", "two.kiln", "--speed"},
          "kiln run takes no two.kiln here; kiln run --help shows how");
  refused({"--speed", "run"}, "kiln has no flag --speed; kiln --help shows how");
}

TEST_F(Usage, WantsOneValueAFlag) {
  refused({"run", "one.kiln", "--kernel"},
          "--kernel needs a value: which kernel, where the file has several; kiln run --help shows "
          "how");
  refused({"compile", "one.kiln", "--target", "--report"},
          "--target needs a value: llvm (or cpu), or cuda; kiln compile --help shows how");
  refused({"run", "one.kiln", "--timeout", "1", "--timeout", "2"},
          "--timeout is given 2 times; give it once; kiln run --help shows how");
}

TEST_F(Usage, KnowsACommandInAnotherPlace) {
  refused({"help"}, "help is a flag: kiln --help, or kiln run --help");
  refused({"help", "run"}, "help is a flag: kiln --help, or kiln run --help");
  refused({"jobs", "wait", "job-1"},
          "kiln jobs takes no wait here; did you mean kiln wait; kiln jobs --help shows how");
}

TEST_F(Usage, ListsInputsThatAreNotGiven) {
  refused({"run", "two.kiln", "--kernel", "add"},
          "add needs A: float32[n], C: float32[n, m]: give them with --in NAME=FILE.npy");
  refused({"run", "two.kiln", "--kernel", "add", "--in", "A=a.npy"},
          "add needs C: float32[n, m]: give it with --in NAME=FILE.npy");
}

TEST_F(Usage, ChoosesAmongKernels) {
  refused({"run", "two.kiln"},
          "two.kiln has several kernels: choose one of inc, add with --kernel");
  refused({"run", "two.kiln", "--kernel", "mul"}, "two.kiln has no kernel mul; it has inc, add");
}

TEST_F(Usage, KnowsTheNamesOfTheKernel) {
  refused({"run", "one.kiln", "--in", "A=a.npy", "--in", "X=a.npy"}, "inc has no input X");
  refused({"run", "one.kiln", "--in", "A=a.npy", "--out", "C=c.npy"},
          "inc has no output C; it has B");
  refused({"run", "one.kiln", "--in", "A=a.npy", "--size", "k=3"},
          "inc has no size k; its sizes are n");
}

TEST_F(Usage, WantsPairs) {
  refused({"run", "one.kiln", "--in", "a.npy"}, "--in a.npy: write NAME=FILE.npy");
  refused({"run", "one.kiln", "--in", "A=a.npy", "--out", "=c.npy"},
          "--out =c.npy: write NAME=FILE.npy");
  refused({"run", "one.kiln", "--in", "A=a.npy", "--size", "n"}, "--size n: write NAME=NUMBER");
  refused({"run", "one.kiln", "--in", "A=a.npy", "--size", "n=3x"},
          "--size n=3x: 3x is no whole number");
  refused({"run", "one.kiln", "--in", "A=a.npy", "--in", "A=a.npy"}, "--in names A twice");
}

TEST_F(Usage, KnowsDevicesAndTargets) {
  refused({"run", "one.kiln", "--device", "tpu"},
          "there is no device tpu; known are cpu, cuda:0 and further GPUs by their numbers");
  refused({"compile", "one.kiln", "--target", "tpu"},
          "there is no target tpu; known are llvm (or cpu) and cuda");
}

TEST_F(Usage, TunesOnTheFirstGpu) {
  refused({"tune", "one.kiln", "--device", "cuda:1"},
          "tune measures on the first GPU, and what it finds serves all; leave the number out of "
          "--device cuda:1");
}

TEST_F(Usage, InterpretsOnTheCpuOnly) {
  for (const char* flag : {"--interpret", "--check-nan"}) {
    refused({"run", "one.kiln", "--device", "cuda", flag},
            "the interpreter runs on the CPU; leave --device cuda out");
  }
}

TEST_F(Usage, IsToldInJsonToo) {
  const Finished finished = place_.kiln({"run", "two.kiln", "--json"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out,
            "{\n"
            "  \"error\": {\n"
            "    \"kind\": \"InvalidArgument\",\n"
            "    \"reason\": \"USAGE\",\n"
            "    \"message\": \"two.kiln has several kernels: choose one of inc, add with "
            "--kernel\",\n"
            "    \"notes\": [],\n"
            "    \"file\": \"\",\n"
            "    \"line\": 0\n"
            "  }\n"
            "}\n");
  EXPECT_EQ(finished.err, "");
}

TEST_F(Usage, HelpIsNoMistake) {
  const Finished finished = place_.kiln({"run", "--help"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_NE(finished.out.find("--timings"), std::string::npos);
}

TEST_F(Usage, MissingFilesAreWrongRequests) {
  const Finished finished = place_.kiln({"run", "three.kiln"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "error: three.kiln cannot be read: there is no such file, or no right to read it\n");
}

TEST_F(Usage, SyntaxErrorsShowThePlace) {
  place_.write("wrong.kiln", "kernel k(A: float32[n]) -> (B: float32[n]) {\n  B[i] = A[i] +\n}\n");
  const Finished finished = place_.kiln({"run", "wrong.kiln"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "error: expected an expression, but found }\n"
            "  line 3, column 1\n"
            "  }\n"
            "  ^\n"
            "  at wrong.kiln:3\n");
}

TEST_F(Usage, FormatsFilesInPlace) {
  place_.write("loose.kiln", "# inc\nkernel inc(A: float32[n])->(B: float32[n]) { B[i]=A[i]+1 }\n");
  const Finished check = place_.kiln({"fmt", "--check", "loose.kiln"});
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_EQ(check.out, "loose.kiln\n");
  EXPECT_EQ(place_.kiln({"fmt", "loose.kiln", "one.kiln"}).out, "loose.kiln\none.kiln\n");
  EXPECT_EQ(place_.read("loose.kiln"),
            "# inc\nkernel inc(A: float32[n]) -> (B: float32[n]) {\n  B[i] = A[i] + 1\n}\n");
  const Finished again = place_.kiln({"fmt", "--check", "loose.kiln", "one.kiln"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, "");
}

TEST_F(Usage, FormatsAllFilesOrNone) {
  place_.write("wrong.kiln", "kernel inc(");
  const Finished finished = place_.kiln({"fmt", "one.kiln", "wrong.kiln"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(place_.read("one.kiln"),
            "kernel inc(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] + 1 }\n");
}

TEST_F(Usage, ShowsAndAppliesSchedules) {
  place_.write("fast.sched", "schedule cpu { split(B.i, factor=4) vectorize(B.i.inner) }");
  const std::string block = "schedule cpu {\n  split(B.i, factor=4)\n  vectorize(B.i.inner)\n}\n";
  EXPECT_EQ(place_.kiln({"schedule", "show", "one.kiln", "--schedule", "fast.sched"}).out, block);
  EXPECT_EQ(place_.kiln({"schedule", "show", "one.kiln"}).out, "schedule cpu {\n}\n");
  EXPECT_EQ(place_.kiln({"schedule", "apply", "one.kiln", "fast.sched", "--in-place"}).exit_code,
            0);
  EXPECT_EQ(place_.read("one.kiln"),
            "kernel inc(A: float32[n]) -> (B: float32[n]) {\n  B[i] = A[i] + 1\n\n  schedule cpu "
            "{\n    split(B.i, factor=4)\n    vectorize(B.i.inner)\n  }\n}\n");
  EXPECT_EQ(place_.kiln({"schedule", "show", "one.kiln"}).out, block);
}

TEST_F(Usage, RefusesAScheduleThatDoesNotFit) {
  place_.write("wrong.sched", "schedule cpu { unroll(C.i) }");
  const Finished finished = place_.kiln({"schedule", "apply", "one.kiln", "wrong.sched"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "error: unknown axis C.i; did you mean B.i\n"
            "  line 1, column 23\n"
            "  schedule cpu { unroll(C.i) }\n"
            "                        ^\n"
            "  at wrong.sched:1\n");
  refused({"run", "one.kiln", "--in", "A=a.npy", "--schedule", "fast.sched", "--no-schedule"},
          "--schedule excludes --no-schedule; kiln run --help shows how");
}

TEST_F(Usage, WithoutADaemonSaysWhatWasLookedAt) {
  const Finished finished = place_.kiln({"devices"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(
      finished.err,
      "error: no daemon to start: looked at $KILN_DAEMON (/nowhere/kilnd); install Kiln, name "
      "the daemon in KILN_DAEMON, or name a running service in KILN_ADDRESS\n");
}

TEST_F(Usage, VersionStartsNoDaemon) {
  const Finished finished = place_.kiln({"version"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "client  0.1.0\ndaemon  not running\n");
}

TEST_F(Usage, DoctorSaysWhatIsMissing) {
  const Finished finished = place_.kiln({"doctor"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.out,
            "ok       client   version 0.1.0\n"
            "ok       address  unix:" +
                place_.folder().string() +
                "/kiln/0.1.0.sock, the private daemon (no --address, no KILN_ADDRESS)\n"
                "missing  daemon   no kilnd was found in $KILN_DAEMON "
                "(/nowhere/kilnd): install Kiln, or name it in KILN_DAEMON\n"
                "missing  service  no daemon to start: looked at $KILN_DAEMON "
                "(/nowhere/kilnd); install Kiln, name the daemon in KILN_DAEMON, or "
                "name a running service in KILN_ADDRESS\n");
}

TEST_F(Usage, ServeRunsTheDaemonWithItsFlags) {
  place_.write("kilnd", "#!/bin/sh\necho daemon \"$@\"\nexit 7\n");
  std::filesystem::permissions(place_.folder() / "kilnd", std::filesystem::perms::owner_all);
  place_.environment["KILN_DAEMON"] = place_.folder() / "kilnd";
  const Finished finished = place_.kiln({"serve", "--listen", "unix:here", "--help"});
  EXPECT_EQ(finished.out, "daemon --listen unix:here --help\n");
  EXPECT_EQ(finished.exit_code, 7);
}

TEST_F(Usage, ServeSaysWhyThereIsNoDaemon) {
  place_.environment["KILN_DAEMON"] = "/nowhere/kilnd";
  const Finished missing = place_.kiln({"serve"});
  EXPECT_EQ(missing.err,
            "error: no daemon to start: looked at $KILN_DAEMON (/nowhere/kilnd); install Kiln, or "
            "name the daemon in KILN_DAEMON\n");
  EXPECT_EQ(missing.exit_code, 3);
  const std::string daemon = place_.folder() / "kilnd";
  place_.write("kilnd", "#!/nowhere/sh\n");
  std::filesystem::permissions(daemon, std::filesystem::perms::owner_all);
  place_.environment["KILN_DAEMON"] = daemon;
  const Finished broken = place_.kiln({"serve"});
  EXPECT_EQ(broken.err,
            "error: the daemon " + daemon + " cannot be started: No such file or directory\n");
  EXPECT_EQ(broken.exit_code, 3);
}

}  // namespace
}  // namespace kiln::test
