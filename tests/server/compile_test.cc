#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Compile : public ServiceTest {
 protected:
  v1::CompileResponse compiled(const v1::CompileRequest& request) {
    v1::CompileResponse response;
    const grpc::Status status = service_->compile(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  grpc::Status status_of_compile(const v1::CompileRequest& request, milliseconds limit = kLong) {
    v1::CompileResponse response;
    return service_->compile(request, response, limit);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::recursive_directory_iterator(folder_.path() / "artifacts")) {
      if (file.path().extension() == ".kart") found.push_back(file.path());
    }
    return found;
  }
};

TEST_F(Compile, TellsTheParametersInTheCallersWords) {
  const v1::CompileResponse response = compiled(add_one("inc"));
  ASSERT_EQ(response.parameters_size(), 2);
  EXPECT_EQ(response.parameters(0).name(), "X");
  EXPECT_FALSE(response.parameters(0).output());
  EXPECT_EQ(response.parameters(0).shape(0), "n");
  EXPECT_EQ(response.parameters(1).name(), "Y");
  EXPECT_TRUE(response.parameters(1).output());
  EXPECT_EQ(response.parameters(1).type(), v1::DATA_TYPE_FLOAT32);
}

TEST_F(Compile, FindsTheSecondInMemoryAndAfterARestartOnDisk) {
  EXPECT_EQ(compiled(add_one("inc")).cache(), v1::CACHE_LEVEL_COMPILED);
  EXPECT_EQ(compiled(add_one("inc")).cache(), v1::CACHE_LEVEL_MEMORY);
  EXPECT_EQ(service_->counter("compiles"), 1);
  EXPECT_EQ(service_->counter("memory_hits"), 1);
  restart();
  EXPECT_EQ(compiled(add_one("inc")).cache(), v1::CACHE_LEVEL_DISK);
  EXPECT_EQ(compiled(add_one("inc")).cache(), v1::CACHE_LEVEL_MEMORY);
  EXPECT_EQ(service_->counter("compiles"), 0);
  EXPECT_EQ(service_->counter("disk_hits"), 1);
}

TEST_F(Compile, KeepsWhatIsForNowInMemoryAlone) {
  EXPECT_EQ(compiled(add_one("compiled_for_now")).cache(), v1::CACHE_LEVEL_COMPILED);
  EXPECT_EQ(compiled(add_one("compiled_for_now")).cache(), v1::CACHE_LEVEL_MEMORY);
  restart();
  EXPECT_TRUE(entries().empty());
  EXPECT_EQ(compiled(add_one("compiled_for_now")).cache(), v1::CACHE_LEVEL_COMPILED);
}

TEST_F(Compile, SaysHowLongAnAnswerFromMemoryTakes) {
  compiled(add_one("inc"));
  const v1::Timings timings = compiled(add_one("inc")).timings();
  EXPECT_EQ(timings.cache(), v1::CACHE_LEVEL_MEMORY);
  EXPECT_GT(timings.compile(), 0);
}

TEST_F(Compile, CompilesAgainWhatFellOutOfTheTableOfKernels) {
  EngineOptions options = usual_options();
  options.kernels = 1;
  restart(options);
  const std::string id = compiled(add_one("inc")).kernel_id();
  EXPECT_EQ(compiled(add_one("inc")).kernel_id(), id);
  compiled(add_one_of("other", 2));
  EXPECT_EQ(compiled(add_one("inc")).kernel_id(), id);
  EXPECT_TRUE(service_->run(id, {1}).ok());
}

TEST_F(Compile, SharesAnArtifactButNeverNames) {
  v1::CompileRequest other = add_one("other");
  other.mutable_source_map()->set_stages(0, "In");
  const v1::CompileResponse mine = compiled(add_one("inc"));
  const v1::CompileResponse theirs = compiled(other);
  EXPECT_EQ(theirs.cache(), v1::CACHE_LEVEL_MEMORY);
  EXPECT_NE(theirs.kernel_id(), mine.kernel_id());
  EXPECT_EQ(theirs.parameters(0).name(), "In");
  EXPECT_EQ(service_->counter("compiles"), 1);
}

TEST_F(Compile, CompilesOnceForAllWhoAskAtATime) {
  std::vector<std::thread> callers;
  std::atomic<int> first{0};
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      if (compiled(add_one("compile_slow")).cache() == v1::CACHE_LEVEL_COMPILED) ++first;
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(first.load(), 1);
  EXPECT_EQ(service_->counter("compiles"), 1);
  EXPECT_EQ(service_->counter("memory_hits"), 7);
}

