#include "server/cache/redis_cache.h"

#include <atomic>
#include <thread>

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/cache/cache_entry.h"
#include "tests/server/service_test.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;

const std::string kKey(32, 'a');

/// A socket that listens on a free port of this host.
Fd listening(int& port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(socket.get(), 8), 0);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  port = ntohs(address.sin_port);
  return socket;
}

/// A redis-server of its own; nothing of it stays.
class Redis {
 public:
  explicit Redis(int at = 0) : port(at) {
    if (port == 0) listening(port);
    const std::string number = std::to_string(port);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execlp("redis-server", "redis-server", "--port", number.c_str(), "--bind", "127.0.0.1",
               "--save", "", "--appendonly", "no", "--loglevel", "warning", nullptr);
      ::_exit(127);
    }
    // Patient: a machine that builds and tests starts it late.
    const RedisCache::Times patient{.lookup = std::chrono::seconds(5),
                                    .first_rest = milliseconds(1),
                                    .longest_rest = milliseconds(1)};
    answers = eventually([&] {
                int status = 0;
                if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
                  pid_ = 0;
                  return true;
                }
                RedisCache probe({.host = "127.0.0.1", .port = port}, patient);
                probe.find(kKey, "");
                return probe.problem().empty();
              }) &&
              pid_ > 0;
  }
  ~Redis() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void signal(int number) const { ::kill(pid_, number); }
  RedisAddress address() const { return {.host = "127.0.0.1", .port = port}; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port); }
  /// Runs a command of it.
  RedisLink::Reply ask(std::vector<std::string_view> words) const {
    RedisLink link(address());
    link.connect(Clock::now() + kLong);
    return link.ask(words, Clock::now() + kLong);
  }

  int port;
  bool answers = false;

 private:
  pid_t pid_ = 0;
};

class RedisCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as in the daemon
    if (!redis_.answers) GTEST_SKIP() << "there is no redis-server here";
  }
  /// Times for a machine that has much to do; what the daemon takes is shorter.
  static RedisCache::Times patient() {
    return {.lookup = std::chrono::seconds(5),
            .store = std::chrono::seconds(5),
            .first_rest = milliseconds(50),
            .longest_rest = milliseconds(50)};
  }
  Redis redis_;
};

TEST_F(RedisCacheTest, KeepsWhatIsPut) {
  RedisCache cache(redis_.address(), patient());
  EXPECT_EQ(cache.find(kKey, "form"), std::nullopt);
  const std::string artifact(3 << 20, 'x');
  cache.put(kKey, "form", artifact);
  EXPECT_TRUE(eventually([&] { return cache.find(kKey, "form") == artifact; }));
  RedisCache of_another(redis_.address(), patient());
  EXPECT_EQ(of_another.find(kKey, "form"), artifact);
  EXPECT_EQ(of_another.find(kKey, "another form"), std::nullopt);
}

TEST_F(RedisCacheTest, UsesNothingThatIsDamaged) {
  RedisCache cache(redis_.address(), patient());
  const std::string whole = pack_entry("form", "the artifact");
  const std::string name = "kiln:artifact:" + kKey;
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    if (byte >= 12 && byte < 16) continue;  // reserved: nothing reads it
    std::string flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ 0x10);
    redis_.ask({"SET", name, flipped});
    EXPECT_EQ(cache.find(kKey, "form"), std::nullopt) << byte;
  }
  redis_.ask({"SET", name, whole.substr(0, whole.size() - 1)});
  EXPECT_EQ(cache.find(kKey, "form"), std::nullopt);
  redis_.ask({"LPUSH", "kiln:artifact:list", "x"});
  EXPECT_EQ(cache.find("list", "form"), std::nullopt);  // not even a string
}

TEST_F(RedisCacheTest, DeletesWhatIsDamaged) {
  RedisCache cache(redis_.address(), patient());
  redis_.ask({"SET", "kiln:artifact:" + kKey, "nonsense"});
  EXPECT_EQ(cache.find(kKey, "form"), std::nullopt);
  const std::string name = "kiln:artifact:" + kKey;
  EXPECT_TRUE(eventually([&] { return redis_.ask({"EXISTS", name})->integer == 0; }));
}

TEST_F(RedisCacheTest, ReadsWhereItMayNotWrite) {
  RedisCache cache(redis_.address(), patient());
  cache.put(kKey, "form", "artifact");
  EXPECT_TRUE(eventually([&] { return cache.find(kKey, "form") == "artifact"; }));
  redis_.ask({"CONFIG", "SET", "min-replicas-to-write", "1"});  // as a replica refuses: NOREPLICAS
  cache.put(std::string(32, 'b'), "form", "artifact");
  EXPECT_TRUE(eventually([&] { return !cache.problem().empty(); }));
  EXPECT_NE(cache.problem().find("NOREPLICAS"), std::string::npos) << cache.problem();
  EXPECT_EQ(cache.find(kKey, "form"), "artifact");
}

