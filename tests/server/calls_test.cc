// Many small calls over one stream.
#include <map>
#include <memory>
#include <thread>

#include <google/rpc/status.pb.h>

#include "kiln/v1/calls.grpc.pb.h"
#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

class Calls : public ServiceTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::CallsRequest, v1::CallsReply>;

  Calls() {
    session_stream_ = service_->daemon->Session(&session_context_, v1::SessionRequest());
    v1::SessionEvent event;
    EXPECT_TRUE(session_stream_->Read(&event));
    session_ = event.session();
    stub_ = v1::CallService::NewStub(service_->channel());
    context_.set_deadline(std::chrono::system_clock::now() + kLong);
    stream_ = stub_->Calls(&context_);
  }
  ~Calls() override {
    context_.TryCancel();
    session_context_.TryCancel();
    session_stream_->Finish();
  }

  v1::SmallCall put(uint64_t id, uint64_t number, const std::vector<float>& values) const {
    v1::SmallCall call;
    call.set_id(id);
    call.set_number(number);
    *call.mutable_put()->mutable_header() =
        header_of(static_cast<int64_t>(values.size()), session_);
    call.mutable_put()->set_data(bytes_of(values));
    return call;
  }
  v1::SmallCall run(uint64_t id, const std::string& kernel, const v1::Argument& input,
                    const v1::Argument& output) const {
    v1::SmallCall call;
    call.set_id(id);
    call.mutable_run()->set_kernel_id(kernel);
    call.mutable_run()->set_session(session_);
    *call.mutable_run()->add_arguments() = input;
    *call.mutable_run()->add_arguments() = output;
    return call;
  }
  v1::SmallCall free(uint64_t id, uint64_t number) const {
    v1::SmallCall call;
    call.set_id(id);
    call.mutable_free()->add_tensors(numbered(number));
    return call;
  }
  std::string numbered(uint64_t number) const { return session_ + "#" + std::to_string(number); }
  void send(const std::vector<v1::SmallCall>& calls) {
    v1::CallsRequest request;
    for (const v1::SmallCall& call : calls)
      *request.add_calls() = call;
    EXPECT_TRUE(stream_->Write(request));
  }
  /// The next so many replies, by their ids.
  std::map<uint64_t, v1::SmallReply> receive(size_t count) {
    std::map<uint64_t, v1::SmallReply> all;
    v1::CallsReply reply;
    while (all.size() < count && stream_->Read(&reply)) {
      for (const v1::SmallReply& each : reply.replies())
        EXPECT_TRUE(all.emplace(each.id(), each).second) << each.id();
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }
  static grpc::Status status_of(const v1::SmallReply& reply) {
    google::rpc::Status status;
    EXPECT_TRUE(reply.has_failed() && status.ParseFromString(reply.failed()));
    return {static_cast<grpc::StatusCode>(status.code()), status.message(), reply.failed()};
  }

  grpc::ClientContext session_context_;
  std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> session_stream_;
  std::string session_;
  std::unique_ptr<v1::CallService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(Calls, NameWhatWasPutBeforeItsReplyIsHere) {
  const std::string kernel = service_->kernel(add_one("plus"));
  send({put(1, 7, {1, 2}), put(2, 8, {0, 0}),
        run(3, kernel, tensor_argument(numbered(7)), tensor_argument(numbered(8))),
        run(4, kernel, tensor_argument(numbered(8)), output_argument()), free(5, 7), free(6, 8)});
  const auto replies = receive(6);
  EXPECT_EQ(replies.at(1).put().tensor(), numbered(7));
  EXPECT_TRUE(replies.at(3).has_run());
  EXPECT_EQ(floats_of(replies.at(4).run().results(0).data()), (std::vector<float>{3, 4}));
  EXPECT_EQ(replies.at(5).free().freed(), 1U);
  EXPECT_EQ(replies.at(6).free().freed(), 1U);
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(service_->counter("tensors"), 0);
}

TEST_F(Calls, AreReadNoFasterThanTheyEnd) {
  const std::string kernel = service_->kernel(add_one("plus"));
  // More than may run or wait: none is refused.
  for (uint64_t first = 0; first < 2000; first += 100) {
    std::vector<v1::SmallCall> calls;
    for (uint64_t id = first; id < first + 100; ++id)
      calls.push_back(
          run(id, kernel, inline_argument({static_cast<float>(id)}), output_argument()));
    send(calls);
  }
  const auto replies = receive(2000);
  for (const auto& [id, reply] : replies) {
    ASSERT_TRUE(reply.has_run()) << id << ": " << reply.DebugString();
    EXPECT_EQ(floats_of(reply.run().results(0).data()).at(0), static_cast<float>(id + 1));
  }
}

TEST_F(Calls, FailEachForItself) {
  const std::string kernel = service_->kernel(add_one("plus"));
  v1::SmallCall nothing;
  nothing.set_id(1);
  v1::SmallCall nobodys = put(2, 3, {1});
  nobodys.mutable_put()->mutable_header()->clear_session();
  send({nothing, nobodys, put(3, 4, {1}), put(4, 4, {1}),
        run(5, kernel, tensor_argument(numbered(99)), output_argument()),
        run(6, kernel, inline_argument({1}), output_argument())});
  const auto replies = receive(6);
  expect_status(status_of(replies.at(1)), grpc::StatusCode::INVALID_ARGUMENT, "SMALL_CALL",
                "call 1 of the stream asks for nothing");
  expect_status(status_of(replies.at(2)), grpc::StatusCode::INVALID_ARGUMENT, "TENSOR_NUMBER",
                "tensor 3 has a number but no session, and numbers are those of a session");
  EXPECT_TRUE(replies.at(3).has_put());
  expect_status(status_of(replies.at(4)), grpc::StatusCode::INVALID_ARGUMENT, "TENSOR_NUMBER",
                "there is a tensor " + numbered(4) + " already");
  EXPECT_EQ(status_of(replies.at(5)).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(replies.at(6).has_run());
}

TEST_F(Calls, EndInTime) {
  v1::SmallCall call =
      run(1, service_->kernel(add_one("polls")), inline_argument({1}), output_argument());
  call.set_timeout(0.05);
  send({call});
  expect_status(status_of(receive(1).at(1)), grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE",
                "polls did not end before its deadline");
}

TEST_F(Calls, AreAnsweredWhileALongOneKeepsOthersWaiting) {
  const std::string inc = service_->kernel(add_one("inc"));
  const std::string waits = service_->kernel(add_one("waits"));
  std::vector<v1::SmallCall> calls;
  for (uint64_t id = 0; id < 50; ++id)
    calls.push_back(run(id, id == 30 ? waits : inc, inline_argument({1}), output_argument()));
  send(calls);
  // The last of these is gathered for a message with others, which do not come.
  const auto replies = receive(30);
  EXPECT_EQ(replies.rbegin()->first, 29U);
  let_go();
  EXPECT_EQ(receive(20).size(), 20U);
}

TEST_F(Calls, AreCancelledOneByOne) {
  send({run(1, service_->kernel(add_one("polls")), inline_argument({1}), output_argument()),
        run(2, service_->kernel(add_one_of("inc", 1)), inline_argument({1}), output_argument())});
  ASSERT_TRUE(eventually([&] { return has_begun("polls"); }));
  v1::SmallCall cancel;
  cancel.set_cancel(99);  // which is none
  v1::SmallCall first;
  first.set_cancel(1);
  send({cancel, first});
  const auto replies = receive(2);
  expect_status(status_of(replies.at(1)), grpc::StatusCode::CANCELLED, "CANCELLED",
                "polls was cancelled");
  EXPECT_TRUE(replies.at(2).has_run());
}

TEST_F(Calls, SeeWhatThoseBeforeThemHaveWritten) {
  const std::string kernel = service_->kernel(add_one("inc"));
  send({put(1, 1, {0, 0}), put(2, 2, {5, 5})});
  std::vector<v1::SmallCall> calls;
  for (uint64_t id = 10; id < 60; ++id) {
    // Each overwrites its own input, then the other reads it.
    const v1::Argument x = tensor_argument(numbered(1));
    calls.push_back(run(2 * id, kernel, x, x));
    calls.push_back(run(2 * id + 1, kernel, x, output_argument()));
  }
  v1::SmallCall over = put(200, 0, {7, 7});
  over.mutable_put()->mutable_header()->set_into(numbered(1));
  calls.push_back(over);
  calls.push_back(run(201, kernel, tensor_argument(numbered(1)), output_argument()));
  send(calls);
  const auto replies = receive(2 + calls.size());
  for (uint64_t id = 10; id < 60; ++id) {
    const auto value = static_cast<float>(id - 10 + 2);
    EXPECT_EQ(floats_of(replies.at(2 * id + 1).run().results(0).data()),
              (std::vector<float>{value, value}));
  }
  EXPECT_EQ(floats_of(replies.at(201).run().results(0).data()), (std::vector<float>{8, 8}));
}

TEST_F(Calls, AreCancelledBeforeTheyBegin) {
  const std::string kernel = service_->kernel(add_one("waits"));
  const v1::Argument x = tensor_argument(numbered(1));
  send({put(1, 1, {1}), run(2, kernel, x, x), run(3, kernel, x, x)});
  ASSERT_TRUE(eventually([&] { return has_begun("waits"); }));
  v1::SmallCall cancel;
  cancel.set_cancel(3);
  send({cancel});
  const auto replies = receive(2);
  expect_status(status_of(replies.at(3)), grpc::StatusCode::CANCELLED, "CANCELLED",
                "call 3 of the stream was cancelled before it began");
  let_go();
  EXPECT_TRUE(receive(1).at(2).has_run());
}

TEST_F(Calls, AreNamedOnce) {
  const std::string waits = service_->kernel(add_one("waits"));
  send({run(1, waits, inline_argument({1}), output_argument())});
  ASSERT_TRUE(eventually([&] { return has_begun("waits"); }));
  send({run(1, waits, inline_argument({1}), output_argument())});
  expect_status(status_of(receive(1).at(1)), grpc::StatusCode::INVALID_ARGUMENT, "SMALL_CALL",
                "a call with the id 1 runs already");
  let_go();
  EXPECT_TRUE(receive(1).at(1).has_run());
}

TEST_F(Calls, AreNoReasonToKeepWhatNobodyReads) {
  const std::string kernel = service_->kernel(add_one("inc"));
  const std::vector<float> large(100'000);
  // Each reply has 400 kB, and none is read at first: the last calls wait on their way.
  constexpr uint64_t kCalls = 200;  // more than run at a time
  std::thread sender([&] {
    for (uint64_t id = 0; id < kCalls; ++id)
      send({run(id, kernel, inline_argument(large), output_argument())});
  });
  EXPECT_TRUE(eventually([&] { return service_->counter("runs") >= 8; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(service_->counter("runs"), static_cast<int64_t>(kCalls));
  EXPECT_EQ(receive(kCalls).size(), kCalls);
  sender.join();
}

TEST_F(Calls, AreCancelledWithTheirStream) {
  send({run(1, service_->kernel(add_one("polls")), inline_argument({1}), output_argument())});
  ASSERT_TRUE(eventually([&] { return has_begun("polls"); }));
  context_.TryCancel();
  stream_->Finish();
  EXPECT_TRUE(eventually([&] { return service_->counter("failed_runs") == 1; }));
  EXPECT_EQ(service_->counter("queued_runs"), 0);
}

TEST_F(Calls, AreAnsweredBeforeADaemonEnds) {
  send({run(1, service_->kernel(add_one("waits")), inline_argument({1}), output_argument())});
  ASSERT_TRUE(eventually([&] { return has_begun("waits"); }));
  service_->server().refuse_calls();
  let_go();
  EXPECT_TRUE(receive(1).at(1).has_run());
  v1::CallsReply none;
  EXPECT_FALSE(stream_->Read(&none));
  expect_status(stream_->Finish(), grpc::StatusCode::UNAVAILABLE, "DRAINING",
                "the daemon is ending");
}

}  // namespace
}  // namespace kiln::server
