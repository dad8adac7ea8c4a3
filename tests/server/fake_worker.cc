// A worker and a compiler without LLVM. Both do what the name of a kernel tells them to; every
// kernel computes its last argument as its first plus one, float32.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compiler/language/wire/decode.h"
#include "kiln/internal/worker.pb.h"
#include "runtime/core/error.h"
#include "runtime/cuda/device_properties.h"
#include "server/ipc/channel.h"
#include "server/ipc/status_page.h"
#include "server/worker/compiler_loop.h"
#include "server/worker/device_loop.h"
#include "server/worker/process.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {
namespace {

void sleep_for(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// A file of one test, which all its processes see.
std::filesystem::path marker(const std::string& name) {
  const char* folder = std::getenv("KILN_FAKE_FOLDER");
  return std::filesystem::path(folder != nullptr ? folder : "/tmp") / name;
}

[[noreturn]] void hang() {
  while (true)
    sleep_for(1000);
}

/// Waits as long as the test wants devices to be silent, and lacks what it wants them to lack.
void open_as_told() {
  if (std::filesystem::exists(marker("no_device"))) {
    fail(ErrorKind::Unavailable, "NO_DEVICE", "the driver is being replaced");
  }
  if (std::filesystem::exists(marker("no_memory"))) {
    fail(ErrorKind::ResourceExhausted, "HOST_MEMORY", "the host is out of memory");
  }
  if (std::filesystem::exists(marker("mute"))) hang();
}

/// As of a stray access, but without the report of a sanitizer, whose search for names takes most
/// of a second.
void die() {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}

/// True the first time only, over all processes of one test.
bool first_time() {
  if (std::filesystem::exists(marker("died"))) return false;
  std::ofstream(marker("died")) << "died";
  return true;
}

/// Tells the test that `what` runs now.
void note_begun(const std::string& what) {
  if (std::getenv("KILN_FAKE_FOLDER") != nullptr) std::ofstream(marker(what + ".begun")) << what;
}

/// Waits until the test says so.
void wait_for_go(const std::string& what) {
  note_begun(what);
  while (!std::filesystem::exists(marker("go")))
    sleep_for(1);
}

/// What the candidates of kernels called tuned... do: a split of Y by the way and two more.
enum Way { kDefault, kFast, kDies, kHangs, kWrong, kNotCompiled, kLast };

/// Takes 16 MiB every few milliseconds, 1 GiB at most.
void grow() {
  std::vector<std::string> taken;
  while (taken.size() < 64) {
    taken.emplace_back(size_t{16} << 20, 'x');
    sleep_for(5);
  }
}

/// Keeps the thread that beats from beating, as a machine does that gives it no processor: it wants
/// to run all the time.
[[noreturn]] void starve() {
  ::signal(SIGUSR1, [](int) {
    // A loop that does nothing at all may be left out.
    volatile bool goes_on = true;
    while (goes_on) {
    }
  });
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(task.path().filename().string());
    if (thread != ::gettid()) ::tgkill(::getpid(), thread, SIGUSR1);
  }
  hang();
}

/// An answer to a question that nobody asked.
void answer_another(const internal::FromWorker& answer) {
  Channel(Fd(::dup(kWorkerSocketFd)), Channel::WhenFull::Wait).send(answer);
}

class FakeKernel : public LoadedKernel {
 public:
  explicit FakeKernel(std::shared_ptr<const Artifact> artifact) : artifact_(std::move(artifact)) {}
  const Artifact& artifact() const override { return *artifact_; }