TEST_F(RedisCacheTest, IsLeftAloneWhileItIsGoneAndUsedAgainAfterwards) {
  RedisCache cache(redis_.address(), patient());
  cache.put(kKey, "form", "artifact");
  EXPECT_TRUE(eventually([&] { return cache.find(kKey, "form") == "artifact"; }));
  redis_.end();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(cache.find(kKey, "form"), std::nullopt);
  EXPECT_LT(seconds_between(begin, Clock::now()), 4);  // not a wait each
  EXPECT_NE(cache.problem(), "");
  const Redis again(redis_.port);
  EXPECT_TRUE(eventually([&] {
    cache.put(kKey, "form", "new");
    return cache.find(kKey, "form") == "new";
  }));
  EXPECT_TRUE(eventually([&] { return cache.problem().empty(); }));
}

/// It is there, but has stopped: what it costs is bounded, however many ask.
TEST_F(RedisCacheTest, CostsLittleWhenItIsSlow) {
  const RedisCache::Times usual;
  RedisCache cache(redis_.address(), usual);
  redis_.signal(SIGSTOP);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(cache.find(kKey, "form"), std::nullopt);
  const double seconds = seconds_between(begin, Clock::now());
  redis_.signal(SIGCONT);
  // One wait of 15 ms, and as much as a busy machine adds; 100 waits would be 1.5 s.
  EXPECT_LT(seconds, 1.0);
}

/// A server that sends a byte now and then keeps no read waiting for long, but all of them for
/// ever.
TEST(RedisLink, EndsInTimeWithAServerThatTrickles) {
  int port = 0;
  const Fd socket = listening(port);
  std::atomic<bool> over{false};
  std::thread server([&] {
    const Fd client(::accept(socket.get(), nullptr, nullptr));
    ::send(client.get(), "$1000000\r\n", 10, MSG_NOSIGNAL);
    while (!over && ::send(client.get(), "x", 1, MSG_NOSIGNAL) == 1)
      std::this_thread::sleep_for(milliseconds(2));
  });
  RedisLink link({.host = "127.0.0.1", .port = port});
  link.connect(Clock::now() + kLong);
  const Clock::time_point begin = Clock::now();
  const std::vector<std::string_view> get = {"GET", "x"};
  testing::expect_error(
      [&] { link.ask(get, Clock::now() + milliseconds(50)); }, ErrorKind::Unavailable,
      "redis://127.0.0.1:" + std::to_string(port) + "/0: it did not answer in time");
  EXPECT_LT(seconds_between(begin, Clock::now()), 2);
  EXPECT_FALSE(link.is_connected());
  over = true;
  server.join();
}

TEST(RedisUrl, IsReadAndRefusedWithoutItsPassword) {
  const RedisAddress address = parse_redis_url("redis://me:p@ss@cache.local:6380/3");
  EXPECT_EQ(address.host, "cache.local");
  EXPECT_EQ(address.port, 6380);
  EXPECT_EQ(address.user, "me");
  EXPECT_EQ(address.password, "p@ss");
  EXPECT_EQ(address.database, 3);
  EXPECT_EQ(address.text(), "redis://cache.local:6380/3");
  EXPECT_EQ(parse_redis_url("redis://:secret@host").password, "secret");
  EXPECT_EQ(parse_redis_url("redis://host").port, 6379);
  for (const char* wrong : {"cache.local:6379", "redis://", "redis://host:port", "redis://host/one",
                            "redis://host:70000", "redis://secret@host", "http://host"}) {
    testing::expect_error([&] { parse_redis_url(wrong); }, ErrorKind::InvalidArgument,
                          "the address of the shared cache is not "
                          "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]");
  }
}

TEST_F(RedisCacheTest, HasAKernelCompiledOnceForTwoDaemons) {
  const testing::TemporaryFolder first_folder;
  const testing::TemporaryFolder second_folder;
  EngineOptions options = quick_options(first_folder.path().string());
  options.shared_cache = redis_.url();
  options.shared_times = patient();
  Service first(options);
  const std::string kernel = first.kernel(add_one("inc"));
  EXPECT_EQ(first.counter("compiles"), 1);
  EXPECT_TRUE(eventually([&] { return redis_.ask({"DBSIZE"})->integer == 1; }));

  options.cache_folder = second_folder.path().string();
  Service second(options);
  v1::CompileResponse response;
  EXPECT_TRUE(second.compile(add_one("inc"), response).ok());
  EXPECT_EQ(response.cache(), v1::CACHE_LEVEL_SHARED);
  EXPECT_EQ(second.counter("compiles"), 0);
  EXPECT_EQ(second.counter("shared_hits"), 1);
  std::vector<float> result;
  EXPECT_TRUE(second.run(response.kernel_id(), {1, 2}, &result).ok());
  EXPECT_EQ(result, (std::vector<float>{2, 3}));
  // What came from far is kept near.
  EXPECT_TRUE(eventually([&] { return second.counter("disk_bytes") > 0; }));
}

}  // namespace
}  // namespace kiln::server
