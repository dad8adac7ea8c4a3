// hiredis without its blocking calls: their time-outs are of a read each, so that a Redis that
// trickles holds up its caller for as many time-outs as there are bytes. Here one moment ends all.
//
//   ask({"GET", key}, now + 15 ms)  ->  the reply within 15 ms, or Unavailable
#include "server/cache/redis_link.h"

#include <array>
#include <charconv>
#include <vector>

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

void free_reply(redisReply* reply) { ::freeReplyObject(reply); }

/// What stands before `mark` leaves `text`; all of it where there is none.
std::string take_until(std::string& text, char mark) {
  const size_t at = text.find(mark);
  std::string before = text.substr(0, at);
  text = at == std::string::npos ? "" : text.substr(at + 1);
  return before;
}

bool read_number(const std::string& text, int last, int& number) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() && number >= 0 &&
         number <= last;
}

}  // namespace

std::string RedisAddress::text() const {
  return fmt::format("redis://{}:{}/{}", host, port, database);
}

RedisAddress parse_redis_url(const std::string& url) {
  constexpr std::string_view kScheme = "redis://";
  RedisAddress address;
  bool is_right = url.starts_with(kScheme);
  std::string rest = is_right ? url.substr(kScheme.size()) : "";
  if (const size_t at = rest.rfind('@'); at != std::string::npos) {
    std::string credentials = rest.substr(0, at);
    rest = rest.substr(at + 1);
    address.user = take_until(credentials, ':');
    address.password = credentials;
    is_right = is_right && !address.password.empty();
  }
  std::string place = take_until(rest, '/');
  if (!rest.empty()) is_right = is_right && read_number(rest, 1'000'000, address.database);
  address.host = take_until(place, ':');
  if (!place.empty()) is_right = is_right && read_number(place, 65535, address.port);
  if (!is_right || address.host.empty()) {
    fail(ErrorKind::InvalidArgument, "SHARED_CACHE",
         "the address of the shared cache is not redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]");
  }
  return address;
}

RedisLink::~RedisLink() { drop(); }

void RedisLink::drop() {
  if (context_ != nullptr) ::redisFree(context_);
  context_ = nullptr;
}

void RedisLink::give_up(const std::string& why) {
  drop();
  fail(ErrorKind::Unavailable, "REDIS", "{}: {}", address_.text(), why);
}

void RedisLink::wait_for(short events, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd socket{.fd = context_->fd, .events = events, .revents = 0};
  if (left <= 0 || ::poll(&socket, 1, static_cast<int>(left)) <= 0) {
    give_up("it did not answer in time");
  }
}

void RedisLink::connect(Clock::time_point until) {
  drop();
  context_ = ::redisConnectNonBlock(address_.host.c_str(), address_.port);
  if (context_ == nullptr) fail(ErrorKind::ResourceExhausted, "HOST_MEMORY", "out of memory");
  if (context_->err != 0) give_up(context_->errstr);
  wait_for(POLLOUT, until);
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(context_->fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) give_up(std::strerror(error));

  const auto expect_ok = [&](std::span<const std::string_view> words) {
    const Reply reply = ask(words, until);
    if (reply->type == REDIS_REPLY_ERROR) give_up(reply->str);
  };
  if (!address_.password.empty() && address_.user.empty()) {
    expect_ok(std::array<std::string_view, 2>{"AUTH", address_.password});
  } else if (!address_.password.empty()) {
    expect_ok(std::array<std::string_view, 3>{"AUTH", address_.user, address_.password});
  }
  if (address_.database != 0) {
    expect_ok(std::array<std::string_view, 2>{"SELECT", std::to_string(address_.database)});
  }
}

RedisLink::Reply RedisLink::ask(std::span<const std::string_view> words, Clock::time_point until) {
  KILN_CHECK(context_ != nullptr);
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  ::redisAppendCommandArgv(context_, static_cast<int>(texts.size()), texts.data(), lengths.data());
  for (int done = 0; done == 0;) {
    wait_for(POLLOUT, until);
    if (::redisBufferWrite(context_, &done) != REDIS_OK) give_up(context_->errstr);
  }
  while (true) {
    void* reply = nullptr;
    if (::redisGetReplyFromReader(context_, &reply) != REDIS_OK) give_up(context_->errstr);
    if (reply != nullptr) return {static_cast<redisReply*>(reply), free_reply};
    wait_for(POLLIN, until);
    if (::redisBufferRead(context_) != REDIS_OK) give_up(context_->errstr);
  }
}

}  // namespace kiln::server
