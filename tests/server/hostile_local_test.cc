// Local clients that lie, stop in the middle, or are somebody else: each is hung up on or told what
// is wrong, and the service goes on with nothing lost.
#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/local_test.h"

namespace kiln::server {
namespace {

constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

class HostileLocal : public ServiceTest {
 protected:
  HostileLocal() {
    stream_ = service_->daemon->Session(&context_, v1::SessionRequest());
    EXPECT_TRUE(stream_->Read(&event_));
    kernel_ = service_->kernel(add_one("plus"));
  }
  ~HostileLocal() override {
    context_.TryCancel();
    stream_->Finish();
  }

  LocalClient client() { return {event_.local().path(), event_.local().nonce()}; }
  void expect_service() {
    std::vector<float> output;
    EXPECT_TRUE(service_->run(kernel_, {1, 2}, &output).ok());
    EXPECT_EQ(output, (std::vector<float>{2, 3}));
    EXPECT_EQ(service_->counter("worker_restarts"), 0);
  }
  static v1::LocalRequest put_of(int64_t size) {
    v1::LocalRequest request;
    *request.mutable_put()->mutable_header() = header_of(size);
    request.mutable_put()->mutable_region();
    return request;
  }
  void expect_refused(const Fd& memory, int64_t size, const std::string& message) {
    LocalClient own = client();
    const int fd = memory.get();
    expect_status(status_of(own.ask(put_of(size), {&fd, 1})), grpc::StatusCode::INVALID_ARGUMENT,
                  "REGION", message);
  }
  static size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> stream_;
  v1::SessionEvent event_;
  std::string kernel_;
};

TEST_F(HostileLocal, AWrongNonceIsHungUpOn) {
  for (const std::string& nonce : {std::string("x"), std::string(32, '0'), event_.session()}) {
    LocalClient stranger(event_.local().path(), nonce);
    EXPECT_FALSE(stranger.is_welcome());
    EXPECT_TRUE(stranger.is_hung_up_on());
  }
  expect_service();
}

TEST_F(HostileLocal, TheNonceOfASessionThatEndedIsWorthNothing) {
  grpc::ClientContext context;
  const auto stream = service_->daemon->Session(&context, v1::SessionRequest());
  v1::SessionEvent event;
  ASSERT_TRUE(stream->Read(&event));
  context.TryCancel();
  stream->Finish();
  EXPECT_TRUE(eventually(
      [&] { return !LocalClient(event.local().path(), event.local().nonce()).is_welcome(); }));
}

TEST_F(HostileLocal, ARequestBeforeTheHelloIsHungUpOn) {
  LocalClient stranger(event_.local().path(), "");
  stranger.send(put_of(1));
  EXPECT_TRUE(stranger.is_hung_up_on());
}

TEST_F(HostileLocal, PacketsThatAreNoMessagesAreHungUpOn) {
  const std::string request = put_of(4).SerializeAsString();
  const Fd empty = memory_of("", kSealed);
  const Fd garbage = memory_of("garbage", kSealed);
  const std::vector<std::pair<std::string, int>> packets = {
      {"x", -1}, {"pgarbage", -1},     {"p" + request.substr(0, request.size() - 3), -1},
      {"m", -1}, {"m", garbage.get()}, {std::string(70'000, 'p'), -1}};
  for (const auto& [packet, fd] : packets) {
    LocalClient own = client();
    own.send_bytes(packet, {&fd, fd < 0 ? 0U : 1U});
    EXPECT_TRUE(own.is_hung_up_on()) << packet.substr(0, 20);
  }
  // An empty message is one, of no kind.
  LocalClient own = client();
  const int fd = empty.get();
  own.send_bytes("m", {&fd, 1});
  expect_status(status_of(own.receive()), grpc::StatusCode::INVALID_ARGUMENT, "LOCAL_REQUEST",
                "the message is no request of a session");
  expect_service();
}

TEST_F(HostileLocal, AMessageWithoutEndIsNotRead) {
  Fd memory(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memory.get(), int64_t{1} << 40), 0);
  LocalClient own = client();
  const int fd = memory.get();
  own.send_bytes("m", {&fd, 1});
  EXPECT_TRUE(own.is_hung_up_on());
}

TEST_F(HostileLocal, MutatedMessagesGetAnswersOrAreHungUpOn) {
  std::minstd_rand random(7);
  v1::LocalRequest request = put_of(4);
  request.set_id(1);
  const std::string sound = "p" + request.SerializeAsString();
  const Fd memory = memory_of(bytes_of({1, 2, 3, 4}), kSealed);
  const int fd = memory.get();
  for (int round = 0; round < 300; ++round) {
    std::string packet = sound;
    for (int change = 0; change < 3; ++change)
      packet[random() % packet.size()] = static_cast<char>(random());
    if (round % 3 == 0) packet.resize(random() % packet.size());
    LocalClient own = client();
    own.send_bytes(packet, {&fd, 1});
    const v1::LocalReply reply = own.receive();
    if (reply.has_failed()) {
      EXPECT_NE(status_of(reply).error_code(), grpc::StatusCode::INTERNAL)
          << status_of(reply).error_message();
    }
  }
  expect_service();
}

TEST_F(HostileLocal, MemoryThatIsNoneIsRefused) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd pipe(ends[0]);
  const Fd other(ends[1]);
  expect_refused(pipe, 4, "the contents came as a descriptor that is no memfd");
  expect_refused(Fd(::open("/dev/zero", O_RDONLY | O_CLOEXEC)), 4,
                 "the contents came as a descriptor that is no memfd");
  expect_refused(Fd(::open("/", O_RDONLY | O_CLOEXEC)), 4,
                 "the contents came as a descriptor that is no memfd");
  for (const int seals : {kSealed, F_SEAL_SHRINK, 0}) {
    expect_refused(memory_of("12345678", seals), 4,
                   "8 bytes can be read of the memory with the contents, but their shape needs 16");
  }
  expect_refused(Fd(::open("/proc/self/exe", O_PATH | O_CLOEXEC)), 4,
                 "the contents came as a descriptor that is no memfd");
  expect_service();
}

TEST_F(HostileLocal, DescriptorsThatDidNotComeAreRefused) {
  LocalClient own = client();
  expect_status(status_of(own.ask(put_of(4))), grpc::StatusCode::INVALID_ARGUMENT, "REGION",
                "the contents are in descriptor 0, but 0 came with the message");
}

TEST_F(HostileLocal, MoreThanTheMemoryThereIsIsRefused) {
  Fd memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int64_t kElements = int64_t{1} << 38;
  ASSERT_EQ(::ftruncate(memory.get(), kElements * 4), 0);
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, kSealed), 0);
  LocalClient own = client();
  const int fd = memory.get();
  const grpc::Status status = status_of(own.ask(put_of(kElements), {&fd, 1}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail_of(status).reason(), "TENSOR_LIMIT");
  expect_service();
}

TEST_F(HostileLocal, MemoryThatShrinksWhileItIsReadHarmsNobody) {
  constexpr int64_t kSize = 1 << 20;
  Fd memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::atomic<bool> over{false};
  std::thread resize([&] {
    while (!over.load()) {
      static_cast<void>(::ftruncate(memory.get(), kSize * 4));
      static_cast<void>(::ftruncate(memory.get(), 100));
    }
  });
  for (int round = 0; round < 50; ++round) {
    LocalClient own = client();
    const int fd = memory.get();
    const v1::LocalReply reply = own.ask(put_of(kSize), {&fd, 1});
    EXPECT_TRUE(reply.has_put() || detail_of(status_of(reply)).reason() == "REGION");
  }
  over.store(true);
  resize.join();
  expect_service();
}

TEST_F(HostileLocal, WhatIsShownCannotBeWritten) {
  const Fd memory = memory_of(std::string(400'000, 'a'), kSealed);
  const int fd = memory.get();
  LocalClient own = client();
  v1::LocalRequest request;
  request.mutable_run()->set_kernel_id(kernel_);
  *request.mutable_run()->add_arguments() =
      tensor_argument(own.ask(put_of(100'000), {&fd, 1}).put().tensor());
  *request.mutable_run()->add_arguments() = output_argument();
  ASSERT_TRUE(own.ask(request).has_run());
  const int shown = own.fds().at(0).get();
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shown, 0), MAP_FAILED);
  EXPECT_LT(::pwrite(shown, "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(shown, 0), 0);
  EXPECT_NE(::fallocate(shown, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  // Opened anew, it is the same memory.
  const Fd again(::open(("/proc/self/fd/" + std::to_string(shown)).c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
}

TEST_F(HostileLocal, AnotherUserIsHungUpOn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const std::string path = event_.local().path();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  // Even where somebody opened the file to all.
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  for (auto folder = std::filesystem::path(path).parent_path(); folder != folder.root_path();
       folder = folder.parent_path()) {
    ::chmod(folder.c_str(), 0755);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const pid_t child = ::fork();
  if (child == 0) {
    // Nothing but system calls: the other threads are not there.
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (::setuid(65534) != 0) ::_exit(10);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ::_exit(11);
    char byte = 0;
    ::_exit(::recv(fd, &byte, 1, 0) == 0 ? 0 : 12);
  }
  int code = 0;
  ASSERT_EQ(::waitpid(child, &code, 0), child);
  EXPECT_EQ(WEXITSTATUS(code), 0);
}

TEST_F(HostileLocal, AClientThatReadsNothingIsHungUpOn) {
  LocalClient own = client();
  v1::LocalRequest request;
  request.mutable_map()->set_tensor("none");
  // Each answer is an error of a few hundred bytes; a socket holds some hundred of them.
  for (uint64_t id = 0; id < 20'000; ++id) {
    request.set_id(id);
    own.send(request);
  }
  uint64_t answers = 0;
  while (own.receive().has_failed())
    ++answers;
  EXPECT_LT(answers, 20'000U);
  expect_service();
}

TEST_F(HostileLocal, NothingIsLeftOfThoseWhoCameAndWent) {
  const Fd memory = memory_of(std::string(400'000, 'a'), kSealed);
  const int fd = memory.get();
  const auto visit = [&] {
    for (int i = 0; i < 40; ++i) {
      LocalClient own = client();
      v1::LocalRequest request;
      request.mutable_run()->set_kernel_id(kernel_);
      const v1::LocalReply put = own.ask(put_of(100'000), {&fd, 1});
      *request.mutable_run()->add_arguments() = tensor_argument(put.put().tensor());
      *request.mutable_run()->add_arguments() = output_argument();
      own.send(request);
      if (i % 2 == 0) own.receive();
      v1::LocalRequest free;
      free.mutable_free()->add_tensors(put.put().tensor());
      own.hang_up();
      client().ask(free);
    }
    // A session that comes and goes lets go of the connections that are over.
    grpc::ClientContext context;
    const auto stream = service_->daemon->Session(&context, v1::SessionRequest());
    v1::SessionEvent event;
    stream->Read(&event);
    context.TryCancel();
    stream->Finish();
  };
  visit();
  const size_t before = open_descriptors();
  for (int round = 0; round < 5; ++round)
    visit();
  EXPECT_TRUE(eventually([&] {
    visit();
    return open_descriptors() <= before + 8;
  }));
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") == 0; }));
  EXPECT_EQ(service_->counter("tensors"), 0);
}

}  // namespace
}  // namespace kiln::server
