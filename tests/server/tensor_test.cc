#include <fstream>
#include <iterator>
#include <thread>

#include <unistd.h>

#include "server/rpc/tensor_frames.h"
#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

/// Of this process, in which the service is.
int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t whole = 0;
  int64_t resident = 0;
  in >> whole >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

class Tensors : public ServiceTest {
 protected:
  /// Opens a session and keeps it until the stream is cancelled.
  struct OpenSession {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> stream;
    std::string id;
  };
  std::unique_ptr<OpenSession> open_session() {
    auto session = std::make_unique<OpenSession>();
    session->stream = service_->daemon->Session(&session->context, v1::SessionRequest());
    v1::SessionEvent event;
    EXPECT_TRUE(session->stream->Read(&event));
    session->id = event.session();
    return session;
  }
  static void end(OpenSession& session) {
    session.context.TryCancel();
    session.stream->Finish();
  }
  grpc::Status status_of_download(const std::string& tensor) {
    std::string bytes;
    return service_->download(tensor, bytes);
  }
  uint32_t freed(const std::string& tensor) {
    grpc::ClientContext context;
    v1::FreeRequest request;
    request.add_tensors(tensor);
    v1::FreeResponse response;
    EXPECT_TRUE(service_->tensors->Free(&context, request, &response).ok());
    return response.freed();
  }
};

TEST_F(Tensors, AreListedTheLargestFirst) {
  const auto list = [&](uint32_t limit) {
    grpc::ClientContext context;
    v1::ListTensorsRequest request;
    request.set_limit(limit);
    v1::ListTensorsResponse response;
    EXPECT_TRUE(service_->tensors->ListTensors(&context, request, &response).ok());
    return response;
  };
  EXPECT_EQ(list(0).tensors_size(), 0);

  const auto session = open_session();
  const std::string small = service_->upload({1, 2, 3}, session->id);
  const std::string large = service_->upload({1, 2, 3, 4, 5});
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(status_of_download(small).ok());  // a use of it

  const v1::ListTensorsResponse all = list(0);
  ASSERT_EQ(all.tensors_size(), 2);
  EXPECT_EQ(all.count(), 2);
  EXPECT_EQ(all.bytes(), 32);
  EXPECT_EQ(all.limit_bytes(), 0);
  const v1::TensorState& first = all.tensors(0);
  EXPECT_EQ(first.tensor(), large);
  EXPECT_EQ(first.type(), v1::DATA_TYPE_FLOAT32);
  EXPECT_EQ(std::vector<int64_t>(first.shape().begin(), first.shape().end()),
            (std::vector<int64_t>{5}));
  EXPECT_EQ(first.bytes(), 20);
  EXPECT_EQ(first.device(), "cpu:0");
  EXPECT_EQ(first.session(), "");
  EXPECT_GE(first.unused_ms(), 30);
  const v1::TensorState& second = all.tensors(1);
  EXPECT_EQ(second.tensor(), small);
  EXPECT_EQ(second.session(), session->id);
  EXPECT_LT(second.unused_ms(), first.unused_ms());

  const v1::ListTensorsResponse largest = list(1);
  ASSERT_EQ(largest.tensors_size(), 1);
  EXPECT_EQ(largest.tensors(0).tensor(), large);
  EXPECT_EQ(largest.count(), 2);
  EXPECT_EQ(largest.bytes(), 32);

  EXPECT_EQ(freed(large), 1U);
  EXPECT_EQ(list(0).bytes(), 12);
  end(*session);
}

