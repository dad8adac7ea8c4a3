// From a request to a call in place: arguments bound and checked, inputs copied into arenas that
// workers map, outputs allocated. Whether the call is idempotent is found here, where the slices
// are known.
//
//   C = f(A, B), A and C one tensor  ->  not idempotent: a second run reads what the first wrote
#include "server/engine/run_service.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <unistd.h>

#include "runtime/core/called.h"
#include "runtime/core/host_clock.h"

namespace kiln::server {

namespace {

// What the outputs of one reply may take of a message of 4 MiB.
constexpr int64_t kReplyBytes = int64_t{3} << 20;
// From here on a local client is shown its outputs instead of being sent them.
constexpr int64_t kShownBytes = int64_t{64} << 10;
// 8 bytes each in the reply, so well below a message of 4 MiB.
constexpr uint32_t kMaxMeasurements = 100'000;

std::string argument_name(const KernelEntry& kernel, size_t i) {
  return fmt::format("argument {} of {}", kernel.names.parameters[i], called(kernel.names.kernel));
}

ArgumentShape shape_of(const KernelEntry& kernel, size_t i, const v1::Inline& value) {
  const std::optional<DType> type = dtype_from_number(value.type());
  if (!type) {
    fail(ErrorKind::InvalidArgument, "DTYPE", "{} has an unknown type (number {})",
         argument_name(kernel, i), static_cast<int>(value.type()));
  }
  return {*type, {value.shape().begin(), value.shape().end()}, {}};
}

void require_bytes(const KernelEntry& kernel, size_t i, int64_t expected, size_t actual) {
  if (expected == static_cast<int64_t>(actual)) return;
  fail(ErrorKind::InvalidArgument, "ARGUMENT_BYTES",
       "{} has {} bytes of data, but its shape needs {}", argument_name(kernel, i), actual,
       expected);
}

}  // namespace

/// A call between its request and its result.
struct RunService::Prepared {
  std::shared_ptr<const KernelEntry> kernel;
  std::string tenant;
  std::string session;
  std::string trace;
  std::vector<std::shared_ptr<const Tensor>> given;  // one a parameter; null where none is
  DeviceCall work;
  std::vector<RunOutput> outputs;
  std::set<uint32_t> keep;  // parameters whose result stays here
  /// Tensors that are overwritten, but in other memory, with where.
  std::map<std::string, std::shared_ptr<Slice>> renewed;
  Clock::time_point begun = Clock::now();
  double upload_seconds = 0;
  std::string device;
};

void write_reply(const RunResult& result, v1::RunResponse& reply) {
  const Clock::time_point begin = Clock::now();
  for (const RunOutput& output : result.outputs) {
    v1::Result& written = *reply.add_results();
    written.set_parameter(output.parameter);
    written.set_type(static_cast<v1::DataType>(output.type));
    written.mutable_shape()->Add(output.shape.begin(), output.shape.end());
    if (output.tensor.empty()) {
      written.set_data(output.slice->data(), static_cast<size_t>(output.bytes));
    } else {
      written.set_tensor(output.tensor);
      written.set_device(result.device);
    }
  }
  *reply.mutable_timings() = result.timings;
  reply.mutable_timings()->set_download(result.timings.download() +
                                        seconds_between(begin, Clock::now()));
  reply.mutable_measured()->Add(result.measured.begin(), result.measured.end());
}

void write_job_reply(const RunResult& result, v1::RunResponse& reply) {
  write_reply(result, reply);
  for (v1::Result& written : *reply.mutable_results()) {
    written.set_name(result.kernel->names.parameters[written.parameter()]);
  }
}

std::shared_ptr<RunService::Prepared> RunService::prepare(const v1::RunRequest& request,
                                                          const Call& call) {
  auto prepared = std::make_shared<Prepared>();
  prepared->kernel = kernels_.get(request.kernel_id());
  prepared->tenant = call.tenant();
  prepared->session = request.session();
  prepared->trace = call.caller().trace;
  sessions_.require(call.tenant(), request.session());
  const KernelEntry& kernel = *prepared->kernel;
  const DeviceQueue& device = devices_.of(kernel.artifact().target);
  device.require_present();
  device.require_time(call.tenant());
  if (request.measurements() > kMaxMeasurements) {
    fail(ErrorKind::InvalidArgument, "MEASUREMENTS",
         "{} measurements are asked for; the limit is {}", request.measurements(),
         kMaxMeasurements);
  }

  const std::vector<ArgumentSlot> slots = slots_of(*prepared, request);
  const std::map<std::string, int64_t> sizes(request.sizes().begin(), request.sizes().end());
  DeviceCall& work = prepared->work;
  work.bound = bind_arguments(kernel.artifact(), kernel.names, slots, sizes);
  place(*prepared, request);
  work.kernel = prepared->kernel;
  work.repeat = std::max(request.repeat(), 1U);
  work.measurements = std::max(request.measurements(), 1U);
  return prepared;
}

DeviceCall RunService::place_call(const v1::RunRequest& request, const Call& call) {
  return std::move(prepare(request, call)->work);
}

void RunService::run(const v1::RunRequest& request, std::shared_ptr<Call> call, RunDone done) {
  const std::shared_ptr<Prepared> prepared = prepare(request, *call);
  DeviceQueue& device = devices_.for_call(prepared->kernel->artifact().target, request.device(),
                                          prepared->given, called(prepared->kernel->names.kernel));
  prepared->device = device.name();
  DeviceCall& work = prepared->work;
  work.kernel = specialiser_.choose(prepared->kernel, work.bound);
  work.call = std::move(call);
  prepared->upload_seconds = seconds_between(prepared->begun, Clock::now());
  const auto runs = static_cast<int64_t>(work.repeat) * work.measurements;
  work.done = [this, prepared, scalars = work.bound.scalars, runs,
               done = std::move(done)](Outcome<DeviceResult> outcome) {
    prepared->given.clear();
    if (const Error* error = std::get_if<Error>(&outcome)) {
      counters_.failed_runs.fetch_add(1);
      done(*error);
      return;
    }
    counters_.runs.fetch_add(1);
    const auto& result = std::get<DeviceResult>(outcome);
    const std::string& device = prepared->device;
    note_spans(*prepared, result);
    counters_.metrics.observe(Metric::QueueSeconds, {device}, result.queue_seconds);
    counters_.metrics.observe(Metric::KernelSeconds, {device}, result.kernel_seconds);
    // Before the caller is told: what it does next finds its call counted.
    specialiser_.note(prepared->kernel, scalars, runs, result.kernel_seconds);
    done(collect(*prepared, result));
  };
  submit(prepared, device);
}

/// The call in the front end, its wait, the worker's part of it, and in that the device's.
void RunService::note_spans(const Prepared& prepared, const DeviceResult& result) {
  if (prepared.trace.empty()) return;
  const std::string name = called(prepared.kernel->names.kernel);
  const auto add = [&](Span span) {
    counters_.spans.add(prepared.tenant, prepared.trace, std::move(span));
  };
  const auto since = [](int64_t begin, double seconds) {
    return begin + static_cast<int64_t>(seconds * 1e9);
  };
  const int pid = ::getpid();
  add({"run " + name, "kilnd", pid, "calls", nanoseconds(prepared.begun),
       nanoseconds(Clock::now())});
  add({"queue", "kilnd", pid, prepared.device, nanoseconds(result.submitted),
       nanoseconds(result.started)});
  const internal::WorkTime& work = result.time;
  const auto worker = static_cast<int>(work.pid());
  add({"call " + name, "kiln-worker", worker, "calls", work.begin(), work.end()});
  // On its device from behind: what comes before the copy to it is the worker's own.
  const int64_t kernel_end = since(work.end(), -result.download_seconds);
  const int64_t kernel_begin = since(kernel_end, -result.kernel_seconds);
  add({"kernel " + name, "kiln-worker", worker, prepared.device, kernel_begin, kernel_end});
  if (result.upload_seconds > 1e-6) {
    add({"copy in", "kiln-worker", worker, prepared.device,
         since(kernel_begin, -result.upload_seconds), kernel_begin});
  }
  if (result.download_seconds > 1e-6)
    add({"copy out", "kiln-worker", worker, prepared.device, kernel_end, work.end()});
}

/// Once what other devices have newer of its tensors is here.
void RunService::submit(const std::shared_ptr<Prepared>& prepared, DeviceQueue& device) {
  std::vector<std::shared_ptr<Slice>> away;
  for (const std::shared_ptr<Slice>& slice : prepared->work.tensors) {
    const std::shared_ptr<DeviceCopy> copy = slice->copy();
    if (copy != nullptr && copy->is_newer && copy->device != device.name()) away.push_back(slice);
  }
  if (away.empty()) return device.submit(std::move(prepared->work));
  devices_.bring_home(std::move(away), [prepared, &device](Outcome<std::monostate> outcome) {
    if (const Error* error = std::get_if<Error>(&outcome)) return prepared->work.done(*error);
    const auto done = prepared->work.done;
    try {
      device.submit(std::move(prepared->work));
    } catch (...) {
      done(current_error());
    }
  });
}

std::shared_ptr<const Tensor> RunService::given_tensor(const Prepared& prepared, size_t i,
                                                       const std::string& tensor) {
  try {
    return tensors_.find(prepared.tenant, tensor);
  } catch (Error& error) {
    error.add_note(fmt::format("in {}", argument_name(*prepared.kernel, i)));
    throw;
  }
}

std::vector<ArgumentSlot> RunService::slots_of(Prepared& prepared, const v1::RunRequest& request) {
  const KernelEntry& kernel = *prepared.kernel;
  const auto count = static_cast<size_t>(request.arguments_size());
  std::vector<ArgumentSlot> slots(count);
  // bind_arguments() tells the caller about a wrong number of them.
  if (count != kernel.names.parameters.size()) return slots;
  prepared.given.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const v1::Argument& argument = request.arguments(static_cast<int>(i));
    switch (argument.value_case()) {
      case v1::Argument::kInline: slots[i].layout = shape_of(kernel, i, argument.inline_()); break;
      case v1::Argument::kTensor:
        prepared.given[i] = given_tensor(prepared, i, argument.tensor());
        slots[i].layout = {prepared.given[i]->type, prepared.given[i]->shape, {}};
        break;
      case v1::Argument::kOutput: slots[i].given = false; break;
      case v1::Argument::VALUE_NOT_SET:
        fail(ErrorKind::InvalidArgument, "ARGUMENT_MISSING", "{} is not given",
             argument_name(kernel, i));
    }
  }
  return slots;
}

