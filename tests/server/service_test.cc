#include "tests/server/service_test.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

namespace kiln::server {

using std::chrono::milliseconds;

namespace {

void set_limit(grpc::ClientContext& context, milliseconds limit) {
  context.set_deadline(std::chrono::system_clock::now() + limit);
}

/// The tables of Y[extent] = X[extent] + 1; expression 0 is the extent.
v1::CompileRequest add_one_with(const std::string& kernel, const v1::Expression& extent) {
  v1::CompileRequest request;
  v1::Definition& definition = *request.mutable_definition();
  *definition.add_expressions() = extent;
  definition.add_expressions()->mutable_integer()->set_type(v1::DATA_TYPE_INT64);
  v1::Axis& axis = *definition.add_axes();
  axis.set_kind(v1::AXIS_KIND_DATA);
  axis.set_minimum(1);
  axis.set_extent(0);
  definition.add_expressions()->set_axis(0);
  v1::Read& read = *definition.add_expressions()->mutable_read();
  read.mutable_tensor()->set_stage(0);
  read.add_indices(2);
  v1::FloatConstant& one = *definition.add_expressions()->mutable_floating();
  one.set_type(v1::DATA_TYPE_FLOAT32);
  one.set_value(1);
  v1::Operation& sum = *definition.add_expressions()->mutable_operation();
  sum.set_operator_("add");
  sum.add_operands(3);
  sum.add_operands(4);

  v1::Placeholder& x = *definition.add_stages()->mutable_placeholder();
  x.set_type(v1::DATA_TYPE_FLOAT32);
  x.add_shape(0);
  v1::Compute& y = *definition.add_stages()->mutable_compute();
  y.add_axes(0);
  y.add_bodies(5);
  definition.add_parameters()->set_stage(0);
  definition.add_parameters()->set_stage(1);

  v1::SourceMap& names = *request.mutable_source_map();
  names.set_kernel(kernel);
  names.add_axes("i");
  names.add_stages("X");
  names.add_stages("Y");
  return request;
}

google::rpc::Status rich_status_of(const grpc::Status& status) {
  google::rpc::Status rich;
  EXPECT_TRUE(rich.ParseFromString(status.error_details()));
  return rich;
}

}  // namespace

EngineOptions quick_options(const std::string& cache_folder) {
  EngineOptions options;
  options.cache_folder = cache_folder;
  options.tick = milliseconds(20);
  options.times.margin = milliseconds(200);
  // A worker takes a while to start on a busy machine.
  options.times.restart_grace = kLong / 2;
  options.session_grace = milliseconds(100);
  options.canary_period = {};  // tests count what compiles and runs
  return options;
}

v1::CompileRequest add_one(const std::string& kernel) {
  v1::Expression size;
  size.set_variable(0);
  v1::CompileRequest request = add_one_with(kernel, size);
  request.mutable_definition()->add_variables()->set_nonnegative(true);
  request.mutable_source_map()->add_variables("n");
  return request;
}

v1::CompileRequest add_one_of(const std::string& kernel, int64_t size) {
  v1::Expression constant;
  constant.mutable_integer()->set_type(v1::DATA_TYPE_INT64);
  constant.mutable_integer()->set_value(size);
  return add_one_with(kernel, constant);
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

v1::Argument inline_argument(const std::vector<float>& values) {
  v1::Argument argument;
  v1::Inline& value = *argument.mutable_inline_();
  value.set_type(v1::DATA_TYPE_FLOAT32);
  value.add_shape(static_cast<int64_t>(values.size()));
  value.set_data(bytes_of(values));
  return argument;
}

v1::Argument output_argument(bool keep) {
  v1::Argument argument;
  argument.mutable_output()->set_keep(keep);
  return argument;
}

v1::Argument tensor_argument(const std::string& tensor) {
  v1::Argument argument;
  argument.set_tensor(tensor);
  return argument;
}

v1::TensorHeader header_of(int64_t size, const std::string& session) {
  v1::TensorHeader header;
  header.set_type(v1::DATA_TYPE_FLOAT32);
  header.add_shape(size);
  header.set_session(session);
  return header;
}

v1::ErrorDetail detail_of(const grpc::Status& status) {
  v1::ErrorDetail detail;
  const google::rpc::Status rich = rich_status_of(status);
  for (const auto& part : rich.details()) {
    if (part.Is<v1::ErrorDetail>()) part.UnpackTo(&detail);
  }
  return detail;
}

double retry_seconds_of(const grpc::Status& status) {
  google::rpc::RetryInfo retry;
  const google::rpc::Status rich = rich_status_of(status);
  for (const auto& part : rich.details()) {
    if (part.Is<google::rpc::RetryInfo>()) part.UnpackTo(&retry);
  }
  return static_cast<double>(retry.retry_delay().seconds()) + retry.retry_delay().nanos() * 1e-9;
}

void expect_status(const grpc::Status& status, grpc::StatusCode code, const std::string& reason,
                   const std::string& message) {
  EXPECT_EQ(status.error_code(), code) << status.error_message();
  EXPECT_EQ(status.error_message(), message);
  const v1::ErrorDetail detail = detail_of(status);
  EXPECT_EQ(detail.reason(), reason);
  EXPECT_EQ(detail.message(), message);
  google::rpc::ErrorInfo info;
  const google::rpc::Status rich = rich_status_of(status);
  for (const auto& part : rich.details()) {
    if (part.Is<google::rpc::ErrorInfo>()) part.UnpackTo(&info);
  }
  EXPECT_EQ(info.reason(), reason);
  EXPECT_EQ(info.domain(), "kiln");
}

bool eventually(const std::function<bool()>& condition, milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

Service::Service(const EngineOptions& options, GrpcOptions grpc) {
  engine_ = std::make_unique<Engine>(options, std::make_unique<ProcessLauncher>(KILN_FAKE_LIBEXEC));
  if (grpc.listen.empty()) grpc.listen = "unix:" + (folder_.path() / "s").string();
  server_ = std::make_unique<GrpcServer>(*engine_, grpc);
  EXPECT_TRUE(engine_->wait_until_ready(kLong));
  const auto to_it = channel();
  kernels = v1::KernelService::NewStub(to_it);
  tensors = v1::TensorService::NewStub(to_it);
  jobs = v1::JobService::NewStub(to_it);
  daemon = v1::DaemonService::NewStub(to_it);
}

Service::~Service() {
  server_->shut_down(milliseconds(0));
  engine_->stop();
}

std::shared_ptr<grpc::Channel> Service::channel(
    const std::shared_ptr<grpc::ChannelCredentials>& how) const {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server_->address(), how, own);
}

int64_t Service::counter(const std::string& name) {
  const v1::DescribeResponse description = engine_->describe();
  const auto at = description.counters().find(name);
  EXPECT_TRUE(at != description.counters().end()) << name;
  return at == description.counters().end() ? -1 : at->second;
}

grpc::Status Service::compile(const v1::CompileRequest& request, v1::CompileResponse& response,
                              milliseconds limit) {
  grpc::ClientContext context;
  set_limit(context, limit);
  return kernels->Compile(&context, request, &response);
}

std::string Service::kernel(const v1::CompileRequest& request) {
  v1::CompileResponse response;
  const grpc::Status status = compile(request, response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.kernel_id();
}

grpc::Status Service::run(const v1::RunRequest& request, v1::RunResponse& response,
                          milliseconds limit) {
  grpc::ClientContext context;
  set_limit(context, limit);
  return kernels->Run(&context, request, &response);
}

grpc::Status Service::run(const std::string& kernel, const std::vector<float>& input,
                          std::vector<float>* output, milliseconds limit) {
  v1::RunRequest request;
  request.set_kernel_id(kernel);
  *request.add_arguments() = inline_argument(input);
  *request.add_arguments() = output_argument();
  v1::RunResponse response;
  const grpc::Status status = run(request, response, limit);
  if (status.ok() && output != nullptr) *output = floats_of(response.results(0).data());
  return status;
}

grpc::Status Service::upload(const v1::TensorHeader& header, const std::vector<std::string>& chunks,
                             std::string& tensor) {
  grpc::ClientContext context;
  set_limit(context, kLong);
  v1::UploadResponse response;
  const auto stream = tensors->Upload(&context, &response);
  v1::UploadRequest part;
  *part.mutable_header() = header;
  stream->Write(part);
  for (const std::string& chunk : chunks) {
    part.set_chunk(chunk);
    stream->Write(part);
  }
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  tensor = response.tensor();
  return status;
}

std::string Service::upload(const std::vector<float>& values, const std::string& session) {
  constexpr size_t kChunk = 1 << 20;
  const std::string bytes = bytes_of(values);
  std::vector<std::string> chunks;
  for (size_t at = 0; at < bytes.size(); at += kChunk)
    chunks.push_back(bytes.substr(at, kChunk));
  std::string tensor;
  const grpc::Status status =
      upload(header_of(static_cast<int64_t>(values.size()), session), chunks, tensor);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return tensor;
}

grpc::Status Service::download(const std::string& tensor, std::string& bytes) {
  grpc::ClientContext context;
  set_limit(context, kLong);
  v1::DownloadRequest request;
  request.set_tensor(tensor);
  const auto stream = tensors->Download(&context, request);
  v1::DownloadResponse part;
  bytes.clear();
  while (stream->Read(&part))
    bytes += part.chunk();
  return stream->Finish();
}

ServiceTest::ServiceTest() {
  ::setenv("KILN_FAKE_FOLDER", folder_.path().c_str(), 1);
  restart();
}

void ServiceTest::restart() { restart(usual_options()); }

void ServiceTest::restart(const EngineOptions& options) {
  service_.reset();
  service_ = std::make_unique<Service>(options);
}

void ServiceTest::let_go() const { std::ofstream(folder_.path() / "go") << "go"; }

void ServiceTest::hold_again() const {
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    const std::string name = file.path().filename().string();
    if (name == "go" || name.ends_with(".begun")) std::filesystem::remove(file.path());
  }
}

void ServiceTest::set_fault(const std::string& fault) const {
  std::ofstream(folder_.path() / fault) << fault;
}

void ServiceTest::clear_fault(const std::string& fault) const {
  std::filesystem::remove(folder_.path() / fault);
}

bool ServiceTest::has_begun(const std::string& kernel) const {
  return eventually([&] { return std::filesystem::exists(folder_.path() / (kernel + ".begun")); });
}

}  // namespace kiln::server