TEST_F(Tensors, ComeBackAsTheyWere) {
  std::vector<float> values(1'000'000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  const std::string contents = bytes_of(values);
  std::vector<std::string> chunks;
  for (size_t at = 0; at < contents.size(); at += 300'000)
    chunks.push_back(contents.substr(at, 300'000));
  std::string tensor;
  ASSERT_TRUE(service_->upload(header_of(1'000'000), chunks, tensor).ok());

  grpc::ClientContext context;
  v1::DownloadRequest request;
  request.set_tensor(tensor);
  const auto stream = service_->tensors->Download(&context, request);
  v1::DownloadResponse part;
  ASSERT_TRUE(stream->Read(&part));
  EXPECT_EQ(part.header().type(), v1::DATA_TYPE_FLOAT32);
  EXPECT_EQ(part.header().shape(0), 1'000'000);
  EXPECT_EQ(part.header().device(), "cpu:0");
  std::string bytes;
  while (stream->Read(&part)) {
    EXPECT_LE(part.chunk().size(), 1U << 20);
    bytes += part.chunk();
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(bytes == contents);
}

TEST(TensorFrames, AChunkIsReadHoweverItIsCut) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{20'000}}) {
    std::string contents(size, '\0');
    for (size_t i = 0; i < size; ++i)
      contents[i] = static_cast<char>(i * 7);
    v1::UploadRequest request;
    request.set_chunk(contents);
    const std::string bytes = request.SerializeAsString();
    for (size_t cut = 0; cut <= std::min<size_t>(bytes.size(), 8); ++cut) {
      const std::vector<grpc::Slice> parts = {grpc::Slice(bytes.substr(0, cut)),
                                              grpc::Slice(bytes.substr(cut))};
      const auto chunk = ReceivedChunk::in(grpc::ByteBuffer(parts.data(), parts.size()));
      ASSERT_TRUE(chunk.has_value()) << size << " " << cut;
      std::string read(static_cast<size_t>(chunk->bytes()), '\0');
      chunk->copy_to(reinterpret_cast<uint8_t*>(read.data()));
      EXPECT_EQ(read, contents);
    }
    // Cut off, or with more behind it, it is not what is read here.
    for (const std::string& other : {bytes.substr(0, bytes.size() - 1), bytes + bytes}) {
      const grpc::Slice part(other);
      EXPECT_FALSE(ReceivedChunk::in(grpc::ByteBuffer(&part, 1)).has_value());
    }
  }
}

TEST_F(Tensors, OfOneMessageComeBackAsTheyWere) {
  v1::PutRequest request;
  *request.mutable_header() = header_of(3);
  request.set_data(bytes_of({1, 2, 3}));
  const auto put = [&](v1::UploadResponse& response) {
    grpc::ClientContext context;
    return service_->tensors->Put(&context, request, &response);
  };
  v1::UploadResponse response;
  ASSERT_TRUE(put(response).ok());
  std::string bytes;
  ASSERT_TRUE(service_->download(response.tensor(), bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{1, 2, 3}));
  request.mutable_header()->set_into(response.tensor());
  request.set_data(bytes_of({4, 5, 6}));
  ASSERT_TRUE(put(response).ok());
  ASSERT_TRUE(service_->download(response.tensor(), bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{4, 5, 6}));
  request.set_data(bytes_of({4, 5}));
  expect_status(put(response), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "the upload has 8 bytes, but its shape (3,) needs 12");
  request.set_data(bytes_of({4, 5, 6, 7}));
  expect_status(put(response), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "the upload has more than the 12 bytes that its shape (3,) needs");
}

TEST_F(Tensors, OfAnEndedSessionAreRefusedThoughTheirUploadBeganBefore) {
  const std::string session = service_->engine().sessions().open("");
  grpc::ClientContext context;
  v1::UploadResponse response;
  const auto stream = service_->tensors->Upload(&context, &response);
  v1::UploadRequest part;
  *part.mutable_header() = header_of(2, session);
  stream->Write(part);
  part.set_chunk(bytes_of({1, 2}));
  stream->Write(part);
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") > 0; }));
  service_->engine().sessions().end(session);
  stream->WritesDone();
  expect_status(stream->Finish(), grpc::StatusCode::NOT_FOUND, "SESSION",
                "session " + session + " has ended; open another");
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") == 0; }));
}

TEST_F(Tensors, TakeNoMemoryByTheirHeaderAloneAndNotForEver) {
  EngineOptions options = usual_options();
  options.idle_upload = std::chrono::milliseconds(500);
  restart(options);
  const int64_t before = resident_bytes();
  grpc::ClientContext context;
  v1::UploadResponse response;
  const auto stream = service_->tensors->Upload(&context, &response);
  v1::UploadRequest part;
  *part.mutable_header() = header_of(int64_t{64} << 20);
  stream->Write(part);
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") > 0; }));
  EXPECT_LT(resident_bytes() - before, int64_t{64} << 20);
  expect_status(stream->Finish(), grpc::StatusCode::DEADLINE_EXCEEDED, "UPLOAD_IDLE",
                "the upload was ended, since nothing came for a while");
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") == 0; }));
}

TEST_F(Tensors, AreZeroWhenTheyAreOnlyAllocated) {
  freed(service_->upload(std::vector<float>(1000, 7)));  // leaves its memory warm
  v1::TensorHeader header = header_of(1000);
  header.set_empty(true);
  std::string tensor;
  ASSERT_TRUE(service_->upload(header, {}, tensor).ok());
  std::string bytes;
  ASSERT_TRUE(service_->download(tensor, bytes).ok());
  EXPECT_EQ(floats_of(bytes), std::vector<float>(1000, 0));
}

TEST_F(Tensors, MayHaveNoElements) {
  std::string tensor;
  ASSERT_TRUE(service_->upload(header_of(0), {}, tensor).ok());
  std::string bytes = "x";
  ASSERT_TRUE(service_->download(tensor, bytes).ok());
  EXPECT_EQ(bytes, "");
}

TEST_F(Tensors, CanBeOverwritten) {
  const std::string tensor = service_->upload({1, 2});
  v1::TensorHeader header = header_of(2);
  header.set_into(tensor);
  std::string same;
  ASSERT_TRUE(service_->upload(header, {bytes_of({3, 4})}, same).ok());
  EXPECT_EQ(same, tensor);
  std::string bytes;
  ASSERT_TRUE(service_->download(tensor, bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{3, 4}));
  header.set_shape(0, 3);
  expect_status(service_->upload(header, {}, same), grpc::StatusCode::INVALID_ARGUMENT,
                "UPLOAD_SHAPE",
                "the tensor to overwrite is float32 (2,), but the upload is float32 (3,)");
}

TEST_F(Tensors, MustHaveExactlyTheirBytes) {
  std::string tensor;
  expect_status(service_->upload(header_of(2), {"1234567"}, tensor),
                grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "the upload has 7 bytes, but its shape (2,) needs 8");
  expect_status(service_->upload(header_of(2), {"12345678", "9"}, tensor),
                grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "the upload has more than the 8 bytes that its shape (2,) needs");
  EXPECT_EQ(service_->counter("tensors"), 0);
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") == 0; }));
}

TEST_F(Tensors, NeedAHeaderThatMakesSense) {
  std::string tensor;
  v1::TensorHeader header = header_of(-1);
  expect_status(service_->upload(header, {}, tensor), grpc::StatusCode::INVALID_ARGUMENT, "SHAPE",
                "dimension 0 of the tensor is -1, but must be at least 0");
  header = header_of(1);
  header.set_type(static_cast<v1::DataType>(0));
  expect_status(service_->upload(header, {}, tensor), grpc::StatusCode::INVALID_ARGUMENT, "DTYPE",
                "the tensor has an unknown type (number 0)");
  header = header_of(1);
  header.set_device("cuda:0");
  expect_status(service_->upload(header, {}, tensor), grpc::StatusCode::UNAVAILABLE, "NO_DEVICE",
                "there is no CUDA device in a test");
  header.set_device("tpu:3");
  expect_status(service_->upload(header, {}, tensor), grpc::StatusCode::UNAVAILABLE, "NO_DEVICE",
                "there is no device tpu:3 here; kiln devices lists those there are");
  header = header_of(int64_t{1} << 61);
  EXPECT_EQ(service_->upload(header, {}, tensor).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(Tensors, AreCountedAgainstALimit) {
  EngineOptions options = usual_options();
  options.tensor_bytes = 1 << 20;
  restart(options);
  std::string tensor;
  const grpc::Status never = service_->upload(header_of(1 << 20), {}, tensor);
  expect_status(never, grpc::StatusCode::RESOURCE_EXHAUSTED, "TENSOR_LIMIT",
                "4194304 bytes of tensor memory are needed, but the service keeps at most 1048576");
  EXPECT_DOUBLE_EQ(retry_seconds_of(never), 0);
  const std::string kept = service_->upload(std::vector<float>(150'000));
  const grpc::Status now = service_->upload(header_of(150'000), {}, tensor);
  EXPECT_EQ(detail_of(now).reason(), "TENSOR_MEMORY");
  EXPECT_DOUBLE_EQ(retry_seconds_of(now), 1);
}

TEST_F(Tensors, AreGoneOnceFreed) {
  const std::string tensor = service_->upload({1});
  EXPECT_EQ(freed(tensor), 1U);
  EXPECT_EQ(freed(tensor), 0U);
  expect_status(status_of_download(tensor), grpc::StatusCode::NOT_FOUND, "TENSOR",
                "there is no tensor " + tensor + "; it was freed, or its session has ended");
}

TEST_F(Tensors, LeaveNoMemoryBehindOnceNobodyIsThere) {
  EngineOptions options = usual_options();
  options.warm_memory = std::chrono::seconds(1);
  restart(options);
  const auto session = open_session();
  const std::string kernel = service_->kernel(add_one("inc"));
  const std::string tensor = service_->upload(std::vector<float>(1 << 20), session->id);
  // Its worker has mapped it, too.
  v1::RunRequest run;
  run.set_kernel_id(kernel);
  *run.add_arguments() = tensor_argument(tensor);
  *run.add_arguments() = output_argument(true);
  v1::RunResponse response;
  ASSERT_TRUE(service_->run(run, response).ok());
  freed(tensor);
  freed(response.results(0).tensor());
  // While somebody is there it stays warm for the next call.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_FALSE(service_->engine().arenas().arenas().empty());
  end(*session);
  const auto is_mapped = [&] {
    std::ifstream maps(fmt::format("/proc/{}/maps", service_->engine().cpu_pid()));
    return std::string(std::istreambuf_iterator<char>(maps), {}).find("kiln-arena") !=
           std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return service_->engine().arenas().arenas().empty(); }));
  EXPECT_TRUE(eventually([&] { return !is_mapped(); }));
}

TEST_F(Tensors, OfAnEarlierDaemonAreLost) {
  const std::string tensor = service_->upload({1});
  restart();
  expect_status(
      status_of_download(tensor), grpc::StatusCode::DATA_LOSS, "HANDLE_LOST",
      "tensor " + tensor + " was lost when the daemon was started again; upload it once more");
}

TEST_F(Tensors, EndWithTheirSession) {
  const auto first = open_session();
  const auto second = open_session();
  EXPECT_EQ(service_->counter("sessions"), 2);
  const std::string lost = service_->upload({1}, first->id);
  const std::string kept = service_->upload({2}, second->id);
  const std::string nobodys = service_->upload({3});
  end(*first);
  EXPECT_TRUE(eventually([&] { return service_->counter("tensors") == 2; }));
  EXPECT_EQ(status_of_download(lost).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(status_of_download(kept).ok());
  EXPECT_TRUE(status_of_download(nobodys).ok());
  std::string tensor;
  expect_status(service_->upload(header_of(1, first->id), {}, tensor), grpc::StatusCode::NOT_FOUND,
                "SESSION", "session " + first->id + " has ended; open another");
  end(*second);
}

TEST_F(Tensors, WithoutASessionExpireWhenUnused) {
  EngineOptions options = usual_options();
  options.unowned_tensor_life = std::chrono::seconds(1);  // longer than a slow call
  restart(options);
  const std::string tensor = service_->upload({1});
  EXPECT_TRUE(status_of_download(tensor).ok());
  EXPECT_TRUE(eventually([&] { return service_->counter("tensors") == 0; }));
}

}  // namespace
}  // namespace kiln::server
