#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "server/clock.h"

struct redisContext;
struct redisReply;

namespace kiln::server {

/// Where a Redis is, by its URL.
struct RedisAddress {
  std::string host;
  int port = 6379;
  std::string user;      // with a password alone: none
  std::string password;  // empty: none is asked for
  int database = 0;

  /// Without the password.
  std::string text() const;
};

/// redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]. Throws InvalidArgument SHARED_CACHE, which
/// does not repeat the URL: it may hold a password.
RedisAddress parse_redis_url(const std::string& url);

/// One connection to a Redis, on which nothing takes longer than its caller allows.
class RedisLink {
 public:
  using Reply = std::unique_ptr<redisReply, void (*)(redisReply*)>;

  explicit RedisLink(RedisAddress address) : address_(std::move(address)) {}
  ~RedisLink();

  bool is_connected() const { return context_ != nullptr; }
  /// Throws Unavailable REDIS.
  void connect(Clock::time_point until);
  /// The answer, which may be an error of the Redis. Throws Unavailable REDIS, after which the link
  /// is not connected.
  Reply ask(std::span<const std::string_view> words, Clock::time_point until);

 private:
  void drop();
  [[noreturn]] void give_up(const std::string& why);
  void wait_for(short events, Clock::time_point until);

  const RedisAddress address_;
  redisContext* context_ = nullptr;
};

}  // namespace kiln::server
