// The steps of a job, each started by the end of the one before: no thread waits for a compile or a
// run, and what waits for a disk is done in one thread of its own, in order.
//
//   submit -> (disk: snapshots, row) -> begin -> (disk: spec, inputs) -> compile -> run
//          -> (disk: outputs, row) -> finish
#include "server/jobs/job_service.h"

#include <spdlog/spdlog.h>

#include "runtime/core/called.h"

namespace kiln::server {

namespace {

constexpr uint32_t kMostAttempts = 3;

/// It has nothing to do with the job: it begins again when the daemon has what it lacks now.
bool is_passing(const Error& error) {
  for (const char* reason : {"QUEUE_FULL", "TENSOR_MEMORY", "DEVICE_SECONDS", "COMPILER_STARTING",
                             "DEVICE_STARTING", "DRAINING"}) {
    if (error.reason() == reason) return true;
  }
  return false;
}

/// It may have to do with the job: it begins again, but not for ever.
bool is_worth_another_attempt(const Error& error) {
  return error.kind() == ErrorKind::Unavailable && error.reason() != "NO_DEVICE";
}

v1::TensorHeader header_of(const Tensor& tensor) {
  v1::TensorHeader header;
  header.set_type(static_cast<v1::DataType>(tensor.type));
  header.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  header.set_device(tensor.device);
  return header;
}

Tensor tensor_of(const v1::TensorHeader& header) {
  Tensor tensor;
  tensor.type = dtype_from_number(header.type()).value_or(DType::Float32);
  tensor.shape.assign(header.shape().begin(), header.shape().end());
  tensor.device = header.device();
  tensor.bytes = byte_size(tensor.type, tensor.shape);
  return tensor;
}

}  // namespace

/// An argument that is a tensor, kept as it was.
struct JobService::Input {
  uint32_t argument = 0;
  std::shared_ptr<const Tensor> tensor;
};

JobService::JobService(JobParts parts, const std::filesystem::path& folder,
                       const JobTable::Options& options)
    : parts_(std::move(parts)), store_(folder), table_(options) {
  for (JobRecord& record : store_.take_records())
    table_.restore(std::move(record));
  if (table_.unfinished() > 0) {
    spdlog::info("{} jobs that an earlier daemon has accepted go on", table_.unfinished());
  }
}

std::vector<JobService::Input> JobService::inputs_of(const v1::RunRequest& run,
                                                     const Caller& caller) const {
  std::vector<Input> inputs;
  for (int i = 0; i < run.arguments_size(); ++i) {
    const v1::Argument& argument = run.arguments(i);
    if (!argument.has_tensor()) continue;
    inputs.push_back({static_cast<uint32_t>(i),
                      parts_.tensors.find(caller.principal.tenant, argument.tensor())});
  }
  return inputs;
}

void JobService::submit(const v1::SubmitRequest& request, const std::string& kernel,
                        const Caller& caller, Done<std::string> done) {
  const std::string& tenant = caller.principal.tenant;
  parts_.sessions.require(tenant, request.run().session());
  if (!request.request_id().empty()) {
    if (auto known = table_.find_request(tenant, request.request_id())) return done(*known);
  }
  std::vector<Input> inputs = inputs_of(request.run(), caller);
  JobRecord record{.id = {},
                   .tenant = tenant,
                   .request_id = request.request_id(),
                   .kernel = kernel,
                   .priority = caller.priority};
  internal::JobSpec spec;
  *spec.mutable_kernel() = request.kernel();
  *spec.mutable_run() = request.run();
  spec.mutable_run()->clear_session();
  for (const Input& input : inputs) {
    record.input_bytes += input.tensor->bytes;
    internal::Snapshot& snapshot = *spec.add_snapshots();
    snapshot.set_argument(input.argument);
    *snapshot.mutable_header() = server::header_of(*input.tensor);
    spec.mutable_run()->mutable_arguments(static_cast<int>(input.argument))->clear_value();
  }
  const std::string job = table_.reserve(record);
  record.id = job;
  work_.post([this, record = std::move(record), spec = std::move(spec), inputs = std::move(inputs),
              done = std::move(done)]() mutable {
    const std::string id = record.id;
    try {
      keep(id, std::move(record), std::move(spec), inputs);
    } catch (...) {
      table_.drop(id);
      return done(current_error());
    }
    inputs.clear();
    done(id);
    begin_next();
  });
}

void JobService::keep(const std::string& job, JobRecord record, internal::JobSpec spec,
                      const std::vector<Input>& inputs) {
  record.submitted = seconds_since_1970();
  try {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = *inputs[i].tensor;
      store_.write_blob(job, fmt::format("in{}", i), tensor.slice->data(), tensor.bytes);
    }
    store_.add(record, spec);
  } catch (...) {
    store_.remove_blobs(job, "in");
    throw;
  }
  table_.accept(job);
}

