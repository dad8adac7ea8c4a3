#include "tests/client/cpp/fake_service.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

namespace kiln::test {
namespace {

constexpr auto kTick = std::chrono::milliseconds(2);

bool is_output(const v1::CompileRequest& kernel, int parameter) {
  const auto stage = kernel.definition().parameters(parameter).stage();
  return !kernel.definition().stages(static_cast<int>(stage)).has_placeholder();
}

}  // namespace

grpc::Status service_error(grpc::StatusCode code, v1::ErrorKind kind, const std::string& reason,
                           const std::string& message, int retry_ms,
                           const std::vector<std::string>& notes) {
  v1::ErrorDetail detail;
  detail.set_kind(kind);
  detail.set_reason(reason);
  detail.set_message(message);
  for (const std::string& note : notes)
    detail.add_notes(note);
  detail.set_file("program.cc");
  detail.set_line(7);
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  status.add_details()->PackFrom(detail);
  if (retry_ms >= 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(retry_ms * 1'000'000);
    status.add_details()->PackFrom(retry);
  }
  return {code, message, status.SerializeAsString()};
}

FakeService::FakeService() {
  std::string name = (std::filesystem::temp_directory_path() / "kiln-fake-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  folder_ = name;
  socket_ = folder_ / "s";
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
  builder.RegisterService(static_cast<v1::KernelService::Service*>(this));
  builder.RegisterService(static_cast<v1::TensorService::Service*>(this));
  builder.RegisterService(static_cast<v1::JobService::Service*>(this));
  builder.RegisterService(static_cast<v1::DaemonService::Service*>(this));
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("no server");
}

FakeService::~FakeService() {
  stop();
  std::filesystem::remove_all(folder_);
}

void FakeService::stop() {
  stopping_ = true;
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  server_->Wait();
}

void FakeService::fail_next(const std::string& method, std::vector<grpc::Status> statuses) {
  const std::lock_guard lock(mutex_);
  for (grpc::Status& status : statuses)
    failures_[method].push_back(std::move(status));
}

void FakeService::forget_kernels() {
  const std::lock_guard lock(mutex_);
  kernels_.clear();
}

int FakeService::calls(const std::string& method) {
  const std::lock_guard lock(mutex_);
  return calls_[method];
}

v1::CompileRequest FakeService::last_compile() {
  const std::lock_guard lock(mutex_);
  return last_compile_;
}

v1::RunRequest FakeService::last_run() {
  const std::lock_guard lock(mutex_);
  return last_run_;
}

std::string FakeService::last_token() {
  const std::lock_guard lock(mutex_);
  return last_token_;
}

int FakeService::sessions_open() { return sessions_open_; }

std::vector<std::string> FakeService::tensors() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, tensor] : tensors_)
    ids.push_back(id);
  return ids;
}

std::vector<std::size_t> FakeService::last_chunks() {
  const std::lock_guard lock(mutex_);
  return last_chunks_;
}

grpc::Status FakeService::enter(const std::string& method, grpc::ServerContext* context) {
  const std::lock_guard lock(mutex_);
  ++calls_[method];
  const auto token = context->client_metadata().find("authorization");
  last_token_ = token == context->client_metadata().end()
                    ? ""
                    : std::string(token->second.data(), token->second.size());
  std::deque<grpc::Status>& failures = failures_[method];
  if (failures.empty()) return grpc::Status::OK;
  const grpc::Status status = failures.front();
  failures.pop_front();
  return status;
}

std::string FakeService::store(Stored tensor) {
  const std::string id = "tensor-" + std::to_string(next_id_++);
  tensors_[id] = std::move(tensor);
  return id;
}

grpc::Status FakeService::Compile(grpc::ServerContext* context, const v1::CompileRequest* request,
                                  v1::CompileResponse* response) {
  const grpc::Status status = enter("Compile", context);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  last_compile_ = *request;
  response->set_kernel_id("kernel-" + std::to_string(next_id_++));
  response->set_cache(v1::CACHE_LEVEL_COMPILED);
  response->mutable_timings()->set_compile(0.25);
  kernels_[response->kernel_id()] = *request;
  return grpc::Status::OK;
}

grpc::Status FakeService::Lower(grpc::ServerContext* context, const v1::LowerRequest* request,
                                v1::LowerResponse* response) {
  const grpc::Status status = enter("Lower", context);
  response->set_text("fn " + request->source_map().kernel() + " after " + request->after() +
                     (request->auto_() ? " auto" : ""));
  return status;
}

grpc::Status FakeService::Inspect(grpc::ServerContext* context, const v1::InspectRequest* request,
                                  v1::InspectResponse* response) {
  const grpc::Status status = enter("Inspect", context);
  response->set_text("source " + request->source());
  response->set_report_json("{\"guards\": 0}");
  return status;
}

