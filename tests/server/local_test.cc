// Local clients, well-behaved ones. Those that are not: hostile_local_test.cc.
#include "tests/server/local_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

namespace kiln::server {
namespace {

constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr int64_t kMany = 100'000;  // floats, so that they are shown

/// A session and a connection that belongs to it.
class Local : public ServiceTest {
 protected:
  Local() { open(); }
  ~Local() override { close(); }

  void open() {
    context_ = std::make_unique<grpc::ClientContext>();
    stream_ = service_->daemon->Session(context_.get(), v1::SessionRequest());
    ASSERT_TRUE(stream_->Read(&event_));
    client_ = std::make_unique<LocalClient>(event_.local().path(), event_.local().nonce());
    ASSERT_TRUE(client_->is_welcome());
  }
  void close() {
    if (!stream_) return;
    context_->TryCancel();
    stream_->Finish();
    stream_.reset();
    client_.reset();
  }

  static std::vector<float> counted(float from, int64_t size = kMany) {
    std::vector<float> values(static_cast<size_t>(size));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = from + static_cast<float>(i % 1000);
    return values;
  }
  v1::LocalRequest run_of(const v1::Argument& input, const v1::Argument& output) {
    v1::LocalRequest request;
    request.mutable_run()->set_kernel_id(service_->kernel(add_one("plus")));
    *request.mutable_run()->add_arguments() = input;
    *request.mutable_run()->add_arguments() = output;
    return request;
  }
  std::string put(const Fd& memory, int64_t size, const std::string& into = "") {
    v1::LocalRequest request;
    *request.mutable_put()->mutable_header() = header_of(size);
    request.mutable_put()->mutable_header()->set_into(into);
    request.mutable_put()->mutable_region();
    const int fd = memory.get();
    const v1::LocalReply reply = client_->ask(request, {&fd, 1});
    EXPECT_TRUE(reply.has_put());
    return reply.put().tensor();
  }
  std::string put(const std::vector<float>& values, const std::string& into = "") {
    return put(memory_of(bytes_of(values), kSealed), static_cast<int64_t>(values.size()), into);
  }
  /// A tensor that the service made, which lies in memory that can be shown.
  std::string made(const std::vector<float>& values) {
    const v1::LocalReply reply =
        client_->ask(run_of(tensor_argument(put(values)), output_argument(true)));
    EXPECT_TRUE(reply.has_run());
    return reply.run().results(0).tensor();
  }
  v1::LocalReply map(const std::string& tensor) {
    v1::LocalRequest request;
    request.mutable_map()->set_tensor(tensor);
    return client_->ask(request);
  }
  std::vector<float> contents(const std::string& tensor) {
    const v1::LocalReply reply = map(tensor);
    EXPECT_TRUE(reply.has_contents());
    if (reply.contents().has_data()) return floats_of(reply.contents().data());
    const auto elements = static_cast<size_t>(reply.contents().header().shape(0));
    return floats_of(mapped(client_->fds().at(0), elements * sizeof(float)));
  }

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> stream_;
  v1::SessionEvent event_;
  std::unique_ptr<LocalClient> client_;
};

TEST_F(Local, SmallCallsCarryTheirTensors) {
  const v1::LocalReply reply = client_->ask(run_of(inline_argument({1, 2}), output_argument()));
  ASSERT_TRUE(reply.has_run());
  EXPECT_EQ(floats_of(reply.run().results(0).data()), (std::vector<float>{2, 3}));
  EXPECT_TRUE(client_->fds().empty());
}

TEST_F(Local, LargeTensorsTravelAsMemory) {
  const std::string input = put(counted(0));
  EXPECT_EQ(service_->counter("tensor_bytes"), kMany * 4);
  const v1::LocalReply reply = client_->ask(run_of(tensor_argument(input), output_argument()));
  ASSERT_TRUE(reply.has_run());
  ASSERT_TRUE(reply.run().results(0).has_region());
  ASSERT_EQ(client_->fds().size(), 1U);
  EXPECT_EQ(floats_of(mapped(client_->fds()[0], kMany * sizeof(float))), counted(1));
  // The service keeps nothing of what it sent.
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") == kMany * 4; }));
  EXPECT_EQ(service_->counter("tensors"), 1);
}

TEST_F(Local, TensorsStayBetweenCalls) {
  const std::string input = put(counted(0));
  const std::string output = put(counted(5));
  const v1::LocalReply reply =
      client_->ask(run_of(tensor_argument(input), tensor_argument(output)));
  ASSERT_TRUE(reply.has_run());
  EXPECT_EQ(contents(output), counted(1));
  EXPECT_EQ(contents(input), counted(0));

  v1::LocalRequest free;
  free.mutable_free()->add_tensors(input);
  free.mutable_free()->add_tensors(output);
  EXPECT_EQ(client_->ask(free).free().freed(), 2U);
  EXPECT_EQ(service_->counter("tensors"), 0);
}

TEST_F(Local, SmallTensorsComeInTheMessage) {
  v1::LocalRequest request;
  *request.mutable_put()->mutable_header() = header_of(2);
  request.mutable_put()->set_data(bytes_of({4, 5}));
  const std::string tensor = client_->ask(request).put().tensor();
  EXPECT_EQ(contents(tensor), (std::vector<float>{4, 5}));
  std::string bytes;
  EXPECT_TRUE(service_->download(tensor, bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{4, 5}));
}

TEST_F(Local, MemoryIsShownWithoutACopy) {
  const std::string tensor = made(counted(0));
  map(tensor);
  const Fd first = std::move(client_->fds().at(0));
  map(tensor);
  struct stat a {};
  struct stat b {};
  ASSERT_EQ(::fstat(first.get(), &a), 0);
  ASSERT_EQ(::fstat(client_->fds().at(0).get(), &b), 0);
  EXPECT_EQ(a.st_ino, b.st_ino);
}

TEST_F(Local, WhatWasShownStaysWhenTheTensorIsOverwritten) {
  const std::string tensor = made(counted(0));
  map(tensor);
  const Fd shown = std::move(client_->fds().at(0));
  const v1::LocalReply reply =
      client_->ask(run_of(tensor_argument(put(counted(7))), tensor_argument(tensor)));
  ASSERT_TRUE(reply.has_run());
  EXPECT_EQ(floats_of(mapped(shown, kMany * sizeof(float))), counted(1));
  EXPECT_EQ(contents(tensor), counted(8));

  // By its own contents, too, and by an upload.
  ASSERT_TRUE(client_->ask(run_of(tensor_argument(tensor), tensor_argument(tensor))).has_run());
  EXPECT_EQ(contents(tensor), counted(9));
  v1::TensorHeader header = header_of(kMany, event_.session());
  header.set_into(tensor);
  std::string same;
  ASSERT_TRUE(service_->upload(header, {bytes_of(counted(3))}, same).ok());
  EXPECT_EQ(same, tensor);
  EXPECT_EQ(contents(tensor), counted(3));
  EXPECT_EQ(put(counted(4), tensor), tensor);
  EXPECT_EQ(contents(tensor), counted(4));
  EXPECT_EQ(floats_of(mapped(shown, kMany * sizeof(float))), counted(1));
}

TEST_F(Local, AnotherWorkerReadsWhatWasShown) {
  const std::string tensor = made(counted(0));
  map(tensor);
  const std::string passed = put(counted(2));
  ASSERT_EQ(::kill(service_->engine().cpu_pid(), SIGKILL), 0);
  for (const auto& [input, expected] : {std::pair{tensor, 2.0F}, std::pair{passed, 3.0F}}) {
    const v1::LocalReply reply =
        client_->ask(run_of(tensor_argument(input), output_argument(true)));
    ASSERT_TRUE(reply.has_run()) << reply.DebugString();
    EXPECT_EQ(contents(reply.run().results(0).tensor()), counted(expected));
  }
}

TEST_F(Local, MemoryThatCanChangeIsCopied) {
  const Fd memory = memory_of(bytes_of(counted(0)), F_SEAL_SHRINK | F_SEAL_GROW);
  const std::string tensor = put(memory, kMany);
  const std::string changed = bytes_of(counted(50));
  ASSERT_EQ(::pwrite(memory.get(), changed.data(), changed.size(), 0),
            static_cast<ssize_t>(changed.size()));
  EXPECT_EQ(contents(tensor), counted(0));
}

TEST_F(Local, ErrorsAreThoseOfTheOtherWay) {
  v1::LocalRequest request = run_of(inline_argument({1}), output_argument());
  request.mutable_run()->set_kernel_id("nothing");
  v1::RunResponse ignored;
  const grpc::Status other = service_->run(request.run(), ignored);
  const grpc::Status here = status_of(client_->ask(request));
  EXPECT_EQ(here.error_code(), other.error_code());
  EXPECT_EQ(here.error_message(), other.error_message());
  EXPECT_EQ(detail_of(here).SerializeAsString(), detail_of(other).SerializeAsString());
  EXPECT_EQ(retry_seconds_of(here), retry_seconds_of(other));
}

TEST_F(Local, ATimeoutEndsACall) {
  v1::LocalRequest request = run_of(inline_argument({1}), output_argument());
  request.mutable_run()->set_kernel_id(service_->kernel(add_one("polls")));
  request.set_timeout(0.05);
  expect_status(status_of(client_->ask(request)), grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE",
                "polls did not end before its deadline");
}

TEST_F(Local, HangingUpCancels) {
  v1::LocalRequest request = run_of(inline_argument({1}), output_argument());
  request.mutable_run()->set_kernel_id(service_->kernel(add_one("polls")));
  client_->send(request);
  ASSERT_TRUE(eventually([&] { return has_begun("polls"); }));
  client_->hang_up();
  EXPECT_TRUE(eventually([&] { return service_->counter("failed_runs") == 1; }));
  EXPECT_EQ(service_->counter("queued_runs"), 0);
}

TEST_F(Local, SeveralCallsAreUnderWay) {
  v1::LocalRequest request = run_of(inline_argument({1}), output_argument());
  for (uint64_t id = 100; id < 120; ++id) {
    request.set_id(id);
    client_->send(request);
  }
  for (uint64_t id = 100; id < 120; ++id) {
    const v1::LocalReply reply = client_->receive();
    EXPECT_TRUE(reply.has_run());
    EXPECT_EQ(reply.id(), id);
  }
}

TEST_F(Local, TheEndOfTheSessionIsTheEndOfItsConnections) {
  const std::string tensor = made(counted(0));
  context_->TryCancel();
  stream_->Finish();
  EXPECT_TRUE(client_->is_hung_up_on());
  EXPECT_TRUE(eventually([&] { return service_->counter("tensors") == 0; }));
  EXPECT_EQ(service_->counter("tensor_bytes"), 0);
  stream_.reset();
}

TEST_F(Local, ADaemonThatEndsHangsUp) {
  service_.reset();
  EXPECT_TRUE(client_->is_hung_up_on());
  stream_->Finish();
  stream_.reset();
}

}  // namespace
}  // namespace kiln::server
