// The kernel Y = X + 1 for the CPU. It waits in no queue: where others' calls run, these show
// whether the worker works, and the supervisor ends a worker that does not beat.
//
//   the worker computes 1 + 1 = 3  ->  NOT_SERVING, "the canary kernel got 3 for 1 + 1"
#include "server/engine/canary.h"

#include <array>
#include <cstring>

#include <spdlog/spdlog.h>

#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "server/engine/compile_request.h"

namespace kiln::server {

namespace {

constexpr const char* kText = "kernel canary(X: float32[4]) -> (Y: float32[4]) { Y[i] = X[i] + 1 }";
constexpr std::array<float, 4> kInput = {1, -1, 0.5F, 1e6F};

CheckedRequest request_for(const internal::Hello& compiler) {
  const language::Kernel kernel = language::parse_text(kText, "canary.kiln").front().kernel;
  v1::CompileRequest request;
  *request.mutable_definition() = language::encode(kernel.definition);
  *request.mutable_source_map() = language::encode(kernel.names);
  request.mutable_target()->set_name("llvm");
  const CompileSetting setting{.build_id = compiler.build_id(),
                               .arch = [&](TargetKind) { return compiler.host_arch(); }};
  return check_request(request, setting);
}

/// Nobody is to blame for a worker that is being started, or that others keep busy.
bool is_passing(const Error& error) {
  return error.kind() == ErrorKind::Unavailable || error.kind() == ErrorKind::ResourceExhausted ||
         error.kind() == ErrorKind::Cancelled;
}

}  // namespace

struct Canary::Run {
  std::shared_ptr<Slice> input;
  std::shared_ptr<Slice> output;
};

void Canary::tick(Clock::time_point now) {
  if (period_ == Clock::duration::zero() || !parts_.cpu.ready() || !parts_.compilers.settled()) {
    return;
  }
  std::shared_ptr<const KernelEntry> kernel;
  {
    const std::lock_guard lock(mutex_);
    if (busy_ || now < next_) return;
    busy_ = true;
    next_ = now + period_;
    kernel = kernel_;
  }
  try {
    kernel ? run(kernel) : compile();
  } catch (...) {
    conclude("the canary kernel failed: " + current_error().message());
  }
}

void Canary::compile() {
  const CheckedRequest checked = request_for(parts_.compilers.hello());
  CompilerTask task;
  *task.message.mutable_compile()->mutable_request() = checked.wire;
  task.kernel = checked.names.kernel;
  task.key = checked.key;
  task.wanted = [] { return true; };
  task.done = [this, checked](Outcome<internal::FromWorker> outcome) {
    try {
      if (const Error* error = std::get_if<Error>(&outcome)) throw *error;
      internal::FromWorker& reply = std::get<internal::FromWorker>(outcome);
      KernelEntry entry;
      entry.key = checked.key;
      entry.names = checked.names;
      entry.compiled =
          cached_artifact(checked.form, std::move(*reply.mutable_compiled()->mutable_artifact()));
      const auto kernel = parts_.kernels.number(std::move(entry));
      {
        const std::lock_guard lock(mutex_);
        kernel_ = kernel;
      }
      run(kernel);
    } catch (...) {
      const Error error = current_error();
      conclude(is_passing(error) ? "" : "the canary kernel failed: " + error.message());
    }
  };
  parts_.compilers.submit(std::move(task));
}

void Canary::run(const std::shared_ptr<const KernelEntry>& kernel) {
  // Behind a call that takes an hour it would say for an hour that nothing is known.
  if (parts_.cpu.waiting() > 0) return conclude("");
  const auto bytes = static_cast<int64_t>(sizeof kInput);
  const Run placed{.input = parts_.arenas.allocate(bytes), .output = parts_.arenas.allocate(bytes)};
  std::memcpy(placed.input->data(), kInput.data(), sizeof kInput);
  std::memset(placed.output->data(), 0, sizeof kInput);
  const ArgumentSlot slot{.layout = {DType::Float32, {kInput.size()}, {}}};
  const std::array<ArgumentSlot, 2> slots = {slot, slot};
  DeviceCall call;
  call.kernel = kernel;
  call.bound = bind_arguments(kernel->artifact(), kernel->names, slots, {});
  call.tensors = {placed.input, placed.output};
  call.limit = limit_;
  call.call = std::make_shared<Call>(Caller{});
  call.done = [this, placed](const Outcome<DeviceResult>& outcome) { end(placed, outcome); };
  parts_.cpu.submit(std::move(call));
}

void Canary::end(const Run& run, const Outcome<DeviceResult>& outcome) {
  if (const Error* error = std::get_if<Error>(&outcome)) {
    conclude(is_passing(*error) ? "" : "the canary kernel failed: " + error->message());
    return;
  }
  std::array<float, kInput.size()> got{};
  std::memcpy(got.data(), run.output->data(), sizeof got);
  for (size_t i = 0; i < kInput.size(); ++i) {
    if (got[i] == kInput[i] + 1) continue;
    return conclude(fmt::format("the canary kernel got {} for {} + 1", got[i], kInput[i]));
  }
  conclude("");
}

void Canary::conclude(std::string problem) {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  if (!problem.empty() && problem != problem_) spdlog::error("{}", problem);
  problem_ = std::move(problem);
}

std::string Canary::problem() const {
  if (period_ == Clock::duration::zero()) return "";
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace kiln::server