FakeService::Stored FakeService::input_of(const v1::Argument& argument) {
  if (argument.has_tensor()) return tensors_.at(argument.tensor());
  Stored stored;
  stored.header.set_type(argument.inline_().type());
  *stored.header.mutable_shape() = argument.inline_().shape();
  stored.data = argument.inline_().data();
  return stored;
}

void FakeService::add_result(v1::RunResponse& response, unsigned parameter, const Stored& output,
                             bool keep) {
  v1::Result& result = *response.add_results();
  result.set_parameter(parameter);
  result.set_type(output.header.type());
  *result.mutable_shape() = output.header.shape();
  if (keep || output.data.size() > largest_inline) {
    result.set_tensor(store(output));
  } else {
    result.set_data(output.data);
  }
}

grpc::Status FakeService::run(const v1::RunRequest& request, const v1::CompileRequest& kernel,
                              v1::RunResponse& response) {
  Stored output = input_of(request.arguments(0));
  for (std::size_t at = 0; at + sizeof(float) <= output.data.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, output.data.data() + at, sizeof value);
    value += 1;
    std::memcpy(output.data.data() + at, &value, sizeof value);
  }
  for (int p = 0; p < request.arguments_size(); ++p) {
    const v1::Argument& argument = request.arguments(p);
    if (!is_output(kernel, p)) continue;
    if (argument.has_tensor()) {
      tensors_[argument.tensor()].data = output.data;
    } else {
      add_result(response, static_cast<unsigned>(p), output, argument.output().keep());
    }
  }
  response.mutable_timings()->set_kernel(0.5);
  response.mutable_timings()->set_cache(v1::CACHE_LEVEL_MEMORY);
  for (unsigned m = 0; m < request.measurements(); ++m)
    response.add_measured(0.001 * (m + 1));
  return grpc::Status::OK;
}

grpc::Status FakeService::Run(grpc::ServerContext* context, const v1::RunRequest* request,
                              v1::RunResponse* response) {
  const grpc::Status status = enter("Run", context);
  if (!status.ok()) return status;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begin + std::chrono::milliseconds(run_ms.load())) {
    if (context->IsCancelled()) {
      run_was_cancelled = true;
      return grpc::Status(grpc::StatusCode::CANCELLED, "");
    }
    std::this_thread::sleep_for(kTick);
  }
  const std::lock_guard lock(mutex_);
  last_run_ = *request;
  const auto kernel = kernels_.find(request->kernel_id());
  if (kernel == kernels_.end()) {
    return service_error(grpc::StatusCode::NOT_FOUND, v1::ERROR_KIND_NOT_FOUND, "KERNEL",
                         "kernel " + request->kernel_id() + " is not known here");
  }
  return run(*request, kernel->second, *response);
}

grpc::Status FakeService::Put(grpc::ServerContext* context, const v1::PutRequest* request,
                              v1::UploadResponse* response) {
  const grpc::Status status = enter("Put", context);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  response->set_tensor(store({.header = request->header(), .data = request->data()}));
  return grpc::Status::OK;
}

grpc::Status FakeService::Upload(grpc::ServerContext* context,
                                 grpc::ServerReader<v1::UploadRequest>* reader,
                                 v1::UploadResponse* response) {
  const grpc::Status status = enter("Upload", context);
  if (!status.ok()) return status;
  Stored stored;
  std::vector<std::size_t> chunks;
  v1::UploadRequest request;
  while (reader->Read(&request)) {
    if (request.has_header()) {
      stored.header = request.header();
    } else {
      chunks.push_back(request.chunk().size());
      stored.data += request.chunk();
    }
  }
  const std::lock_guard lock(mutex_);
  last_chunks_ = chunks;
  response->set_tensor(store(std::move(stored)));
  return grpc::Status::OK;
}

grpc::Status FakeService::Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                                   grpc::ServerWriter<v1::DownloadResponse>* writer) {
  const grpc::Status status = enter("Download", context);
  if (!status.ok()) return status;
  Stored stored;
  {
    const std::lock_guard lock(mutex_);
    stored = tensors_.at(request->tensor());
  }
  v1::DownloadResponse response;
  *response.mutable_header() = stored.header;
  writer->Write(response);
  for (std::size_t at = 0; at < stored.data.size(); at += std::size_t{1} << 20) {
    response.set_chunk(stored.data.substr(at, std::size_t{1} << 20));
    writer->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::Free(grpc::ServerContext* context, const v1::FreeRequest* request,
                               v1::FreeResponse* response) {
  const grpc::Status status = enter("Free", context);
  const std::lock_guard lock(mutex_);
  for (const std::string& id : request->tensors()) {
    response->set_freed(response->freed() + static_cast<unsigned>(tensors_.erase(id)));
  }
  return status;
}

grpc::Status FakeService::Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                                 v1::SubmitResponse* response) {
  const grpc::Status status = enter("Submit", context);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  response->set_job("job-" + std::to_string(next_id_++));
  jobs_[response->job()] = *request;
  return grpc::Status::OK;
}

grpc::Status FakeService::Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                                grpc::ServerWriter<v1::JobState>* writer) {
  const grpc::Status status = enter("Watch", context);
  if (!status.ok()) return status;
  v1::JobState state;
  state.set_job(request->job());
  state.set_kernel("main");
  for (const auto phase : {v1::JOB_PHASE_COMPILING, v1::JOB_PHASE_RUNNING, v1::JOB_PHASE_DONE}) {
    state.set_phase(phase);
    state.set_seconds(state.seconds() + 0.5);
    writer->Write(state);
  }
  return grpc::Status::OK;
}

