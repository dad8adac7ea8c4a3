// What is said when the host or the other end of a socket does not do its part.

#include <algorithm>
#include <exception>
#include <fstream>
#include <future>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "server/ipc/channel.h"
#include "server/ipc/memfd.h"
#include "server/jobs/job_table.h"
#include "server/tensors/tensor_store.h"
#include "server/workers/launcher.h"
#include "tests/server/service_test.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

using testing::expect_error;

/// What a channel says of a packet from the other end.
void expect_garbage(std::string_view packet) {
  auto [ours, theirs] = make_socket_pair();
  ASSERT_EQ(::send(theirs.get(), packet.data(), packet.size(), 0),
            static_cast<ssize_t>(packet.size()));
  Channel channel(std::move(ours), Channel::WhenFull::Wait);
  v1::Device message;
  std::vector<Fd> fds;
  expect_error([&] { channel.receive(message, fds); }, ErrorKind::Internal,
               "the other side sent what is no message");
}

TEST(BrokenHost, APacketThatIsNoMessageIsGarbage) {
  expect_garbage("nonsense");
  expect_garbage("p\x08");                   // a field that is cut off
  expect_garbage("m");                       // in memory that was not sent along
  expect_garbage(std::string(70'000, 'p'));  // longer than a packet may be
}

TEST(BrokenHost, ASocketWhoseOtherEndIsGoneIsNoWorker) {
  auto [ours, theirs] = make_socket_pair();
  theirs = Fd();
  Channel channel(std::move(ours), Channel::WhenFull::Wait);
  theirs = Fd();
  ::shutdown(channel.fd(), SHUT_RDWR);
  expect_error([&] { channel.send(v1::Device()); }, ErrorKind::Unavailable,
               "the worker cannot be reached: Broken pipe");
}

std::string message_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error.message();
  }
}

