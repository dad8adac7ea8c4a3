#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/server.h>

#include "kiln/v1/error.pb.h"
#include "kiln/v1/service.grpc.pb.h"

namespace kiln::test {

/// A status with the details that the real service sends. `retry_ms` below 0: no RetryInfo.
grpc::Status service_error(grpc::StatusCode code, v1::ErrorKind kind, const std::string& reason,
                           const std::string& message, int retry_ms = -1,
                           const std::vector<std::string>& notes = {});

/// A service in this process, on a unix socket of its own, that records what it is asked and fails
/// on demand. Every kernel it "compiles" makes each output from its first argument, by adding 1 to
/// floats.
class FakeService : public v1::KernelService::Service,
                    public v1::TensorService::Service,
                    public v1::JobService::Service,
                    public v1::DaemonService::Service {
 public:
  FakeService();
  ~FakeService() override;

  std::string address() const { return "unix:" + socket_.string(); }

  /// The next calls of `method` ("Run") end with these, one each.
  void fail_next(const std::string& method, std::vector<grpc::Status> statuses);
  /// Forgets all kernels, as a restart does.
  void forget_kernels();
  /// Ends the server, waiting for nobody.
  void stop();

  int calls(const std::string& method);
  v1::CompileRequest last_compile();
  v1::RunRequest last_run();
  std::string last_token();
  int sessions_open();
  std::vector<std::string> tensors();
  /// Sizes of the chunks of the last upload.
  std::vector<std::size_t> last_chunks();

  /// Runs take this long, or until they are cancelled.
  std::atomic<int> run_ms{0};
  std::atomic<bool> run_was_cancelled{false};
  /// Outputs above this many bytes come as a tensor.
  std::atomic<std::size_t> largest_inline{std::size_t{3} << 20};

 private:
  grpc::Status Compile(grpc::ServerContext*, const v1::CompileRequest*,
                       v1::CompileResponse*) override;
  grpc::Status Lower(grpc::ServerContext*, const v1::LowerRequest*, v1::LowerResponse*) override;
  grpc::Status Inspect(grpc::ServerContext*, const v1::InspectRequest*,
                       v1::InspectResponse*) override;
  grpc::Status Run(grpc::ServerContext*, const v1::RunRequest*, v1::RunResponse*) override;
  grpc::Status Put(grpc::ServerContext*, const v1::PutRequest*, v1::UploadResponse*) override;
  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>*,
                      v1::UploadResponse*) override;
  grpc::Status Download(grpc::ServerContext*, const v1::DownloadRequest*,
                        grpc::ServerWriter<v1::DownloadResponse>*) override;
  grpc::Status Free(grpc::ServerContext*, const v1::FreeRequest*, v1::FreeResponse*) override;
  grpc::Status ListTensors(grpc::ServerContext*, const v1::ListTensorsRequest*,
                           v1::ListTensorsResponse*) override;
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest*, v1::SubmitResponse*) override;
  grpc::Status Watch(grpc::ServerContext*, const v1::WatchRequest*,
                     grpc::ServerWriter<v1::JobState>*) override;
  grpc::Status Result(grpc::ServerContext*, const v1::ResultRequest*, v1::RunResponse*) override;
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest*, v1::CancelResponse*) override;
  grpc::Status List(grpc::ServerContext*, const v1::ListRequest*, v1::ListResponse*) override;
  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*,
                        v1::DescribeResponse*) override;
  grpc::Status Session(grpc::ServerContext*, const v1::SessionRequest*,
                       grpc::ServerWriter<v1::SessionEvent>*) override;

  struct Stored {
    v1::TensorHeader header;
    std::string data;
  };

  /// Counts the call; the status it has to end with.
  grpc::Status enter(const std::string& method, grpc::ServerContext* context);
  Stored input_of(const v1::Argument& argument);
  void add_result(v1::RunResponse& response, unsigned parameter, const Stored& output, bool keep);
  std::string store(Stored tensor);
  grpc::Status run(const v1::RunRequest& request, const v1::CompileRequest& kernel,
                   v1::RunResponse& response);

  std::filesystem::path folder_;
  std::filesystem::path socket_;
  std::unique_ptr<grpc::Server> server_;

  std::mutex mutex_;
  std::map<std::string, std::deque<grpc::Status>> failures_;
  std::map<std::string, int> calls_;
  std::map<std::string, v1::CompileRequest> kernels_;
  std::map<std::string, Stored> tensors_;
  std::map<std::string, v1::SubmitRequest> jobs_;
  v1::CompileRequest last_compile_;
  v1::RunRequest last_run_;
  std::string last_token_;
  std::vector<std::size_t> last_chunks_;
  int next_id_ = 1;
  std::atomic<int> sessions_open_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace kiln::test