grpc::Status FakeService::Result(grpc::ServerContext* context, const v1::ResultRequest* request,
                                 v1::RunResponse* response) {
  const grpc::Status status = enter("Result", context);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(request->job());
  if (job == jobs_.end()) {
    return service_error(grpc::StatusCode::NOT_FOUND, v1::ERROR_KIND_NOT_FOUND, "JOB",
                         "there is no job " + request->job());
  }
  const grpc::Status ran = run(job->second.run(), job->second.kernel(), *response);
  for (v1::Result& result : *response->mutable_results()) {
    const auto id =
        job->second.kernel().definition().parameters(static_cast<int>(result.parameter()));
    result.set_name(job->second.kernel().source_map().stages(static_cast<int>(id.stage())));
  }
  return ran;
}

grpc::Status FakeService::ListTensors(grpc::ServerContext* context,
                                      const v1::ListTensorsRequest* request,
                                      v1::ListTensorsResponse* response) {
  const grpc::Status status = enter("ListTensors", context);
  const std::lock_guard lock(mutex_);
  for (const auto& [id, stored] : tensors_) {
    response->set_count(response->count() + 1);
    response->set_bytes(response->bytes() + static_cast<std::int64_t>(stored.data.size()));
    const bool is_full = response->tensors_size() == static_cast<int>(request->limit());
    if (is_full && request->limit() > 0) continue;
    v1::TensorState& state = *response->add_tensors();
    state.set_tensor(id);
    state.set_type(stored.header.type());
    *state.mutable_shape() = stored.header.shape();
    state.set_bytes(static_cast<std::int64_t>(stored.data.size()));
    state.set_device("cpu:0");
    state.set_session(stored.header.session());
    state.set_unused_ms(1500);
  }
  response->set_limit_bytes(1 << 30);
  return status;
}

grpc::Status FakeService::Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                                 v1::CancelResponse* response) {
  const grpc::Status status = enter("Cancel", context);
  response->mutable_state()->set_job(request->job());
  response->mutable_state()->set_phase(v1::JOB_PHASE_CANCELLED);
  return status;
}

grpc::Status FakeService::List(grpc::ServerContext* context, const v1::ListRequest*,
                               v1::ListResponse* response) {
  const grpc::Status status = enter("List", context);
  const std::lock_guard lock(mutex_);
  for (const auto& [id, request] : jobs_) {
    v1::JobState& state = *response->add_jobs();
    state.set_job(id);
    state.set_phase(v1::JOB_PHASE_RUNNING);
    state.set_kernel(request.kernel().source_map().kernel());
    state.set_seconds(1.5);
  }
  return status;
}

grpc::Status FakeService::Describe(grpc::ServerContext* context, const v1::DescribeRequest*,
                                   v1::DescribeResponse* response) {
  const grpc::Status status = enter("Describe", context);
  response->set_version("0.1.0");
  response->set_boot_id("boot");
  response->set_pid(static_cast<unsigned>(getpid()));
  (*response->mutable_counters())["compiles"] = 3;
  v1::Device& device = *response->add_devices();
  device.set_name("cpu:0");
  device.set_target("llvm");
  device.set_arch("znver5");
  device.set_state("ready");
  device.set_memory_bytes(std::int64_t{8} << 30);
  device.set_description("2 cores");
  v1::Component& cpu = *response->add_components();
  cpu.set_name("cpu");
  cpu.set_ok(true);
  cpu.set_message("cpu:0 runs kernels on 2 threads");
  v1::Component& cuda = *response->add_components();
  cuda.set_name("libcuda");
  cuda.set_message("libcuda.so.1 was not found: install the NVIDIA driver");
  return status;
}

grpc::Status FakeService::Session(grpc::ServerContext* context, const v1::SessionRequest*,
                                  grpc::ServerWriter<v1::SessionEvent>* writer) {
  const grpc::Status status = enter("Session", context);
  if (!status.ok()) return status;
  v1::SessionEvent event;
  event.set_session("session-1");
  ++sessions_open_;
  writer->Write(event);
  while (!context->IsCancelled() && !stopping_)
    std::this_thread::sleep_for(kTick);
  --sessions_open_;
  return grpc::Status::OK;
}

}  // namespace kiln::test
