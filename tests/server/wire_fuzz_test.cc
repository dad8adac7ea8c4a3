// Bytes that no client of ours sends, over real connections: every method gets requests that were
// changed, cut, doubled or put together wrongly, and the socket itself gets what is no HTTP/2.
// KILN_FUZZ_SEED and KILN_FUZZ_ROUNDS as for the other fuzzers.
#include <algorithm>
#include <cstdlib>
#include <random>

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "kiln/v1/predict.pb.h"
#include "kiln/v1/uploads.pb.h"
#include "server/ipc/fd.h"
#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

uint64_t from_environment(const char* name, uint64_t usual) {
  const char* const value = std::getenv(name);
  return value == nullptr ? usual : std::strtoull(value, nullptr, 10);
}

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

class WireFuzz : public ServiceTest {
 protected:
  WireFuzz() {
    stream_ = service_->daemon->Session(&context_, v1::SessionRequest());
    v1::SessionEvent event;
    EXPECT_TRUE(stream_->Read(&event));
    session_ = event.session();
    kernel_ = service_->kernel(add_one("plus"));
    tensor_ = service_->upload({1, 2, 3}, session_);
    channel_ = service_->channel();
  }
  ~WireFuzz() override {
    context_.TryCancel();
    stream_->Finish();
  }