 private:
  const std::shared_ptr<const Artifact> artifact_;
};

class FakeDevice : public Device {
 public:
  std::string name() const override { return "cpu:0"; }
  TargetKind target() const override { return TargetKind::Llvm; }
  std::string arch() const override { return "fake"; }
  std::shared_ptr<LoadedKernel> load(std::shared_ptr<const Artifact> artifact) override {
    if (artifact->arch != "fake") {
      fail(ErrorKind::InvalidArgument, "ARTIFACT_TARGET", "this kernel is for {}, not for fake",
           artifact->arch);
    }
    return std::make_shared<FakeKernel>(std::move(artifact));
  }
  std::unique_ptr<DeviceBuffer> allocate(int64_t) override { return nullptr; }  // never asked
  double run(const LoadedKernel& kernel, const KernelCall& call) override {
    behave(call);
    if (call.names->kernel.starts_with("tuned")) return run_way(kernel.artifact().code, call);
    add_one(call);
    if (call.names->kernel == "canary" && std::filesystem::exists(marker("wrong_canary"))) {
      spoil(call);
    }
    return 1e-6;
  }

 private:
  static void add_one(const KernelCall& call) {
    const auto* input = static_cast<const float*>(call.tensors.front());
    auto* output = static_cast<float*>(call.tensors.back());
    const int64_t elements =
        byte_size(DType::Float32, call.bound->shapes.back()) / static_cast<int64_t>(sizeof(float));
    for (int64_t i = 0; i < elements; ++i)
      output[i] = input[i] + 1;
  }

  /// A result that is wrong.
  static void spoil(const KernelCall& call) { static_cast<float*>(call.tensors.back())[0] += 1; }

  /// As the candidate says whose code this is; see Way.
  static double run_way(const std::string& code, const KernelCall& call) {
    const int way = std::stoi(code);
    if (way == kDies) die();
    if (way == kHangs) hang();
    if (call.names->kernel == "tuned_slowly") sleep_for(20);
    add_one(call);
    if (way == kWrong) spoil(call);
    return way == kFast ? 1e-3 : 2e-3;
  }

  /// As stray writes of a kernel may, on the page of memory that the worker shares with the daemon.
  static void wipe_page(const KernelCall& call) {
    const auto flag = reinterpret_cast<uintptr_t>(call.cancelled);
    auto* const page = reinterpret_cast<char*>(flag - flag % kStatusPageBytes);
    std::fill_n(page, sizeof(StatusPage), '\0');
  }