TEST_F(Compile, TellsErrorsInTheNamesOfEachCaller) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      const std::string name = "compile_fails_" + std::to_string(i % 2);
      const grpc::Status status = status_of_compile(add_one(name));
      expect_status(status, grpc::StatusCode::FAILED_PRECONDITION, "FAKE",
                    "cannot compile " + name);
      EXPECT_EQ(detail_of(status).file(), "user.py");
      EXPECT_EQ(detail_of(status).line(), 7U);
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(service_->counter("compiles"), 0);
}

TEST_F(Compile, RefusesADefinitionThatIsNone) {
  v1::CompileRequest request = add_one("inc");
  request.mutable_definition()->mutable_stages(1)->mutable_compute()->set_bodies(0, 99);
  EXPECT_EQ(status_of_compile(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request = add_one("inc");
  request.mutable_target()->set_name("tpu");
  expect_status(status_of_compile(request), grpc::StatusCode::INVALID_ARGUMENT, "TARGET",
                "there is no target tpu; known are llvm (or cpu), cuda and interpreter");
}

TEST_F(Compile, ForAnAbsentDeviceNeedsAnArch) {
  v1::CompileRequest request = add_one("inc");
  request.mutable_target()->set_name("cuda");
  expect_status(status_of_compile(request), grpc::StatusCode::UNAVAILABLE, "NO_DEVICE",
                "there is no CUDA device in a test");
  request.mutable_target()->set_arch("sm_90");
  const v1::CompileResponse response = compiled(request);
  expect_status(service_->run(response.kernel_id(), {1}), grpc::StatusCode::UNAVAILABLE,
                "NO_DEVICE", "there is no CUDA device in a test");
  EXPECT_TRUE(service_->run(service_->kernel(add_one("inc")), {1}).ok());
}

TEST_F(Compile, OutlivesTheDeathOfTheCompiler) {
  expect_status(status_of_compile(add_one_of("compile_dies", 1)), grpc::StatusCode::INTERNAL,
                "COMPILER_DIED",
                "the compiler died while it compiled compile_dies; this is a bug in kiln");
  EXPECT_EQ(compiled(add_one("inc")).cache(), v1::CACHE_LEVEL_COMPILED);
  EXPECT_GE(service_->counter("compiler_restarts"), 1);
  status_of_compile(add_one_of("compile_dies", 1));
  status_of_compile(add_one_of("compile_dies", 1));
  expect_status(status_of_compile(add_one_of("compile_dies", 1)),
                grpc::StatusCode::FAILED_PRECONDITION, "KERNEL_QUARANTINED",
                "compile_dies ended its worker 3 times; it is refused for 600 s");
}

TEST_F(Compile, TellsWhoEndedTheCompiler) {
  EngineOptions options = usual_options();
  options.times.hang = milliseconds(3000);
  options.times.starved = milliseconds(6000);
  restart(options);
  const grpc::Status killed = status_of_compile(add_one("compile_killed"));
  expect_status(killed, grpc::StatusCode::UNAVAILABLE, "COMPILER_KILLED",
                "the compiler was killed from outside while it compiled compile_killed, as the "
                "system does when memory runs out; it is started again");
  EXPECT_DOUBLE_EQ(retry_seconds_of(killed), 0.5);
  expect_status(status_of_compile(add_one_of("compile_leaves", 4)), grpc::StatusCode::INTERNAL,
                "COMPILER_DIED",
                "the compiler died while it compiled compile_leaves; this is a bug in kiln");
  const grpc::Status stopped = status_of_compile(add_one_of("compile_stops", 1));
  expect_status(
      stopped, grpc::StatusCode::UNAVAILABLE, "COMPILER_STOPPED",
      "the compiler stood still for 3 s while it compiled compile_stops, as one does that "
      "is stopped from outside; it is started again");
  EXPECT_DOUBLE_EQ(retry_seconds_of(stopped), 0.5);
  const grpc::Status starved = status_of_compile(add_one_of("compile_starves", 2));
  expect_status(starved, grpc::StatusCode::UNAVAILABLE, "COMPILER_STARVED",
                "the compiler got no processor for 6 s while it compiled compile_starves: the "
                "machine has too much to do; try again later");
  EXPECT_DOUBLE_EQ(retry_seconds_of(starved), 5);
  EXPECT_EQ(compiled(add_one_of("inc", 3)).cache(), v1::CACHE_LEVEL_COMPILED);
}

TEST_F(Compile, IsNotCalledAFaultWhenTheDaemonEnds) {
  std::thread caller([&] {
    expect_status(status_of_compile(add_one("compile_hangs")), grpc::StatusCode::UNAVAILABLE,
                  "DRAINING", "the daemon is ending");
  });
  EXPECT_TRUE(has_begun("compile_hangs"));
  service_->engine().stop();
  caller.join();
}

TEST_F(Compile, EndsACompilationThatTakesTooLong) {
  EngineOptions options = usual_options();
  options.times.compile_limit = std::chrono::seconds(1);
  restart(options);
  expect_status(status_of_compile(add_one("compile_hangs")), grpc::StatusCode::RESOURCE_EXHAUSTED,
                "COMPILE_TIME", "compile_hangs took longer than 1 s to compile");
  EXPECT_EQ(compiled(add_one_of("inc", 3)).cache(), v1::CACHE_LEVEL_COMPILED);
}

TEST_F(Compile, EndsACompilationThatTakesMuchMemory) {
  EngineOptions options = usual_options();
  options.compile_memory_bytes = int64_t{256} << 20;
  restart(options);
  expect_status(status_of_compile(add_one("compile_grows")), grpc::StatusCode::RESOURCE_EXHAUSTED,
                "COMPILE_MEMORY",
                "compile_grows took more than 268435456 bytes of memory to compile");
  EXPECT_EQ(compiled(add_one_of("inc", 3)).cache(), v1::CACHE_LEVEL_COMPILED);
}

TEST_F(Compile, EndsForACallerWhoseDeadlinePasses) {
  EXPECT_EQ(status_of_compile(add_one("compile_slow"), milliseconds(50)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(compiled(add_one_of("inc", 3)).cache(), v1::CACHE_LEVEL_COMPILED);
}

TEST_F(Compile, EndsWhatNobodyWaitsForAnyMore) {
  const std::vector<int> before = service_->engine().compiler_pids();
  EXPECT_EQ(status_of_compile(add_one("compile_hangs"), milliseconds(500)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // The one compiler there is had hung for ever.
  EXPECT_TRUE(status_of_compile(add_one_of("inc", 3)).ok());
  EXPECT_NE(service_->engine().compiler_pids(), before);
  // Three of them are no fault of the kernel.
  for (int i = 0; i < 3; ++i)
    status_of_compile(add_one("compile_hangs"), milliseconds(100));
  EXPECT_EQ(status_of_compile(add_one("compile_hangs"), milliseconds(100)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(Compile, TakesMoreCompilersWhileSomebodyWaits) {
  EngineOptions options = usual_options();
  options.compilers = 3;
  restart(options);
  EXPECT_EQ(service_->engine().compiler_pids().size(), 1U);
  std::vector<std::thread> waiting;
  for (int i = 1; i <= 2; ++i) {
    waiting.emplace_back(
        [&, i] { EXPECT_TRUE(status_of_compile(add_one_of("compile_waits", i)).ok()); });
  }
  EXPECT_TRUE(eventually([&] { return service_->engine().compiler_pids().size() == 2; }));
  // Neither of the two holds up the third.
  EXPECT_TRUE(status_of_compile(add_one("inc")).ok());
  EXPECT_LE(service_->engine().compiler_pids().size(), 3U);
  let_go();
  for (std::thread& thread : waiting)
    thread.join();
}

TEST_F(Compile, CompilesAgainWhatTheDiskCacheLost) {
  compiled(add_one("inc"));
  const auto damages = {+[](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); },
                        +[](const std::string& bytes) {
                          std::string other = bytes;
                          other[other.size() * 3 / 4] ^= 4;
                          return other;
                        },
                        +[](const std::string&) { return std::string(); }};
  for (const auto& damage : damages) {
    service_.reset();
    ASSERT_EQ(entries().size(), 1U);
    std::ifstream file(entries()[0], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::ofstream(entries()[0], std::ios::binary) << damage(bytes);
    restart();
    const v1::CompileResponse response = compiled(add_one("inc"));
    EXPECT_EQ(response.cache(), v1::CACHE_LEVEL_COMPILED);
    EXPECT_EQ(service_->counter("disk_corrupt"), 1);
    std::vector<float> output;
    EXPECT_TRUE(service_->run(response.kernel_id(), {1, 2}, &output).ok());
    EXPECT_EQ(output, (std::vector<float>{2, 3}));
  }
}

TEST_F(Compile, ForgetsOldKernelsAndSaysSo) {
  EngineOptions options = usual_options();
  options.kernels = 2;
  restart(options);
  const std::string first = service_->kernel(add_one_of("one", 1));
  service_->kernel(add_one_of("two", 2));
  service_->kernel(add_one_of("three", 3));
  expect_status(service_->run(first, {1}), grpc::StatusCode::NOT_FOUND, "KERNEL",
                "kernel " + first + " is not known here, or no more; compile it again");
  EXPECT_EQ(compiled(add_one_of("one", 1)).cache(), v1::CACHE_LEVEL_MEMORY);
}

TEST_F(Compile, LowersAndInspects) {
  grpc::ClientContext lowering;
  v1::LowerRequest lower;
  const v1::CompileRequest request = add_one("inc");
  *lower.mutable_definition() = request.definition();
  *lower.mutable_source_map() = request.source_map();
  lower.set_after("simplify");
  v1::LowerResponse lowered;
  ASSERT_TRUE(service_->kernels->Lower(&lowering, lower, &lowered).ok());
  EXPECT_EQ(lowered.text(), "loops after simplify");

  v1::InspectRequest inspect;
  inspect.set_kernel_id(service_->kernel(request));
  inspect.set_source("asm");
  grpc::ClientContext inspecting;
  v1::InspectResponse inspected;
  ASSERT_TRUE(service_->kernels->Inspect(&inspecting, inspect, &inspected).ok());
  EXPECT_EQ(inspected.text(), "source as asm");

  inspect.clear_source();
  grpc::ClientContext reporting;
  ASSERT_TRUE(service_->kernels->Inspect(&reporting, inspect, &inspected).ok());
  EXPECT_EQ(inspected.report_json(), R"({"guards":0,"notes":["of this caller"]})");
}

TEST_F(Compile, DifferentiatesDefinitions) {
  const v1::CompileRequest inc = add_one("inc");
  v1::DifferentiateRequest request;
  *request.mutable_definition() = inc.definition();
  *request.mutable_source_map() = inc.source_map();
  grpc::ClientContext context;
  v1::DifferentiateResponse response;
  ASSERT_TRUE(service_->kernels->Differentiate(&context, request, &response).ok());
  ASSERT_EQ(response.heads_size(), 1);
  ASSERT_EQ(response.gradients_size(), 1);
  v1::CompileRequest gradient = inc;
  *gradient.mutable_definition() = response.definition();
  *gradient.mutable_source_map() = response.source_map();
  const v1::CompileResponse compiled_gradient = compiled(gradient);
  ASSERT_EQ(compiled_gradient.parameters_size(), 3);
  EXPECT_EQ(compiled_gradient.parameters(1).name(), "Y_head");
  EXPECT_EQ(compiled_gradient.parameters(2).name(), "X_grad");
  EXPECT_TRUE(compiled_gradient.parameters(2).output());

  request.add_outputs()->set_stage(70);
  grpc::ClientContext wrong;
  const grpc::Status status = service_->kernels->Differentiate(&wrong, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "the gradient names output 0 of stage 70, which the definition has not");
}

TEST_F(Compile, ParsesAndPrintsKernelFiles) {
  v1::ParseRequest parse;
  parse.set_file_name("user.kiln");
  parse.set_text(
      "kernel twice(X: float32[n]) -> (Y: float32[n]) {\n"
      "  Y[i] = X[i] * 2.0\n"
      "  schedule cpu {\n"
      "    parallel(Y.i)\n"
      "  }\n"
      "}\n");
  grpc::ClientContext parsing;
  v1::ParseResponse parsed;
  ASSERT_TRUE(service_->kernels->Parse(&parsing, parse, &parsed).ok());
  ASSERT_EQ(parsed.kernels_size(), 1);
  EXPECT_EQ(parsed.kernels(0).source_map().kernel(), "twice");

  v1::PrintRequest print;
  *print.mutable_kernel() = parsed.kernels(0);
  grpc::ClientContext printing;
  v1::PrintResponse printed;
  ASSERT_TRUE(service_->kernels->Print(&printing, print, &printed).ok());
  EXPECT_EQ(printed.text(), parse.text());
}

TEST_F(Compile, RefusesAKernelFileWithThePlace) {
  v1::ParseRequest parse;
  parse.set_file_name("user.kiln");
  parse.set_text("kernel f(X: float32[n]) -> (Y: float32[n]) {\n  Y[i] = expp(X[i])\n}\n");
  grpc::ClientContext context;
  v1::ParseResponse parsed;
  const grpc::Status status = service_->kernels->Parse(&context, parse, &parsed);
  expect_status(status, grpc::StatusCode::INVALID_ARGUMENT, "SYNTAX",
                "unknown function expp; did you mean exp");
  EXPECT_EQ(detail_of(status).file(), "user.kiln");
  EXPECT_EQ(detail_of(status).line(), 2U);
}

TEST_F(Compile, RefusesAMessageThatIsTooLarge) {
  v1::CompileRequest request = add_one(std::string(5 << 20, 'x'));
  EXPECT_EQ(status_of_compile(request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(status_of_compile(add_one("inc")).ok());
}

}  // namespace
}  // namespace kiln::server