/// What `body` fails with while this process may open no more files.
template <typename Body>
std::string message_without_files(Body&& body) {
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  // A sanitizer opens a pipe to check the type of an object, once for each type: so errors are made
  // once before, and looked at afterwards.
  EXPECT_THROW(fail(ErrorKind::Internal, "FILES", "{} files: {}", int64_t{0}, "none"), Error);
  std::exception_ptr thrown;
  ::setrlimit(RLIMIT_NOFILE, &none);
  try {
    body();
  } catch (...) {
    thrown = std::current_exception();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  return thrown ? message_of(thrown) : "";
}

TEST(BrokenHost, NoFilesAreLeft) {
  EXPECT_EQ(message_without_files([] { make_socket_pair(); }),
            "cannot make a socket pair: Too many open files");
  EXPECT_EQ(message_without_files([] { make_memfd("kiln-test", 64); }),
            "cannot allocate 64 bytes on the host: Too many open files");
}

TEST(BrokenHost, MemoryThatIsNoneIsGarbage) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  expect_error([&] { read_memfd(read_end, 100); }, ErrorKind::Internal,
               "a worker sent memory that cannot be read");
  expect_error([&] { Mapping mapping(read_end, 100); }, ErrorKind::Internal,
               "the other side sent memory that cannot be mapped");

  const Fd memory = make_memfd("kiln-test", 64);
  const std::string path = "/proc/self/fd/" + std::to_string(memory.get());
  const Fd write_only(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  expect_error([&] { read_memfd(write_only, 100); }, ErrorKind::Internal,
               "a worker sent memory that cannot be read");
}

TEST(BrokenHost, AWorkerThatIsNotInstalledCannotBeStarted) {
  auto ends = make_socket_pair();
  ProcessLauncher launcher("/nowhere");
  const auto start = [&] {
    launcher.start({.role = Role::Cpu}, std::move(ends.first), std::move(ends.second));
  };
  expect_error(start, ErrorKind::Unavailable,
               "cannot start /nowhere/kiln-worker: No such file or directory");
}

TEST(BrokenHost, NoCompilerHasStartedYet) {
  testing::TemporaryFolder folder;
  Engine engine(quick_options(folder.path().string()),
                std::make_unique<ProcessLauncher>("/nowhere"));
  EXPECT_FALSE(engine.wait_until_ready(std::chrono::milliseconds(20)));
  const auto call = std::make_shared<Call>(Caller{.deadline = Clock::now() + kLong});
  expect_error([&] { engine.compile(add_one("inc"), call, [](auto) {}); }, ErrorKind::Unavailable,
               "the compiler has not started yet; try again soon");
}

/// Starts all workers but that of the GPU, which never says anything.
class SilentGpu : public Launcher {
 public:
  std::unique_ptr<Child> start(const WorkerSpec& spec, Fd socket, Fd page) override {
    if (spec.role != Role::Cuda) return real_.start(spec, std::move(socket), std::move(page));
    socket_ = std::move(socket);
    class Silent : public Child {
      int pid() const override { return 0; }
      void kill() override {}
      bool ended() override { return true; }
      bool was_killed() const override { return false; }
    };
    return std::make_unique<Silent>();
  }

 private:
  ProcessLauncher real_{KILN_FAKE_LIBEXEC};
  Fd socket_;  // open, so that the slot waits
};

TEST(BrokenHost, TheGpuHasNotStartedYet) {
  testing::TemporaryFolder folder;
  Engine engine(quick_options(folder.path().string()), std::make_unique<SilentGpu>());
  ASSERT_TRUE(eventually([&] { return engine.why_not_ready().empty(); }));
  v1::CompileRequest request = add_one("inc");
  request.mutable_target()->set_name("cuda");
  const auto call = std::make_shared<Call>(Caller{.deadline = Clock::now() + kLong});
  const auto message = [&]() -> std::string {
    try {
      engine.compile(request, call, [](auto) {});
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_TRUE(eventually([&] { return message() == "cuda:0 has not started yet; try again soon"; }))
      << message();
}

/// Starts workers that do not end when they are killed, as those that wait for a driver do not.
class StuckWorkers : public Launcher {
 public:
  std::unique_ptr<Child> start(const WorkerSpec& spec, Fd socket, Fd page) override {
    class Stuck : public Child {
     public:
      explicit Stuck(std::unique_ptr<Child> real) : real_(std::move(real)) {}
      int pid() const override { return real_->pid(); }
      void kill() override { real_->kill(); }
      bool ended() override { return false; }
      bool was_killed() const override { return real_->was_killed(); }

     private:
      const std::unique_ptr<Child> real_;
    };
    return std::make_unique<Stuck>(real_.start(spec, std::move(socket), std::move(page)));
  }

 private:
  ProcessLauncher real_{KILN_FAKE_LIBEXEC};
};

TEST(BrokenHost, ProcessesThatDoNotEndAreReplacedAndAtLastAreNot) {
  testing::TemporaryFolder folder;
  Engine engine(quick_options(folder.path().string()), std::make_unique<StuckWorkers>());
  ASSERT_TRUE(engine.wait_until_ready(kLong));
  for (int death = 1; death <= 4; ++death) {
    const int before = engine.cpu_pid();
    ::kill(before, SIGKILL);
    const auto is_replaced = [&] {
      return engine.cpu_pid() != before && engine.why_not_ready().empty();
    };
    if (death < 4) {
      EXPECT_TRUE(eventually(is_replaced));
    } else {
      EXPECT_FALSE(eventually(is_replaced, std::chrono::milliseconds(300)));
    }
  }
  // The thread that replaces workers is the one that lets sessions expire.
  const std::string session = engine.sessions().open("");
  v1::TensorHeader header = header_of(4, session);
  engine.tensors().add(engine.prepare_tensor(header, Caller()));
  engine.sessions().end(session);
  EXPECT_TRUE(eventually([&] { return engine.tensors().count() == 0; }));
}

TEST(BrokenHost, ATensorOfAnEarlierDaemonWasLost) {
  TensorStore store("0123456789abcdef", std::chrono::minutes(1));
  const std::string id = "fedcba9876543210-0123456789abcdef01234567";
  expect_error([&] { store.find("", id); }, ErrorKind::HandleLost,
               "tensor " + id + " was lost when the daemon was started again; upload it once more");
}

TEST(BrokenHost, JobsWaitForOthersToEnd) {
  JobTable jobs({.unfinished = 1});
  jobs.reserve({.kernel = "first"});
  expect_error([&] { jobs.reserve({.kernel = "second"}); }, ErrorKind::ResourceExhausted,
               "1 jobs are unfinished already; try again soon");
}

TEST(BrokenHost, JobsHaveNoMoreInputsThanTheirTenantMay) {
  JobTable jobs({.input_bytes = 100});
  const std::string first = jobs.reserve({.tenant = "alice", .input_bytes = 60});
  expect_error([&] { jobs.reserve({.tenant = "alice", .input_bytes = 50}); },
               ErrorKind::ResourceExhausted,
               "the inputs of unfinished jobs would be 110 bytes; the limit of a tenant is 100");
  jobs.reserve({.tenant = "bob", .input_bytes = 50});
  jobs.drop(first);
  jobs.reserve({.tenant = "alice", .input_bytes = 50});
}

TEST(BrokenHost, ATenantHasNoMoreUnfinishedJobsThanItMay) {
  JobTable jobs(
      {.quotas = shared_quotas({.usual = {.jobs = 2}, .named = {{"carol", {.jobs = 1}}}})});
  const std::string first = jobs.reserve({.tenant = "alice"});
  jobs.reserve({.tenant = "alice"});
  expect_error([&] { jobs.reserve({.tenant = "alice"}); }, ErrorKind::ResourceExhausted,
               "2 jobs of this tenant are unfinished, as many as it may have; wait until one has "
               "ended, or cancel one");
  jobs.reserve({.tenant = "bob"});
  jobs.reserve({.tenant = "carol"});
  EXPECT_THROW(jobs.reserve({.tenant = "carol"}), Error);
  jobs.drop(first);
  jobs.reserve({.tenant = "alice"});
}

TEST(BrokenHost, ATenantHasNoMoreTensorsThanItMay) {
  TensorStore store("0123456789abcdef", std::chrono::minutes(1),
                    shared_quotas({.usual = {.tensor_bytes = 100},
                                   .named = {{"carol", {.tensor_bytes = 1000}}, {"dan", {}}}}));
  const auto add = [&](const std::string& tenant, int64_t bytes, const std::string& session = "") {
    Tensor tensor;
    tensor.tenant = tenant;
    tensor.session = session;
    tensor.bytes = bytes;
    return store.add(std::move(tensor))->id;
  };
  const std::string first = add("alice", 60);
  add("alice", 40, "session");
  add("alice", 0);
  expect_error([&] { store.require_room("alice", 1); }, ErrorKind::ResourceExhausted,
               "the tensors of this tenant have 100 bytes of the 100 that it may have, and 1 more "
               "are needed; free some");
  EXPECT_THROW(add("alice", 1), Error);
  expect_error([&] { store.require_room("bob", 101); }, ErrorKind::ResourceExhausted,
               "a tensor of 101 bytes is asked for, but this tenant may have 100 in all its "
               "tensors");
  store.require_room("carol", 1000);
  store.require_room("dan", 1'000'000);
  add("bob", 100);
  store.free_session("session");
  add("alice", 40);
  store.free("bob", {&first, 1});  // which is not bob's
  EXPECT_THROW(store.require_room("alice", 1), Error);
  store.free("alice", {&first, 1});
  store.require_room("alice", 60);
  store.expire(Clock::now() + std::chrono::minutes(2));
  store.require_room("alice", 100);
}

class BrokenWorker : public ServiceTest {
 protected:
  grpc::Status status_of_compile(const v1::CompileRequest& request) {
    v1::CompileResponse response;
    return service_->compile(request, response);
  }
};

TEST_F(BrokenWorker, JobsAreRefusedWhereTheyCannotBeKept) {
  EngineOptions options = usual_options();
  std::ofstream(folder_.path() / "file") << "no folder";
  options.job_folder = (folder_.path() / "file" / "jobs").string();
  restart(options);
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("inc");
  grpc::ClientContext context;
  v1::SubmitResponse response;
  expect_status(service_->jobs->Submit(&context, request, &response), grpc::StatusCode::UNAVAILABLE,
                "JOB_STORE",
                "jobs are not kept: " + options.job_folder +
                    ": Not a directory; make room, let kilnd write there, or name another folder "
                    "with --cache-dir");
}

TEST_F(BrokenWorker, NoMoreKernelsWaitForACompiler) {
  EngineOptions options = usual_options();
  options.queue = 0;
  restart(options);
  expect_status(status_of_compile(add_one("inc")), grpc::StatusCode::RESOURCE_EXHAUSTED,
                "QUEUE_FULL", "0 kernels wait for a compiler already; try again soon");
}

TEST_F(BrokenWorker, AnArtifactOfAnotherKernelIsNotUsed) {
  expect_status(status_of_compile(add_one("compile_mismatch")), grpc::StatusCode::INTERNAL,
                "ARTIFACT_SHAPE", "the artifact of compile_mismatch does not fit its definition");
}

TEST_F(BrokenWorker, ACompilerThatAnswersWhatWasNotAskedIsReplaced) {
  expect_status(status_of_compile(add_one("compile_answers_another")), grpc::StatusCode::INTERNAL,
                "COMPILER_DIED",
                "the compiler died while it compiled compile_answers_another; this is a bug in "
                "kiln");
  EXPECT_TRUE(eventually([&] { return status_of_compile(add_one_of("inc", 3)).ok(); }));
}

TEST_F(BrokenWorker, AWorkerThatAnswersWhatWasNotAskedIsReplaced) {
  const std::string kernel = service_->kernel(add_one("answers_another"));
  const std::string inc = service_->kernel(add_one_of("inc", 1));
  expect_status(service_->run(kernel, {1}), grpc::StatusCode::UNAVAILABLE, "WORKER_RESTARTED",
                "the worker of cpu:0 ended while it ran answers_another; it is started again");
  EXPECT_TRUE(eventually([&] { return service_->run(inc, {1}).ok(); }));
}

}  // namespace
}  // namespace kiln::server