void JobService::begin_next() {
  while (const std::optional<JobTable::Begun> begun = table_.begin(Clock::now())) {
    work_.post([this, begun = *begun] { begin(begun); });
  }
}

void JobService::begin(const JobTable::Begun& begun) {
  try {
    if (begun.attempts > kMostAttempts) {
      fail(ErrorKind::Unavailable, "JOB_ATTEMPTS",
           "the job was begun {} times, and the daemon or its worker ended each time",
           kMostAttempts);
    }
    // Before it begins: a job that ends the daemon is not begun for ever.
    store_.note_attempts(begun.job, begun.attempts);
    compile(begun, std::make_shared<internal::JobSpec>(store_.spec(begun.job)));
  } catch (...) {
    const Error error = current_error();
    if (error.reason() == "JOB_ATTEMPTS") return end(begun.job, error);
    take(begun, error);
  }
}

void JobService::compile(const JobTable::Begun& begun,
                         const std::shared_ptr<internal::JobSpec>& spec) {
  table_.advance(begun.job, v1::JOB_PHASE_COMPILING);
  parts_.compile(spec->kernel(), begun.call, [this, begun, spec](Outcome<CompileResult> outcome) {
    if (const Error* error = std::get_if<Error>(&outcome)) {
      work_.post([this, begun, error = *error] { take(begun, error); });
      return;
    }
    // Inputs come from the disk.
    work_.post([this, begun, spec, kernel = std::get<CompileResult>(outcome).kernel->id] {
      try {
        run(begun, *spec, kernel);
      } catch (...) {
        take(begun, current_error());
      }
    });
  });
}

std::shared_ptr<Slice> JobService::load(const std::string& job, const std::string& name,
                                        int64_t bytes) {
  std::shared_ptr<Slice> slice = parts_.arenas->allocate(bytes);
  store_.read_blob(job, name, slice->data(), bytes);
  return slice;
}

void JobService::run(const JobTable::Begun& begun, const internal::JobSpec& spec,
                     const std::string& kernel) {
  table_.advance(begun.job, v1::JOB_PHASE_RUNNING);
  v1::RunRequest request = spec.run();
  request.set_kernel_id(kernel);
  for (v1::Argument& argument : *request.mutable_arguments()) {
    // The contents are kept here, and not on the device.
    if (argument.has_output()) argument.mutable_output()->set_keep(false);
  }
  const std::string& tenant = begun.call->tenant();
  std::vector<std::string> loaded;
  const std::shared_ptr<void> unload(nullptr, [&](void*) { parts_.tensors.free(tenant, loaded); });
  for (int i = 0; i < spec.snapshots_size(); ++i) {
    const internal::Snapshot& snapshot = spec.snapshots(i);
    Tensor tensor = tensor_of(snapshot.header());
    tensor.tenant = tenant;
    tensor.slice = load(begun.job, fmt::format("in{}", i), tensor.bytes);
    loaded.push_back(parts_.tensors.add(std::move(tensor))->id);
    request.mutable_arguments(static_cast<int>(snapshot.argument()))->set_tensor(loaded.back());
  }
  // The call holds the memory of its arguments; their ids are not needed once it is placed.
  parts_.runs.run(request, begun.call, [this, begun](Outcome<RunResult> outcome) {
    work_.post(
        [this, begun, outcome = std::move(outcome)]() mutable { take(begun, std::move(outcome)); });
  });
}

void JobService::take(const JobTable::Begun& begun, Outcome<RunResult> outcome) {
  const Error* const error = std::get_if<Error>(&outcome);
  if (error == nullptr) {
    int64_t bytes = 0;
    Outcome<v1::RunResponse> response = keep_outputs(begun, std::get<RunResult>(outcome), bytes);
    end(begun.job, std::move(response), bytes);
  } else if (!begun.call->cancelled() && is_passing(*error)) {
    store_.note_attempts(begun.job, begun.attempts - 1);
    table_.put_back(begun.job, false);
  } else if (!begun.call->cancelled() && is_worth_another_attempt(*error) &&
             begun.attempts < kMostAttempts) {
    table_.put_back(begun.job, true);
  } else {
    end(begun.job, *error);
  }
}

