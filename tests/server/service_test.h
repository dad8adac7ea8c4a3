#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "kiln/v1/service.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/grpc_server.h"
#include "tests/support/daemon.h"

namespace kiln::server {

/// Engine options for tests: everything happens soon.
EngineOptions quick_options(const std::string& cache_folder);

/// float32 Y[n] = X[n] + 1, under this name.
v1::CompileRequest add_one(const std::string& kernel);
/// The same with one constant size, so another kernel for each.
v1::CompileRequest add_one_of(const std::string& kernel, int64_t size);

v1::Argument inline_argument(const std::vector<float>& values);
v1::Argument output_argument(bool keep = false);
v1::Argument tensor_argument(const std::string& tensor);
std::string bytes_of(const std::vector<float>& values);
std::vector<float> floats_of(const std::string& bytes);
v1::TensorHeader header_of(int64_t size, const std::string& session = "");

/// What a status carries.
v1::ErrorDetail detail_of(const grpc::Status& status);
double retry_seconds_of(const grpc::Status& status);  // 0: not told to

/// Fails the test unless the status says exactly this.
void expect_status(const grpc::Status& status, grpc::StatusCode code, const std::string& reason,
                   const std::string& message);

constexpr auto kLong = std::chrono::milliseconds(20'000);

/// Waits until `condition` holds; false when it does not in time.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = kLong);

/// A service in this process, its workers fakes in theirs, and a client of it.
class Service {
 public:
  explicit Service(const EngineOptions& options, GrpcOptions grpc = {});
  ~Service();

  /// A connection of its own.
  std::shared_ptr<grpc::Channel> channel(const std::shared_ptr<grpc::ChannelCredentials>& how =
                                             grpc::InsecureChannelCredentials()) const;
  Engine& engine() { return *engine_; }
  GrpcServer& server() { return *server_; }
  int64_t counter(const std::string& name);

  grpc::Status compile(const v1::CompileRequest& request, v1::CompileResponse& response,
                       std::chrono::milliseconds limit = kLong);
  /// The id of a kernel that compiles.
  std::string kernel(const v1::CompileRequest& request);
  grpc::Status run(const v1::RunRequest& request, v1::RunResponse& response,
                   std::chrono::milliseconds limit = kLong);
  grpc::Status run(const std::string& kernel, const std::vector<float>& input,
                   std::vector<float>* output = nullptr, std::chrono::milliseconds limit = kLong);
  grpc::Status upload(const v1::TensorHeader& header, const std::vector<std::string>& chunks,
                      std::string& tensor);
  std::string upload(const std::vector<float>& values, const std::string& session = "");
  grpc::Status download(const std::string& tensor, std::string& bytes);

  std::unique_ptr<v1::KernelService::Stub> kernels;
  std::unique_ptr<v1::TensorService::Stub> tensors;
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::DaemonService::Stub> daemon;

 private:
  testing::TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<GrpcServer> server_;
};

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest();
  /// Makes another service over the same cache.
  void restart();
  void restart(const EngineOptions& options);
  /// The options of restart(), for a test that changes one of them.
  EngineOptions usual_options() const { return quick_options(folder_.path().string()); }
  /// Waits until a worker is at this kernel: one that hangs, polls or waits.
  bool has_begun(const std::string& kernel) const;
  /// Lets the kernels go on that wait; and lets them wait again.
  void let_go() const;
  void hold_again() const;
  /// What devices of the fake worker lack from now on: "no_device", "no_memory", or to "mute".
  void set_fault(const std::string& fault) const;
  void clear_fault(const std::string& fault) const;

  testing::TemporaryFolder folder_;
  std::unique_ptr<Service> service_;
};

}  // namespace kiln::server