  static void behave(const KernelCall& call) {
    const std::string& what = call.names->kernel;
    if (what == "wipes" && static_cast<const float*>(call.tensors.front())[0] > 1) {
      wipe_page(call);
      die();
    }
    if (what.starts_with("dies") && what != "dies_once") die();
    if (what == "dies_once" && first_time()) die();
    if (what == "stops") ::raise(SIGSTOP);
    if (what == "hangs" || what == "polls") note_begun(what);
    if (what == "hangs") hang();
    if (what == "waits") wait_for_go(what);
    if (what == "slow") sleep_for(100);
    if (what == "garbage" && ::write(kWorkerSocketFd, "nonsense", 8) != 8) ::abort();
    if (what == "answers_another") {
      internal::FromWorker answer;
      answer.mutable_done()->set_call(99);
      answer_another(answer);
    }
    if (what == "polls") {
      while (call.cancelled->load() == 0)
        sleep_for(1);
      fail(ErrorKind::Cancelled, "CANCELLED", "polls was cancelled");
    }
    if (what == "fails") {
      fail(ErrorKind::InvalidArgument, "INDEX_OUT_OF_RANGE", "index 9 is out of range in {}",
           call.names->stages.back());
    }
  }
};

SizeExpr extent_of(const language::Definition& definition, language::ExprId id) {
  const auto& node = definition.expressions[id].node;
  if (const auto* use = std::get_if<language::VariableUse>(&node)) {
    return SizeExpr::scalar(use->variable);
  }
  if (const auto* constant = std::get_if<language::IntegerConstant>(&node)) {
    return SizeExpr::constant(constant->value);
  }
  fail(ErrorKind::Unsupported, "FAKE", "the fake compiler knows only plain shapes");
}

void behave_while_compiling(const std::string& what) {
  if (what == "compile_dies") die();
  if (what == "compile_killed") ::raise(SIGKILL);
  if (what == "compile_leaves") {
    ::shutdown(kWorkerSocketFd, SHUT_RDWR);
    hang();
  }
  if (what == "compile_stops") ::raise(SIGSTOP);
  if (what == "compile_starves") starve();
  if (what == "compile_hangs") {
    note_begun(what);
    hang();
  }
  if (what == "compile_grows") grow();
  if (what == "compile_slow") sleep_for(300);
  if (what == "compile_waits") wait_for_go(what);
  if (what == "compile_answers_another") {
    internal::FromWorker answer;
    answer.mutable_compiled()->set_task(99);
    answer_another(answer);
  }
  if (what.rfind("compile_fails", 0) == 0) {
    sleep_for(100);
    Error error(ErrorKind::Unsupported, "FAKE", "cannot compile " + what);
    error.add_note("in stage Y");
    error.set_location({"user.py", 7});
    throw error;
  }
}

/// Writes the split into the schedule.
int way_of(const internal::Compile& task, v1::Schedule& schedule) {
  const v1::Schedule& given = task.request().schedule();
  const bool has_way = !given.steps().empty() && !given.steps(0).factors().empty();
  int way = has_way ? static_cast<int>(given.steps(0).factors(0)) - 2 : kDefault;
  if (task.has_candidate()) way = static_cast<int>(task.candidate().stages(0).values(0));
  language::Step split{.kind = language::StepKind::Split, .stage = 1, .axes = {0}};
  split.factors = {way + 2};
  schedule = language::encode(language::Schedule{{split}});
  if (way == kNotCompiled) fail(ErrorKind::Unsupported, "FAKE", "this way does not compile");
  return way;
}

/// Of the host it is told, or has measured, which runs at 2 GHz.
void fake_predictions(const internal::Predict& task, internal::Predicted& predicted) {
  double gigahertz = task.host_speed().gigahertz();
  if (!task.has_host_speed()) predicted.mutable_measured()->set_gigahertz(gigahertz = 2);
  v1::PredictResponse& response = *predicted.mutable_response();
  response.set_surroundings(fmt::format("{:g} GHz", gigahertz));
  v1::PredictedSchedule& schedule = *response.add_schedules();
  schedule.set_seconds(task.sizes_size() > 0 ? 1e-9 * static_cast<double>(task.sizes(0)) : 0);
}

std::vector<internal::StageSketches> fake_sketches(const v1::CompileRequest& request) {
  const std::string& kernel = request.source_map().kernel();
  if (!kernel.starts_with("tuned")) return {};
  internal::StageSketches stage;
  stage.set_stage(1);
  internal::Sketch& sketch = *stage.add_sketches();
  sketch.set_name("fake");
  internal::SketchParameter& way = *sketch.add_parameters();
  way.set_name("way");
  if (kernel == "tuned_slowly" || kernel == "tuned_waits") {
    way.add_values(kDefault);
    for (int64_t other = kLast; other < 100; ++other)
      way.add_values(other);
  } else {
    for (int64_t each = kDefault; each < kLast; ++each)
      way.add_values(each);
  }
  return {stage};
}

Artifact fake_compile(const internal::Compile& task, internal::Compiled& compiled) {
  const v1::CompileRequest& request = task.request();
  const language::Kernel kernel = language::decode(request.definition(), request.source_map());
  behave_while_compiling(kernel.names.kernel);
  if (kernel.names.kernel == "variant_fails" && !task.sizes().empty()) {
    fail(ErrorKind::Unsupported, "FAKE", "there are no variants of it");
  }
  if (kernel.names.kernel == "variant_waits" && !task.sizes().empty()) wait_for_go("variant_waits");
  if (kernel.names.kernel == "tuned_waits" && task.has_candidate()) wait_for_go("tuned_waits");
  Artifact artifact;
  artifact.target = request.target().name() == "cuda" ? TargetKind::Cuda : TargetKind::Llvm;
  artifact.arch = request.target().arch();
  const int64_t way = way_of(task, *compiled.mutable_schedule());
  artifact.code = fmt::format("{} is the way of this code", way);
  if (task.has_read_at()) compiled.set_predicted_seconds(way == kFast ? 1e-3 : 2e-3);
  artifact.size_count = static_cast<int32_t>(kernel.definition.variables.size());
  compiled.set_for_now(kernel.names.kernel == "compiled_for_now");
  if (kernel.names.kernel == "compile_mismatch") ++artifact.size_count;
  for (const language::TensorId& id : kernel.definition.parameters) {
    Parameter parameter{.type = kernel.definition.type_of(id), .shape = {}, .is_output = false};
    for (const language::ExprId extent : kernel.definition.shape_of(id)) {
      parameter.shape.push_back(extent_of(kernel.definition, extent));
    }
    parameter.is_output = kernel.definition.is_output(id);
    artifact.parameters.push_back(std::move(parameter));
  }
  artifact.variants.emplace_back();
  if (artifact.target == TargetKind::Cuda) {
    // As the fake libcuda knows it.
    const std::string& name = kernel.names.kernel;
    artifact.code = "fake cubin";
    const SizeExpr one = SizeExpr::constant(1);
    artifact.variants[0].launches = {
        {name == "fault" || name == "hang" ? name : "add_one", {one}, {one}}};
  }
  artifact.report = R"({"guards":0})";
  return artifact;
}

std::string fake_text(const internal::Text& task) {
  if (task.loops()) return "loops after " + task.after();
  if (task.source() == "report") return R"({"notes":["of this caller"]})";
  return "source as " + task.source();
}

v1::Component component(const char* name) {
  v1::Component part;
  part.set_name(name);
  part.set_ok(true);
  part.set_message(std::string("the fake ") + name);
  return part;
}

/// The real runtime, on a fake driver where the test has one.
std::unique_ptr<Device> open_cuda(int index) {
  if (std::getenv("KILN_LIBCUDA") == nullptr) {
    fail(ErrorKind::Unavailable, "NO_DEVICE", "there is no CUDA device in a test");
  }
  return open_cuda_device(index);
}

int run_fake(const std::string& role, int index) {
  const auto gone = [] { ::_exit(1); };
  if (role == "compiler") {
    CompilerWorker worker;
    worker.build_id = "fake build";
    worker.host_arch = "fake";
    worker.compile = fake_compile;
    worker.text = fake_text;
    worker.sketches = fake_sketches;
    worker.predictions = fake_predictions;
    worker.components = [] { return std::vector<v1::Component>{component("nvrtc")}; };
    worker.abandoned = gone;
    return compiler_loop(worker, Fd(kWorkerSocketFd), Fd(kWorkerPageFd));
  }
  DeviceWorker worker;
  worker.describe = [](v1::Device& device) { device.set_description("a fake"); };
  worker.components = [role](const std::optional<Error>&) {
    return std::vector<v1::Component>{component(role == "cuda" ? "cuda device" : "cpu")};
  };
  worker.abandoned = gone;
  if (role == "cuda") worker.count = [] { return cuda::device_count(cuda::driver_api()); };
  worker.open = [role, index]() -> std::unique_ptr<Device> {
    if (role == "cuda") return open_cuda(index);
    open_as_told();
    return std::make_unique<FakeDevice>();
  };
  return device_loop(worker, Fd(kWorkerSocketFd), Fd(kWorkerPageFd));
}

}  // namespace
}  // namespace kiln::server

int main(int argc, char** argv) {
  std::string role = "cpu";
  int index = 0;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--role") role = argv[i + 1];
    if (std::string_view(argv[i]) == "--index") index = std::atoi(argv[i + 1]);
  }
  if (!kiln::server::become_worker()) return 2;
  return kiln::server::run_fake(role, index);
}