void RunService::place(Prepared& prepared, const v1::RunRequest& request) {
  const KernelEntry& kernel = *prepared.kernel;
  std::set<const Slice*> inputs;
  std::set<const Slice*> outputs;
  bool overlap = false;
  for (int i = 0; i < request.arguments_size(); ++i) {
    const v1::Argument& argument = request.arguments(i);
    const auto at = static_cast<size_t>(i);
    const bool is_output = kernel.artifact().parameters[at].is_output;
    if (argument.has_tensor()) {
      prepared.work.tensors.push_back(is_output ? place_given_output(prepared, *prepared.given[at])
                                                : prepared.given[at]->slice);
      prepared.work.stays.push_back(true);
      const Slice* slice = prepared.work.tensors.back().get();
      // Of two outputs in one place the second to be written stays: which one that is may differ.
      if (is_output && !outputs.insert(slice).second) overlap = true;
      if (!is_output) inputs.insert(slice);
    } else if (is_output) {
      place_output(prepared, static_cast<uint32_t>(i), argument);
    } else {
      const std::string& data = argument.inline_().data();
      const DType type = kernel.artifact().parameters[at].type;
      require_bytes(kernel, at, byte_size(type, prepared.work.bound.shapes[at]), data.size());
      prepared.work.tensors.push_back(arenas_->allocate(static_cast<int64_t>(data.size())));
      prepared.work.stays.push_back(false);
      if (!data.empty()) {
        std::memcpy(prepared.work.tensors.back()->data(), data.data(), data.size());
      }
    }
  }
  for (const Slice* slice : outputs)
    overlap = overlap || inputs.count(slice) != 0;
  prepared.work.may_retry = !overlap;
  prepared.work.overwrites_input = overlap;
}