  /// Sound requests of all methods, by path.
  std::vector<std::pair<std::string, std::string>> seeds() const {
    v1::RunRequest run;
    run.set_kernel_id(kernel_);
    *run.add_arguments() = tensor_argument(tensor_);
    *run.add_arguments() = output_argument();
    v1::RunRequest inside = run;
    *inside.mutable_arguments(0) = inline_argument({1, 2});
    v1::PutRequest put;
    *put.mutable_header() = header_of(2, session_);
    put.set_data(bytes_of({1, 2}));
    v1::FreeRequest free;
    free.add_tensors("none");
    v1::ListTensorsRequest list;
    list.set_limit(3);
    v1::DownloadRequest download;
    download.set_tensor(tensor_);
    v1::BeginUploadRequest begin;
    *begin.mutable_header() = header_of(3);
    begin.set_upload("upload");
    begin.set_sha256(std::string(32, 'd'));
    v1::InspectRequest inspect;
    inspect.set_kernel_id(kernel_);
    v1::ParseRequest parse;
    parse.set_text("kernel f(X: float32[n]) -> (Y: float32[n]) { Y[i] = X[i] + 1 }");
    v1::SubmitRequest submit;
    *submit.mutable_kernel() = add_one("job");
    *submit.mutable_run()->add_arguments() = inline_argument({1});
    *submit.mutable_run()->add_arguments() = output_argument();
    v1::PredictRequest predict;
    *predict.mutable_kernel() = add_one("other");
    (*predict.mutable_sizes())["n"] = 8;
    predict.set_threads(2);
    v1::WatchRequest watch;
    watch.set_job("none");
    return {{"KernelService/Compile", add_one("other").SerializeAsString()},
            {"KernelService/Run", run.SerializeAsString()},
            {"KernelService/Run", inside.SerializeAsString()},
            {"KernelService/Inspect", inspect.SerializeAsString()},
            {"ArtifactService/Export", inspect.SerializeAsString()},
            {"KernelService/Parse", parse.SerializeAsString()},
            {"TensorService/Put", put.SerializeAsString()},
            {"UploadService/Begin", begin.SerializeAsString()},
            {"PredictionService/Predict", predict.SerializeAsString()},
            {"TensorService/Free", free.SerializeAsString()},
            {"TensorService/ListTensors", list.SerializeAsString()},
            {"TensorService/Download", download.SerializeAsString()},
            {"JobService/Submit", submit.SerializeAsString()},
            {"JobService/Watch", watch.SerializeAsString()},
            {"JobService/Result", watch.SerializeAsString()},
            {"JobService/Cancel", watch.SerializeAsString()},
            {"DaemonService/Describe", ""}};
  }
  std::string mutated(std::string bytes) {
    const auto any = [this](size_t below) { return below == 0 ? 0 : random_() % below; };
    for (uint64_t changes = 1 + any(3); changes > 0; --changes) {
      const size_t at = any(bytes.size() + 1);
      switch (random_() % 6) {
        case 0: bytes.resize(at); break;
        case 1: bytes += bytes.substr(at); break;
        case 2: bytes.insert(at, 1 + any(4), static_cast<char>(random_())); break;
        case 3: bytes.insert(at, "\xff\xff\xff\xff\x0f"); break;  // a length of 4 GiB
        case 4:
          std::rotate(bytes.begin(), bytes.begin() + static_cast<int64_t>(at), bytes.end());
          break;
        default:
          if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
      }
    }
    return bytes;
  }
  void set_limit(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() + kLong);
  }
  /// The status of a call with these bytes; all answers are read.
  grpc::Status call(const std::string& path, const std::string& request) {
    const std::string full = "/kiln.v1." + path;
    const grpc::internal::RpcMethod method(full.c_str(),
                                           grpc::internal::RpcMethod::SERVER_STREAMING);
    grpc::ClientContext context;
    set_limit(context);
    const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
            channel_.get(), method, &context, buffer_of(request)));
    grpc::ByteBuffer answer;
    while (reader->Read(&answer)) {
    }
    return reader->Finish();
  }
  grpc::Status upload(const std::vector<std::string>& messages) {
    const grpc::internal::RpcMethod method("/kiln.v1.TensorService/Upload",
                                           grpc::internal::RpcMethod::CLIENT_STREAMING);
    grpc::ClientContext context;
    set_limit(context);
    grpc::ByteBuffer answer;
    const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(
        grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(channel_.get(), method,
                                                                      &context, &answer));
    for (const std::string& message : messages) {
      if (!writer->Write(buffer_of(message))) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  std::vector<std::string> sound_upload() const {
    v1::UploadRequest header;
    *header.mutable_header() = header_of(3, session_);
    v1::UploadRequest first;
    first.set_chunk(bytes_of({1}));
    v1::UploadRequest second;
    second.set_chunk(bytes_of({2, 3}));
    return {header.SerializeAsString(), first.SerializeAsString(), second.SerializeAsString()};
  }
  void expect_service() {
    std::vector<float> output;
    EXPECT_TRUE(service_->run(kernel_, {1, 2}, &output).ok());
    EXPECT_EQ(output, (std::vector<float>{2, 3}));
  }

  google::protobuf::LogSilencer silencer_;  // which says of each that it is no message
  const uint64_t rounds_ = from_environment("KILN_FUZZ_ROUNDS", 300);
  std::mt19937_64 random_{from_environment("KILN_FUZZ_SEED", 1)};
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> stream_;
  std::string session_;
  std::string kernel_;
  std::string tensor_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(WireFuzz, SoundRequestsAreSound) {
  for (const auto& [path, request] : seeds()) {
    const grpc::Status status = call(path, request);
    const bool is_unknown_job = path.starts_with("JobService/") && path != "JobService/Submit";
    EXPECT_EQ(status.error_code(),
              is_unknown_job ? grpc::StatusCode::NOT_FOUND : grpc::StatusCode::OK)
        << path << ": " << status.error_message();
  }
  EXPECT_TRUE(upload(sound_upload()).ok());
}

TEST_F(WireFuzz, ChangedRequestsAreAnsweredAndHarmNobody) {
  const auto all = seeds();
  for (uint64_t round = 0; round < rounds_; ++round) {
    const auto& [path, request] = all[round % all.size()];
    const grpc::Status status = call(path, mutated(request));
    // Not our bug, not a call that hangs, and not a daemon that is gone.
    for (const auto code : {grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN,
                            grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::UNAVAILABLE}) {
      EXPECT_NE(status.error_code(), code)
          << "round " << round << " of " << path << ": " << status.error_message();
    }
  }
  expect_service();
}

TEST_F(WireFuzz, ChangedUploadsAreAnsweredAndHarmNobody) {
  const std::vector<std::string> sound = sound_upload();
  for (uint64_t round = 0; round < rounds_; ++round) {
    std::vector<std::string> messages = sound;
    std::shuffle(messages.begin(), messages.end(), random_);
    messages.resize(random_() % 4, sound[0]);
    if (!messages.empty() && round % 2 == 0) messages[0] = mutated(messages[0]);
    const grpc::Status status = upload(messages);
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                status.error_code() == grpc::StatusCode::NOT_FOUND ||
                status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
                detail_of(status).reason() == "NO_DEVICE")
        << "round " << round << ": " << status.error_message();
  }
  expect_service();
}

TEST_F(WireFuzz, ChunksInTheWrongOrderAreNamed) {
  const std::vector<std::string> sound = sound_upload();
  expect_status(upload({sound[1], sound[0], sound[2]}), grpc::StatusCode::INVALID_ARGUMENT,
                "UPLOAD_HEADER", "an upload starts with a header");
  expect_status(upload({sound[0], sound[0], sound[1]}), grpc::StatusCode::INVALID_ARGUMENT,
                "UPLOAD_HEADER", "an upload has one header");
  expect_status(upload({sound[0], sound[1]}), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "the upload has 4 bytes, but its shape (3,) needs 12");
  expect_status(upload({sound[0], sound[2], sound[2]}), grpc::StatusCode::INVALID_ARGUMENT,
                "UPLOAD_BYTES", "the upload has more than the 12 bytes that its shape (3,) needs");
  expect_status(upload({}), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_HEADER",
                "an upload starts with a header");
}

TEST_F(WireFuzz, MessagesThatAreTooLargeAreRefused) {
  const std::string large(5 << 20, 'x');
  EXPECT_EQ(call("KernelService/Run", large).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(upload({sound_upload()[0], large}).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  expect_service();
}

TEST_F(WireFuzz, WhatIsNoHttp2IsHungUpOn) {
  const std::string address = service_->server().address().substr(5);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (uint64_t round = 0; round < rounds_ / 10; ++round) {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un there{};
    there.sun_family = AF_UNIX;
    address.copy(there.sun_path, sizeof there.sun_path - 1);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
    // Frames with lengths, kinds and streams by chance; some end in the middle.
    std::string bytes = round % 3 == 0 ? "" : preface;
    for (uint64_t count = random_() % 2000; count > 0; --count)
      bytes.push_back(static_cast<char>(random_()));
    static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  expect_service();
}

}  // namespace
}  // namespace kiln::server