Outcome<v1::RunResponse> JobService::keep_outputs(const JobTable::Begun& begun,
                                                  const RunResult& result, int64_t& bytes) {
  std::vector<std::string> tensors;
  for (const RunOutput& output : result.outputs) {
    if (!output.tensor.empty()) tensors.push_back(output.tensor);
  }
  // Who takes the result gets tensors of its own.
  parts_.tensors.free(begun.call->tenant(), tensors);
  try {
    v1::RunResponse response;
    write_job_reply(result, response);
    int blobs = 0;
    for (int i = 0; i < response.results_size(); ++i) {
      const RunOutput& output = result.outputs[static_cast<size_t>(i)];
      bytes += output.bytes;
      if (output.tensor.empty()) continue;
      const std::string name = fmt::format("out{}", blobs++);
      store_.write_blob(begun.job, name, output.slice->data(), output.bytes);
      response.mutable_results(i)->set_tensor(name);
    }
    return response;
  } catch (...) {
    return current_error();
  }
}

void JobService::end(const std::string& job, Outcome<v1::RunResponse> outcome, int64_t bytes) {
  const Error* error = std::get_if<Error>(&outcome);
  const v1::JobPhase phase = error == nullptr                        ? v1::JOB_PHASE_DONE
                             : error->kind() == ErrorKind::Cancelled ? v1::JOB_PHASE_CANCELLED
                                                                     : v1::JOB_PHASE_FAILED;
  auto record = table_.ending(job, phase, error == nullptr ? "" : error->message(), bytes);
  if (!record) return;
  // Kept before anybody is told, so that nobody hears of an end that the next daemon forgets.
  if (!store_.end(*record, outcome) && error == nullptr) {
    return end(job, Error(ErrorKind::Unavailable, "JOB_STORE",
                          fmt::format("the result is lost: {}", store_.problem())));
  }
  store_.remove_blobs(job, "in");
  table_.finish(*record);
  begin_next();
}

void JobService::result(const std::string& tenant, const v1::ResultRequest& request,
                        Done<v1::RunResponse> done) {
  parts_.sessions.require(tenant, request.session());
  table_.when_ended(tenant, request.job(), [this, tenant, request, done = std::move(done)] {
    work_.post([this, tenant, request, done] {
      try {
        Outcome<v1::RunResponse> outcome = store_.outcome(request.job());
        if (auto* response = std::get_if<v1::RunResponse>(&outcome)) {
          *response = load_outputs(request.job(), std::move(*response), tenant, request.session());
        }
        done(std::move(outcome));
      } catch (...) {
        done(current_error());
      }
    });
  });
}

v1::RunResponse JobService::load_outputs(const std::string& job, v1::RunResponse response,
                                         const std::string& tenant, const std::string& session) {
  for (v1::Result& result : *response.mutable_results()) {
    if (result.tensor().empty()) continue;
    v1::TensorHeader header;
    header.set_type(result.type());
    *header.mutable_shape() = result.shape();
    header.set_device("cpu:0");
    Tensor tensor = tensor_of(header);
    tensor.tenant = tenant;
    tensor.session = parts_.sessions.owner(session);
    tensor.slice = load(job, result.tensor(), tensor.bytes);
    result.set_tensor(parts_.tensors.add(std::move(tensor))->id);
  }
  return response;
}

void JobService::cancel(const std::string& tenant, const std::string& job,
                        Done<v1::JobState> done) {
  const bool waits = table_.cancel(tenant, job);
  work_.post([this, tenant, job, waits, done = std::move(done)] {
    try {
      const std::string kernel = table_.state(tenant, job).kernel();
      if (waits) {
        end(job, Error(ErrorKind::Cancelled, "CANCELLED",
                       fmt::format("{} was cancelled", called(kernel))));
      }
      done(table_.state(tenant, job));
    } catch (...) {
      done(current_error());
    }
  });
}

void JobService::tick(Clock::time_point now) {
  for (const std::string& job : table_.expire(now))
    work_.post([this, job] { store_.remove(job); });
  begin_next();
}

}  // namespace kiln::server
