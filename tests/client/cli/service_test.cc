#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>
#include <nlohmann/json.hpp>

#include "tests/client/cli/command.h"
#include "tests/client/cpp/fake_service.h"

namespace kiln::test {
namespace {

using grpc::StatusCode;

/// The commands against a service in this process.
class Commands : public ::testing::Test {
 protected:
  Commands() {
    place_.environment["KILN_ADDRESS"] = service_.address();
    place_.write("inc.kiln",
                 "kernel inc(A: float32[n]) -> (B: float32[n]) {\n"
                 "  B[i] = A[i] + 1\n"
                 "  schedule cpu { split(B.i, factor=4) }\n"
                 "  schedule cuda { bind(B.i, threadIdx.x) }\n"
                 "}\n");
    place_.write_array("a.npy", {1, 2, 3}, {3});
  }

  /// The command succeeds and prints this.
  void prints(const std::vector<std::string>& arguments, const std::string& out) {
    const Finished finished = place_.kiln(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out, out);
  }

  FakeService service_;
  Workplace place_;
};

TEST_F(Commands, CacheWarmHasKernelsCompiled) {
  prints({"cache", "warm", "inc.kiln"}, "1 compiled, 0 there already, 0 failed\n");
  place_.write("list.txt", "# what the model needs\ninc.kiln\n\n  inc.kiln  # twice\n");
  prints({"cache", "warm", "--list", "list.txt", "inc.kiln"},
         "3 compiled, 0 there already, 0 failed\n");
}

TEST_F(Commands, CacheWarmGoesOnBehindWhatFails) {
  const Finished finished = place_.kiln({"cache", "warm", "nowhere.kiln", "inc.kiln"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "1 compiled, 0 there already, 1 failed\n");
  EXPECT_TRUE(finished.err.starts_with("error: nowhere.kiln: ")) << finished.err;
  const Finished nothing = place_.kiln({"cache", "warm"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.err.find("cache warm takes kernel files, or a list of them: --list FILE"),
            std::string::npos)
      << nothing.err;
}

TEST_F(Commands, RunPrintsOutputs) {
  prints({"run", "inc.kiln", "--in", "A=a.npy"}, "B: float32[3]\n[2. 3. 4.]\n");
}

TEST_F(Commands, RunWritesFilesAndTimings) {
  prints({"run", "inc.kiln", "--in", "A=a.npy", "--out", "B=b.npy", "--timings"},
         "timings: queue 0 us, compile 250 ms (compiled), upload 0 us, kernel 500 ms, download 0 "
         "us\n");
  prints({"run", "inc.kiln", "--in", "A=b.npy"}, "B: float32[3]\n[3. 4. 5.]\n");
}

TEST_F(Commands, ReadsAndWritesStandardInputAndOutput) {
  place_.input = "a.npy";
  const Finished run = place_.kiln({"run", "inc.kiln", "--in", "A=-", "--out", "B=-", "--timings"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("\x93NUMPY"));
  EXPECT_TRUE(run.err.starts_with("timings: ")) << run.err;
  place_.write("b.npy", run.out);
  prints({"run", "inc.kiln", "--in", "A=b.npy"}, "B: float32[3]\n[3. 4. 5.]\n");
  place_.input = "inc.kiln";
  prints({"run", "-", "--in", "A=a.npy"}, "B: float32[3]\n[2. 3. 4.]\n");
}

TEST_F(Commands, RunAnswersInJson) {
  prints({"run", "inc.kiln", "--in", "A=a.npy", "--json"},
         "{\n"
         "  \"outputs\": [\n"
         "    {\n"
         "      \"name\": \"B\",\n"
         "      \"type\": \"float32\",\n"
         "      \"shape\": [\n"
         "        3\n"
         "      ],\n"
         "      \"values\": [\n"
         "        2.0,\n"
         "        3.0,\n"
         "        4.0\n"
         "      ]\n"
         "    }\n"
         "  ],\n"
         "  \"timings\": {\n"
         "    \"queue\": 0.0,\n"
         "    \"compile\": 0.25,\n"
         "    \"upload\": 0.0,\n"
         "    \"kernel\": 0.5,\n"
         "    \"download\": 0.0,\n"
         "    \"cache\": \"compiled\"\n"
         "  }\n"
         "}\n");
}

TEST_F(Commands, TheScheduleBlockOfTheTargetIsUsed) {
  place_.kiln({"compile", "inc.kiln"});
  EXPECT_EQ(service_.last_compile().schedule().steps(0).name(), "split");
  place_.kiln({"compile", "inc.kiln", "--target", "cuda", "--arch", "sm_90"});
  EXPECT_EQ(service_.last_compile().schedule().steps(0).name(), "bind");
  EXPECT_EQ(service_.last_compile().target().arch(), "sm_90");
  place_.kiln({"run", "inc.kiln", "--device", "cuda:0", "--in", "A=a.npy"});
  EXPECT_EQ(service_.last_compile().target().name(), "cuda");
  place_.kiln({"compile", "inc.kiln", "--no-schedule", "--no-auto"});
  EXPECT_EQ(service_.last_compile().schedule().steps_size(), 0);
  EXPECT_EQ(service_.last_compile().options().auto_(), v1::AUTO_MODE_NEVER);
}

TEST_F(Commands, CompilePrintsWhatItMade) {
  prints({"compile", "inc.kiln"}, "inc: compiled for llvm in 250 ms (cache: compiled)\n");
  prints({"compile", "inc.kiln", "--report"}, "guards: 0\n");
  prints({"compile", "inc.kiln", "--report", "--json"}, "{\n  \"guards\": 0\n}\n");
  prints({"compile", "inc.kiln", "--emit", "asm"}, "source asm\n");
}

TEST_F(Commands, LowerPrintsLoops) {
  prints({"lower", "inc.kiln", "--after", "simplify", "--auto"}, "fn inc after simplify auto\n");
  prints({"lower", "inc.kiln", "--json"}, "{\n  \"text\": \"fn inc after \"\n}\n");
}

TEST_F(Commands, TensorsAreListedAndFreed) {
  prints({"tensors"}, "0 tensors, 0 B of 1.0 GiB\n");
  const Connection connection = connect(service_.address());
  const RemoteArray small = connection.upload(Array(std::vector<float>{1, 2, 3}, {3}));
  const RemoteArray large = connection.upload(Array(std::vector<double>(512), {2, 256}));

  const Finished listed = place_.kiln({"tensors"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(listed.out.substr(0, listed.out.find('\n')),
            "TENSOR    TYPE     SHAPE  BYTES    DEVICE  UNUSED FOR  SESSION");
  EXPECT_NE(listed.out.find("float32  3      12 B     cpu:0   1.5 s       "), std::string::npos)
      << listed.out;
  EXPECT_NE(listed.out.find("float64  2x256  4.0 KiB  cpu:0   1.5 s       "), std::string::npos)
      << listed.out;
  EXPECT_NE(listed.out.find("\n2 tensors, 4.0 KiB of 1.0 GiB\n"), std::string::npos) << listed.out;
  EXPECT_NE(place_.kiln({"tensors", "--limit", "1"})
                .out.find("\n2 tensors, 4.0 KiB of 1.0 GiB; the largest is listed\n"),
            std::string::npos);
  EXPECT_NE(place_.kiln({"tensors", "--json"}).out.find("\"unused_seconds\": 1.5"),
            std::string::npos);

  const Holdings held = connection.tensors();
  ASSERT_EQ(held.tensors.size(), 2U);
  EXPECT_EQ(held.bytes, 12 + 4096);
  const std::string& id = held.tensors.front().id;
  prints({"tensors", "--free", id}, "freed 1 of 1\n");
  const Finished again = place_.kiln({"tensors", "--free", id});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.out, "freed 0 of 1\n");
  EXPECT_EQ(place_.kiln({"tensors", "--free", id, "--json"}).out, "{\n  \"freed\": 0\n}\n");
}

TEST_F(Commands, JobsAreSubmittedAndWaitedFor) {
  const Finished submitted = place_.kiln({"submit", "inc.kiln", "--in", "A=a.npy"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const std::string id = submitted.out.substr(0, submitted.out.size() - 1);
  EXPECT_EQ(id.substr(0, 4), "job-");

  prints({"jobs"}, "JOB    KERNEL  PHASE    TIME\n" + id + "  inc     running  1.5 s\n");
  const Finished waited = place_.kiln({"wait", id, "--out", "B=b.npy"});
  EXPECT_EQ(waited.exit_code, 0);
  EXPECT_EQ(waited.out, "");
  EXPECT_EQ(waited.err, id + ": compiling after 0.5 s\n" + id + ": running after 1.0 s\n" + id +
                            ": done after 1.5 s\n");
  prints({"run", "inc.kiln", "--in", "A=b.npy"}, "B: float32[3]\n[3. 4. 5.]\n");
  prints({"result", id}, "B: float32[3]\n[2. 3. 4.]\n");
  prints({"cancel", id}, id + ": cancelled\n");
  const Finished wrong = place_.kiln({"result", id, "--out", "C=c.npy"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err, "error: job " + id + " has no output C; it has B\n");
}

TEST_F(Commands, DevicesAreATable) {
  prints({"devices"},
         "DEVICE  TARGET  ARCH    STATE  MEMORY   DESCRIPTION\n"
         "cpu:0   llvm    znver5  ready  8.0 GiB  2 cores\n");
}

TEST_F(Commands, DescribeHasTheServiceItself) {
  const Finished finished = place_.kiln({"describe"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out.substr(0, finished.out.find("COUNTER")),
            "kilnd 0.1.0, process " + std::to_string(getpid()) +
                "\n\n"
                "DEVICE  TARGET  ARCH    STATE  MEMORY   DESCRIPTION\n"
                "cpu:0   llvm    znver5  ready  8.0 GiB  2 cores\n\n");
  const nlohmann::json all = nlohmann::json::parse(place_.kiln({"describe", "--json"}).out);
  EXPECT_EQ(all["version"], "0.1.0");
  EXPECT_EQ(all["devices"][0]["memory_bytes"], int64_t{8} << 30);
  EXPECT_EQ(all["components"][0]["name"], "cpu");
  EXPECT_TRUE(all["counters"].is_object());
}

TEST_F(Commands, DoctorListsTheServicesParts) {
  prints({"doctor"},
         "ok       client   version 0.1.0\n"
         "ok       address  " +
             service_.address() +
             ", from KILN_ADDRESS\n"
             "ok       service  version 0.1.0 at " +
             service_.address() + ", process " + std::to_string(getpid()) +
             "\n"
             "ok       cpu      cpu:0 runs kernels on 2 threads\n"
             "missing  libcuda  libcuda.so.1 was not found: install the NVIDIA driver\n");
}

TEST_F(Commands, VersionAsksTheServiceThatIsNamed) {
  prints({"version"}, "client  0.1.0\ndaemon  0.1.0 at " + service_.address() + "\n");
  prints({"version", "--json"}, "{\n  \"client\": \"0.1.0\",\n  \"daemon\": \"0.1.0\"\n}\n");
}

TEST_F(Commands, TheTokenIsSent) {
  place_.kiln({"devices", "--token", "secret"});
  EXPECT_EQ(service_.last_token(), "Bearer secret");
  place_.environment["KILN_TOKEN"] = "other";
  place_.kiln({"devices"});
  EXPECT_EQ(service_.last_token(), "Bearer other");
}

TEST_F(Commands, ErrorsShowNotesAndPlace) {
  service_.fail_next(
      "Compile", {service_error(StatusCode::INVALID_ARGUMENT, v1::ERROR_KIND_INVALID_ARGUMENT, "X",
                                "B reads the future", -1, {"in stage B", "in kernel inc"})});
  const Finished finished = place_.kiln({"compile", "inc.kiln"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err,
            "error: B reads the future\n"
            "  in stage B\n"
            "  in kernel inc\n"
            "  at program.cc:7\n");
}

TEST_F(Commands, ErrorsInJsonHaveAllTheirParts) {
  service_.fail_next(
      "Compile", {service_error(StatusCode::UNAVAILABLE, v1::ERROR_KIND_UNAVAILABLE, "NO_DEVICE",
                                "there is no device cuda:0 here", -1, {"note"})});
  const Finished finished = place_.kiln({"compile", "inc.kiln", "--json"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.out,
            "{\n"
            "  \"error\": {\n"
            "    \"kind\": \"Unavailable\",\n"
            "    \"reason\": \"NO_DEVICE\",\n"
            "    \"message\": \"there is no device cuda:0 here\",\n"
            "    \"notes\": [\n"
            "      \"note\",\n"
            "      \"the flag for it is --arch sm_90\"\n"
            "    ],\n"
            "    \"file\": \"program.cc\",\n"
            "    \"line\": 7\n"
            "  }\n"
            "}\n");
}

TEST_F(Commands, ExitCodesTellWhoMustAct) {
  const auto exit_code = [&](StatusCode code, v1::ErrorKind kind) {
    service_.fail_next("Describe", {service_error(code, kind, "X", "x")});
    return place_.kiln({"devices"}).exit_code;
  };
  EXPECT_EQ(exit_code(StatusCode::INVALID_ARGUMENT, v1::ERROR_KIND_INVALID_ARGUMENT), 1);
  EXPECT_EQ(exit_code(StatusCode::FAILED_PRECONDITION, v1::ERROR_KIND_UNSUPPORTED), 1);
  EXPECT_EQ(exit_code(StatusCode::NOT_FOUND, v1::ERROR_KIND_NOT_FOUND), 1);
  EXPECT_EQ(exit_code(StatusCode::UNAUTHENTICATED, v1::ERROR_KIND_UNAUTHENTICATED), 1);
  EXPECT_EQ(exit_code(StatusCode::UNAVAILABLE, v1::ERROR_KIND_UNAVAILABLE), 3);
  EXPECT_EQ(exit_code(StatusCode::DATA_LOSS, v1::ERROR_KIND_HANDLE_LOST), 3);
  EXPECT_EQ(exit_code(StatusCode::RESOURCE_EXHAUSTED, v1::ERROR_KIND_RESOURCE_EXHAUSTED), 3);
  EXPECT_EQ(exit_code(StatusCode::INTERNAL, v1::ERROR_KIND_INTERNAL), 3);
  EXPECT_EQ(exit_code(StatusCode::DEADLINE_EXCEEDED, v1::ERROR_KIND_DEADLINE_EXCEEDED), 4);
  EXPECT_EQ(exit_code(StatusCode::CANCELLED, v1::ERROR_KIND_CANCELLED), 4);
}

TEST_F(Commands, TimeoutsEndTheCall) {
  service_.run_ms = 5'000;
  const Finished finished =
      place_.kiln({"run", "inc.kiln", "--in", "A=a.npy", "--timeout", "0.05"});
  EXPECT_EQ(finished.exit_code, 4);
  EXPECT_EQ(finished.err, "error: the call did not end before its deadline\n");
}

}  // namespace
}  // namespace kiln::test