std::shared_ptr<Slice> RunService::allocate_output(const Prepared& prepared, int64_t bytes) {
  const bool is_shown = bytes >= kShownBytes && sessions_.is_local(prepared.session);
  return is_shown ? arenas_->allocate_for(prepared.session, bytes) : arenas_->allocate(bytes);
}

/// What clients may see must not change: the tensor gets other memory, once all is written.
std::shared_ptr<Slice> RunService::place_given_output(Prepared& prepared, const Tensor& tensor) {
  if (!tensor.slice->arena()->is_frozen()) return tensor.slice;
  std::shared_ptr<Slice>& slice = prepared.renewed[tensor.id];
  if (!slice) slice = allocate_output(prepared, tensor.bytes);
  return slice;
}

void RunService::place_output(Prepared& prepared, uint32_t parameter,
                              const v1::Argument& argument) {
  const KernelEntry& kernel = *prepared.kernel;
  RunOutput output;
  output.parameter = parameter;
  output.type = kernel.artifact().parameters[parameter].type;
  output.shape = prepared.work.bound.shapes[parameter];
  output.bytes = byte_size(output.type, output.shape);
  if (argument.has_inline_() && !argument.inline_().data().empty()) {
    require_bytes(kernel, parameter, output.bytes, argument.inline_().data().size());
  }
  if (argument.has_output() && argument.output().keep()) {
    tensors_.require_room(prepared.tenant, output.bytes);
    prepared.keep.insert(parameter);
  }
  output.slice = allocate_output(prepared, output.bytes);
  prepared.work.tensors.push_back(output.slice);
  prepared.work.stays.push_back(prepared.keep.count(parameter) != 0);
  prepared.outputs.push_back(std::move(output));
}

