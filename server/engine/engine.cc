// Puts the parts of the service together and leads each call through them. A compile asks, in this
// order: has a request of the same bytes been answered (only where there are no tuning records),
// is there a record whose schedule to take, do the caches hold the key; only then a compiler
// process. A kernel that fails under a record's schedule is compiled without it.
#include "server/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <nlohmann/json.hpp>

#include "runtime/core/called.h"
#include "runtime/core/gpu_name.h"
#include "runtime/cpu/cpu_topology.h"
#include "runtime/cpu/cpus.h"
#include "server/engine/given_sizes.h"

namespace kiln::server {

namespace {

// Of the thread that ticks ten times a second and waits for nobody.
constexpr double kStuckSeconds = 30;
constexpr uint32_t kMostThreads = 1024;                 // that a prediction is for
constexpr auto kCanaryLimit = std::chrono::seconds(5);  // of microseconds of work

DeviceQueue::Options device_options(const EngineOptions& options, const SharedQuotas& quotas) {
  return {.spec = {.threads = options.threads},
          .limit = options.queue,
          .quotas = quotas,
          .workers = std::max(options.cpu_workers, 1),
          .times = options.times};
}

JobTable::Options job_options(const EngineOptions& options, const SharedQuotas& quotas) {
  JobTable::Options jobs = options.jobs;
  jobs.quotas = quotas;
  return jobs;
}

ArenaPool::Options arena_options(const EngineOptions& options) {
  ArenaPool::Options arenas = options.arenas;
  arenas.limit_bytes = options.tensor_bytes;
  arenas.nodes = host_topology().nodes;
  arenas.warm_bytes = std::min(arenas.warm_bytes, options.tensor_bytes);
  return arenas;
}

/// The artifact's own report with what is said in the caller's names. Neither may be anything but
/// JSON, but both come from outside of this process.
std::string merged_report(const std::string& saved, const std::string& named,
                          const std::string& note, const std::vector<std::string>& specialised) {
  nlohmann::json report = nlohmann::json::parse(saved, nullptr, false);
  const nlohmann::json more = nlohmann::json::parse(named, nullptr, false);
  if (!report.is_object()) report = nlohmann::json::object();
  if (more.is_object()) report.update(more);
  if (!note.empty()) report["notes"].push_back(note);
  if (!specialised.empty()) report["specialised"] = specialised;
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A job may be begun twice, so it overwrites nothing of its caller's.
void require_own_outputs(const v1::RunRequest& run, const KernelNames& names,
                         const std::function<bool(int)>& is_output) {
  const int count = std::min(run.arguments_size(), static_cast<int>(names.parameters.size()));
  for (int i = 0; i < count; ++i) {
    if (!run.arguments(i).has_tensor() || !is_output(i)) continue;
    fail(ErrorKind::InvalidArgument, "JOB_OUTPUT",
         "argument {} of {} is a tensor to be overwritten, but a job has outputs of its own; ask "
         "for the output instead",
         names.parameters[static_cast<size_t>(i)], called(names.kernel));
  }
}

std::unique_ptr<RedisCache> shared_cache(const EngineOptions& options) {
  if (options.shared_cache.empty()) return nullptr;
  return std::make_unique<RedisCache>(parse_redis_url(options.shared_cache), options.shared_times);
}

std::string text_of(const internal::FromWorker& reply) { return reply.text().text(); }

}  // namespace

Engine::Engine(const EngineOptions& options, std::unique_ptr<Launcher> launcher)
    : boot_id_(random_hex(8)),
      threads_(options.threads > 0 ? options.threads : available_cores()),
      quotas_(shared_quotas(options.quotas)),
      launcher_(std::move(launcher)),
      supervisor_(options.tick),
      quarantine_(options.times.quarantine),
      device_time_(quotas_),
      arenas_(std::make_shared<ArenaPool>(arena_options(options))),
      tensors_(boot_id_, options.unowned_tensor_life, quotas_),
      sessions_(tensors_, *arenas_, options.session_grace),
      uploads_(options.idle_upload),
      kernels_(
          {.kernels = options.kernels, .quotas = quotas_, .bytes = options.memory_cache_bytes}),
      memory_(options.memory_cache_bytes),
      disk_(options.cache_folder, options.disk_cache_bytes),
      shared_(shared_cache(options)),
      compilers_({.compilers = options.compilers,
                  .threads = options.threads,
                  .limit = options.queue,
                  .memory_bytes = options.compile_memory_bytes,
                  .times = options.times},
                 *launcher_, supervisor_, quarantine_, counters_),
      devices_([this, each = device_options(options, quotas_)](Role role, int index) {
        DeviceQueue::Options own = each;
        own.spec.role = role;
        own.spec.index = index;
        return std::make_unique<DeviceQueue>(std::move(own), *launcher_, supervisor_, *arenas_,
                                             quarantine_, device_time_, counters_);
      }),
      canary_({.compilers = compilers_, .cpu = cpu(), .arenas = *arenas_, .kernels = kernels_},
              options.canary_period, kCanaryLimit),
      compile_service_(kernels_, memory_, levels(), compilers_, counters_),
      specialiser_(options.specialisation, compilers_, kernels_, counters_),
      run_service_(kernels_, tensors_, sessions_, arenas_, devices_, specialiser_, counters_),
      copies_(tensors_, sessions_, *arenas_, devices_),
      records_(options.cache_folder, {}),
      host_speeds_(options.cache_folder),
      tune_service_({.compiles = compile_service_,
                     .compilers = compilers_,
                     .kernels = kernels_,
                     .runs = run_service_,
                     .devices = devices_,
                     .arenas = arenas_,
                     .tensor_bytes = options.tensor_bytes,
                     .records = records_,
                     .counters = counters_},
                    options.tuning),
      programs_({.tensors = tensors_,
                 .sessions = sessions_,
                 .arenas = arenas_,
                 .devices = devices_,
                 .counters = counters_},
                {.setting = [this] { return setting(); },
                 .compile =
                     [this](CheckedRequest checked, std::shared_ptr<Call> call, CompileDone done) {
                       compile_tuned(std::move(checked), std::move(call), std::move(done));
                     },
                 .levels = levels(),
                 .counters = counters_}),
      jobs_({.compile = compile_call(),
             .runs = run_service_,
             .tensors = tensors_,
             .sessions = sessions_,
             .arenas = arenas_},
            options.job_folder.empty() ? options.cache_folder + "/jobs" : options.job_folder,
            job_options(options, quotas_)),
      warm_up_(compile_call(), static_cast<size_t>(std::max(options.compilers, 1))),
      warm_memory_(options.warm_memory) {
  supervisor_.add([this](Clock::time_point now) { tick(now); });
  supervisor_.start();
}

CompileCall Engine::compile_call() {
  return [this](const v1::CompileRequest& request, std::shared_ptr<Call> call, CompileDone done) {
    compile(request, std::move(call), std::move(done));
  };
}

void Engine::tick(Clock::time_point now) {
  devices_.tick(now);
  compilers_.tick(now);
  canary_.tick(now);
  sessions_.expire(now);
  // What was warm for clients is of no use to nobody.
  if (sessions_.idle_for(now) > warm_memory_) arenas_->cool_down();
  uploads_.expire(now);
  tensors_.expire(now);
  jobs_.tick(now);
  ticked_ = now;
}

std::string Engine::why_not_ready() const {
  if (!cpu().ready()) return "the worker of cpu:0 is being started";
  if (!compilers_.is_up()) return "the compiler is being started";
  const std::string left = warm_up_.problem();
  return left.empty() ? canary_.problem() : left;
}

std::string Engine::why_not_live() const {
  const double seconds = seconds_between(ticked_, Clock::now());
  if (seconds < kStuckSeconds) return "";
  return fmt::format("nothing was looked after for {:.0f} s", seconds);
}

std::vector<CacheLevel*> Engine::levels() {
  std::vector<CacheLevel*> levels = {&disk_};
  if (shared_) levels.push_back(shared_.get());
  return levels;
}

bool Engine::wait_until_ready(Clock::duration limit) {
  const Clock::time_point until = Clock::now() + limit;
  while (Clock::now() < until) {
    const std::vector<DeviceQueue*> devices = devices_.all();
    const bool settled = std::ranges::all_of(devices, &DeviceQueue::settled);
    // Of further GPUs the first one tells; each then has a worker that starts.
    const bool complete = devices.size() > devices_.of(TargetKind::Cuda).kind_count();
    if (settled && complete && compilers_.settled()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return cpu().settled();
}

CompileSetting Engine::setting() const {
  const internal::Hello hello = compilers_.hello();
  CompileSetting setting;
  setting.build_id = hello.build_id();
  setting.arch = [this, host = hello.host_arch()](TargetKind target) {
    if (traits_of(target).is_host) return host;
    const DeviceQueue& device = devices_.of(target);
    device.require_present();
    const v1::Device described = device.describe();
    if (described.arch().empty()) {
      fail(ErrorKind::Unavailable, "DEVICE_STARTING", "{}:0 has not started yet; try again soon",
           traits_of(target).device);
    }
    return described.planned_as().empty() ? described.arch() : described.planned_as();
  };
  return setting;
}

void Engine::compile(const v1::CompileRequest& request, std::shared_ptr<Call> call,
                     CompileDone done) {
  // A record may come at any time, and another schedule with it.
  if (records_.count() != 0) {
    return compile_tuned(check_request(request, setting()), std::move(call), std::move(done));
  }
  std::string bytes = request.SerializeAsString();
  if (std::optional<CompileResult> found = find_again(bytes)) return done(*std::move(found));
  compile_tuned(check_request(request, setting()), std::move(call),
                [this, bytes = std::move(bytes), done = std::move(done)](auto outcome) mutable {
                  const auto* result = std::get_if<CompileResult>(&outcome);
                  if (result != nullptr && result->kernel->note.empty()) {
                    requests_.put(std::move(bytes), result->kernel->id);
                  }
                  done(std::move(outcome));
                });
}

std::optional<CompileResult> Engine::find_again(const std::string& request) {
  const std::optional<std::string> id = requests_.find(request);
  if (!id) return std::nullopt;
  CompileResult result;
  result.kernel = kernels_.find(*id);
  if (!result.kernel) return std::nullopt;
  const Artifact& artifact = result.kernel->artifact();
  // Without the device it was for, the request may mean something else now.
  if (!traits_of(artifact.target).is_host &&
      devices_.of(artifact.target).describe().arch() != artifact.arch) {
    return std::nullopt;
  }
  result.level = v1::CACHE_LEVEL_MEMORY;
  counters_.memory_hits.fetch_add(1);
  return result;
}

std::vector<TuningKey> Engine::tuning_keys(const CheckedRequest& checked) const {
  std::vector<TuningKey> keys;
  const std::string definition = tuning_of(checked);
  if (definition.empty()) return keys;
  // Records are of an architecture or of a device, whose name says which GPU it is.
  const std::string arch(without_figures(checked.wire.target().arch()));
  const auto add = [&](std::string device) {
    keys.push_back({.definition = definition,
                    .sizes = "",
                    .device = std::move(device),
                    .build = compilers_.hello().build_id()});
  };
  const v1::Device device = devices_.of(checked.target).describe();
  if (device.arch() == arch) add(fmt::format("{}, {}", arch, device.description()));
  if (traits_of(checked.target).has_threads) add(TuningKey::code_for(arch));
  return keys;
}

std::optional<CheckedRequest> Engine::with_record(const CheckedRequest& checked) const {
  if (records_.count() == 0) return std::nullopt;
  for (const TuningKey& key : tuning_keys(checked)) {
    const std::optional<TuningRecord> record = records_.find_largest(key);
    if (!record) continue;
    const double speedup = record->default_seconds / record->seconds;
    const std::string why =
        key.read_for().empty()
            ? fmt::format("{:.2f} times as fast as without when it was measured on {}", speedup,
                          key.device)
            : fmt::format("{:.2f} times as fast as without by {}, which never ran", speedup,
                          key.device);
    CheckedRequest tuned = checked;
    use_schedule(tuned, record->schedule, key.build, record->id,
                 fmt::format("schedule from tuning record {}: {}", record->id, why));
    return tuned;
  }
  return std::nullopt;
}

void Engine::compile_tuned(CheckedRequest checked, std::shared_ptr<Call> call, CompileDone done) {
  std::optional<CheckedRequest> tuned = with_record(checked);
  if (!tuned) {
    return compile_service_.compile(std::move(checked), std::move(call), std::move(done));
  }
  compile_service_.compile(
      std::move(*tuned), call,
      [this, call, checked = std::move(checked), done = std::move(done)](auto outcome) mutable {
        if (std::holds_alternative<CompileResult>(outcome)) counters_.tuned_compiles.fetch_add(1);
        const Error* const error = std::get_if<Error>(&outcome);
        const bool is_late = error != nullptr && (error->kind() == ErrorKind::Cancelled ||
                                                  error->kind() == ErrorKind::Unavailable);
        if (error == nullptr || is_late) return done(std::move(outcome));
        // A record must not keep from working what works without it.
        compile_service_.compile(std::move(checked), std::move(call), std::move(done));
      });
}

uint64_t Engine::tune(const v1::TuneRequest& request, const Caller& caller, TuneWatcher watcher) {
  CheckedRequest checked = check_request(request.kernel(), setting());
  if (tuning_of(checked).empty()) {
    fail(
        ErrorKind::InvalidArgument, "TUNE_TARGET",
        "{} has no automatic schedule to tune: it is to be interpreted, or automatic schedules are "
        "turned off",
        called(checked.names.kernel));
  }
  const std::vector<TuningKey> keys = tuning_keys(checked);
  if (keys.empty()) {
    fail(ErrorKind::InvalidArgument, "TUNE_ARCH",
         "tune measures on the device here, which is no {}; leave the arch out",
         checked.wire.target().arch());
  }
  return tune_service_.tune(std::move(checked), request, caller, keys.front(), std::move(watcher));
}

void Engine::ask_compiler(internal::ToWorker message, const std::string& kernel,
                          const std::string& key, std::shared_ptr<Call> call,
                          Then<internal::FromWorker> done) {
  CompilerTask task;
  task.message = std::move(message);
  task.kernel = kernel;
  task.key = key;
  task.caller = call->caller();
  task.wanted = [call = std::move(call)] {
    return !call->cancelled() && call->deadline() > Clock::now();
  };
  task.done = std::move(done);
  compilers_.submit(std::move(task));
}

void Engine::ask_text(internal::ToWorker message, const std::string& kernel, const std::string& key,
                      std::shared_ptr<Call> call, Then<std::string> done) {
  ask_compiler(std::move(message), kernel, key, std::move(call),
               [done = std::move(done)](Outcome<internal::FromWorker> outcome) {
                 if (const Error* error = std::get_if<Error>(&outcome)) return done(*error);
                 done(text_of(std::get<internal::FromWorker>(outcome)));
               });
}

void Engine::predict(const v1::PredictRequest& request, std::shared_ptr<Call> call,
                     Then<v1::PredictResponse> done) {
  const CheckedRequest checked = check_request(request.kernel(), setting());
  const std::vector<int64_t> sizes =
      given_sizes(checked.names, {request.sizes().begin(), request.sizes().end()},
                  fmt::format("a prediction of {} is", called(checked.names.kernel)), "");
  internal::ToWorker message;
  internal::Predict& predict = *message.mutable_predict();
  *predict.mutable_request() = checked.wire;
  predict.mutable_sizes()->Add(sizes.begin(), sizes.end());
  predict.set_threads(std::min(request.threads(), kMostThreads));
  if (auto known = host_speeds_.find(host())) *predict.mutable_host_speed() = *std::move(known);
  ask_compiler(std::move(message), checked.names.kernel, checked.key, std::move(call),
               [this, done = std::move(done)](Outcome<internal::FromWorker> outcome) {
                 if (const Error* error = std::get_if<Error>(&outcome)) return done(*error);
                 const auto& predicted = std::get<internal::FromWorker>(outcome).predicted();
                 if (predicted.has_measured()) host_speeds_.keep(host(), predicted.measured());
                 done(predicted.response());
               });
}

std::string Engine::host() const {
  return fmt::format("{}, {} threads", compilers_.hello().host_arch(), threads_);
}

void Engine::lower(const v1::LowerRequest& request, std::shared_ptr<Call> call,
                   Then<std::string> done) {
  v1::CompileRequest compiled;
  *compiled.mutable_definition() = request.definition();
  *compiled.mutable_source_map() = request.source_map();
  *compiled.mutable_schedule() = request.schedule();
  *compiled.mutable_target() = request.target();
  *compiled.mutable_options() = request.options();
  CompileSetting lenient = setting();
  // Loops depend on the target, hardly on its arch, and can be looked at without the device.
  lenient.arch = [host = compilers_.hello().host_arch()](TargetKind target) {
    return traits_of(target).is_host ? host : std::string(traits_of(target).arch);
  };
  CheckedRequest checked = check_request(compiled, lenient);
  if (request.auto_()) {
    if (std::optional<CheckedRequest> tuned = with_record(checked)) checked = *std::move(tuned);
  }
  internal::ToWorker message;
  internal::Text& text = *message.mutable_text();
  *text.mutable_request() = checked.wire;
  text.set_loops(true);
  text.set_after(request.after());
  text.set_auto_(request.auto_());
  ask_text(std::move(message), checked.names.kernel, checked.key, std::move(call), std::move(done));
}

void Engine::inspect(const v1::InspectRequest& request, std::shared_ptr<Call> call,
                     Then<v1::InspectResponse> done) {
  const std::shared_ptr<const KernelEntry> kernel = kernels_.get(request.kernel_id());
  internal::ToWorker message;
  internal::Text& text = *message.mutable_text();
  KILN_CHECK(text.mutable_request()->ParseFromString(kernel->request));
  const bool is_report = request.source().empty();
  text.set_source(is_report ? "report" : request.source());
  const bool is_read = is_report && traits_of(kernel->artifact().target).has_threads &&
                       (!request.sizes().empty() || kernel->names.sizes.empty());
  if (is_read) {
    const std::vector<int64_t> sizes =
        given_sizes(kernel->names, {request.sizes().begin(), request.sizes().end()},
                    fmt::format("a report predicts {}", called(kernel->names.kernel)), "");
    text.mutable_read_at()->mutable_values()->Add(sizes.begin(), sizes.end());
    text.set_artifact(serialize(kernel->artifact()));
  }
  ask_text(
      std::move(message), kernel->names.kernel, kernel->key, std::move(call),
      [this, kernel, is_report, done = std::move(done)](Outcome<std::string> outcome) {
        if (const Error* error = std::get_if<Error>(&outcome)) return done(*error);
        std::string& answer = std::get<std::string>(outcome);
        v1::InspectResponse response;
        if (is_report) {
          response.set_report_json(merged_report(kernel->artifact().report, answer, kernel->note,
                                                 specialiser_.sizes_of(*kernel)));
        } else {
          response.set_text(std::move(answer));
        }
        done(std::move(response));
      });
}

void Engine::run(const v1::RunRequest& request, std::shared_ptr<Call> call, RunDone done) {
  run_service_.run(request, std::move(call), std::move(done));
}

void Engine::submit(const v1::SubmitRequest& request, const Caller& caller,
                    Then<std::string> done) {
  // A job keeps its inputs, which a device may have newer.
  const auto keep = [&](const v1::SubmitRequest& whole, const std::string& kernel) {
    std::vector<std::shared_ptr<Slice>> inputs;
    for (const v1::Argument& argument : whole.run().arguments()) {
      if (argument.has_tensor())
        inputs.push_back(tensors_.find(caller.principal.tenant, argument.tensor())->slice);
    }
    devices_.bring_home(std::move(inputs), [this, whole, kernel, caller, done](auto outcome) {
      try {
        if (const Error* error = std::get_if<Error>(&outcome)) throw *error;
        jobs_.submit(whole, kernel, caller, done);
      } catch (...) {
        done(current_error());
      }
    });
  };
  if (request.has_kernel()) {
    const CheckedRequest checked = check_request(request.kernel(), setting());
    const v1::Definition& definition = request.kernel().definition();
    require_own_outputs(request.run(), checked.names, [&](int i) {
      const uint32_t stage = definition.parameters(i).stage();
      return !definition.stages(static_cast<int>(stage)).has_placeholder();
    });
    return keep(request, checked.names.kernel);
  }
  const std::shared_ptr<const KernelEntry> kernel = kernels_.get(request.run().kernel_id());
  require_own_outputs(request.run(), kernel->names, [&](int i) {
    return kernel->artifact().parameters[static_cast<size_t>(i)].is_output;
  });
  // The next daemon does not know the kernel.
  v1::SubmitRequest whole = request;
  KILN_CHECK(whole.mutable_kernel()->ParseFromString(kernel->request));
  keep(whole, kernel->names.kernel);
}

void Engine::bring_home(const Tensor& tensor, FetchDone done) {
  devices_.bring_home({tensor.slice}, std::move(done));
}

void Engine::stage(const Tensor& tensor) {
  if (DeviceQueue* device = devices_.find(tensor.device)) device->stage(tensor.slice, tensor.bytes);
}

void Engine::copy(const v1::CopyRequest& request, const Caller& caller, Then<std::string> done) {
  copies_.copy(request, caller, std::move(done));
}

Tensor Engine::check_header(const v1::TensorHeader& header, const Caller& caller) const {
  sessions_.require(caller.principal.tenant, header.session());
  const std::string device = devices_.named(header.device()).name();
  const std::optional<DType> type = dtype_from_number(header.type());
  if (!type) {
    fail(ErrorKind::InvalidArgument, "DTYPE", "the tensor has an unknown type (number {})",
         static_cast<int>(header.type()));
  }
  Tensor tensor;
  tensor.tenant = caller.principal.tenant;
  tensor.session = sessions_.owner(header.session());
  tensor.device = device;
  tensor.type = *type;
  tensor.shape.assign(header.shape().begin(), header.shape().end());
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] >= 0) continue;
    fail(ErrorKind::InvalidArgument, "SHAPE",
         "dimension {} of the tensor is {}, but must be at least 0", i, tensor.shape[i]);
  }
  tensor.bytes = byte_size(tensor.type, tensor.shape);
  tensors_.require_room(tensor.tenant, tensor.bytes);
  return tensor;
}

Tensor Engine::prepare_tensor(const v1::TensorHeader& header, const Caller& caller) {
  Tensor tensor = check_header(header, caller);
  tensor.slice = arenas_->reserve(tensor.bytes);
  if (header.empty()) arenas_->use(*tensor.slice, 0, tensor.bytes);
  if (header.empty()) std::memset(tensor.slice->data(), 0, static_cast<size_t>(tensor.bytes));
  return tensor;
}

std::vector<Engine::Queue> Engine::queues() const {
  std::vector<Queue> queues = {{"compiler", compilers_.waiting()}};
  for (const DeviceQueue* device : devices_.all()) {
    if (device->describe().state() != "absent")
      queues.push_back({device->name(), device->waiting()});
  }
  return queues;
}

void Engine::stop() {
  if (stopped_) return;
  stopped_ = true;
  jobs_.drain();
  tune_service_.drain();
  // In the thread that started them: they end with it, and should find us knowing why.
  supervisor_.stop([this] {
    devices_.stop();
    compilers_.stop();
  });
  tune_service_.stop();
  programs_.stop();
  compile_service_.stop();
  jobs_.stop();
}

}  // namespace kiln::server
