#pragma once

#include <mutex>

#include "server/cache/cache_level.h"
#include "server/cache/redis_link.h"
#include "server/task_queue.h"

namespace kiln::server {

/// Artifacts in a Redis that several daemons share, so that a kernel is compiled once for all of
/// them. Costs nobody more than `lookup`: a Redis that is slow or gone is left alone for a while
/// (circuit breaker), and what it says is checked before it is used.
class RedisCache : public CacheLevel {
 public:
  struct Times {
    Clock::duration lookup = std::chrono::milliseconds(15);
    Clock::duration store = std::chrono::seconds(1);       // which nobody waits for
    Clock::duration first_rest = std::chrono::seconds(1);  // doubled with each failure, until
    Clock::duration longest_rest = std::chrono::seconds(60);
  };
  RedisCache(const RedisAddress& address, const Times& times);
  ~RedisCache() override;

  v1::CacheLevel level() const override { return v1::CACHE_LEVEL_SHARED; }
  std::optional<std::string> find(const std::string& key, const std::string& form) override;
  void put(const std::string& key, const std::string& form, const std::string& artifact) override;
  void reject(const std::string& key, const std::string& why) override;

  /// Empty, or why it is not used now.
  std::string problem() const;
  const RedisAddress& address() const { return address_; }

 private:
  /// Leaves a connection that failed alone for a while, ever longer.
  class Breaker {
   public:
    explicit Breaker(const Times& times) : times_(times) {}
    bool is_open(Clock::time_point now) const { return now < until_; }
    void fail(Clock::time_point now);
    void succeed() { rest_ = {}; }

   private:
    const Times times_;
    Clock::duration rest_{};
    Clock::time_point until_{};
  };

  /// A connection with its breaker: a Redis that takes no writes may well be read.
  struct Side {
    Side(const RedisAddress& address, const Times& times) : link(address), breaker(times) {}
    std::mutex mutex;
    RedisLink link;
    Breaker breaker;
    std::string problem;
  };

  /// Nothing when the side rests, or did not answer until then.
  std::optional<RedisLink::Reply> ask(Side& side, std::span<const std::string_view> words,
                                      Clock::duration limit);

  const RedisAddress address_;
  const Times times_;
  mutable Side reader_;
  mutable Side writer_;
  TaskQueue stores_;  // last: its thread uses the above
};

}  // namespace kiln::server