RunResult RunService::collect(Prepared& prepared, const DeviceResult& device) {
  for (const auto& [tensor, slice] : prepared.renewed)
    tensors_.renew(tensor, slice);
  RunResult result;
  result.kernel = prepared.kernel;
  int64_t inline_bytes = 0;
  for (RunOutput& output : prepared.outputs) {
    const bool keep =
        // What does not fit the reply stays here, and the client fetches it as a stream.
        prepared.keep.count(output.parameter) != 0 || inline_bytes + output.bytes > kReplyBytes;
    if (keep) {
      Tensor tensor;
      tensor.tenant = prepared.tenant;
      tensor.session = sessions_.owner(prepared.session);
      tensor.device = prepared.device;
      tensor.type = output.type;
      tensor.shape = output.shape;
      tensor.bytes = output.bytes;
      tensor.slice = output.slice;
      output.tensor = tensors_.add(std::move(tensor))->id;
    } else {
      inline_bytes += output.bytes;
    }
    result.outputs.push_back(std::move(output));
  }
  result.timings.set_queue(device.queue_seconds);
  result.timings.set_upload(prepared.upload_seconds + device.upload_seconds);
  result.timings.set_kernel(device.kernel_seconds);
  result.timings.set_download(device.download_seconds);
  result.timings.set_cache(v1::CACHE_LEVEL_MEMORY);
  result.timings.set_trace(prepared.trace);
  result.measured = device.measured;
  if (prepared.device != devices_.of(prepared.kernel->artifact().target).name())
    result.device = prepared.device;
  return result;
}

}  // namespace kiln::server
