// The shared level. Reading and writing have a connection and a breaker each: a lookup waits for no
// store, and a replica that refuses writes still serves reads.
//
//   GET kiln:artifact:KEY  ->  an entry as cache_entry.h has it, with another's checksum: a miss
#include "server/cache/redis_cache.h"

#include <algorithm>
#include <array>

#include <hiredis/hiredis.h>
#include <spdlog/spdlog.h>

#include "server/cache/cache_entry.h"
#include "server/errors.h"

namespace kiln::server {

namespace {

std::string redis_name(const std::string& key) { return "kiln:artifact:" + key; }

}  // namespace

void RedisCache::Breaker::fail(Clock::time_point now) {
  rest_ = std::clamp(2 * rest_, times_.first_rest, times_.longest_rest);
  until_ = now + rest_;
}

RedisCache::RedisCache(const RedisAddress& address, const Times& times)
    : address_(address), times_(times), reader_(address, times), writer_(address, times) {}

RedisCache::~RedisCache() { stores_.stop(); }

std::optional<RedisLink::Reply> RedisCache::ask(Side& side, std::span<const std::string_view> words,
                                                Clock::duration limit) {
  const std::lock_guard lock(side.mutex);
  const Clock::time_point now = Clock::now();
  if (side.breaker.is_open(now)) return std::nullopt;
  try {
    if (!side.link.is_connected()) side.link.connect(now + limit);
    RedisLink::Reply reply = side.link.ask(words, now + limit);
    if (reply->type == REDIS_REPLY_ERROR) {
      fail(ErrorKind::Unavailable, "REDIS", "{}: {}", address_.text(), reply->str);
    }
    if (!side.problem.empty()) spdlog::info("{}: it answers again", address_.text());
    side.problem.clear();
    side.breaker.succeed();
    return reply;
  } catch (...) {
    const Error error = current_error();
    if (side.problem.empty()) spdlog::warn("the shared cache is left alone: {}", error.message());
    side.problem = error.message();
    side.breaker.fail(Clock::now());
    return std::nullopt;
  }
}

std::optional<std::string> RedisCache::find(const std::string& key, const std::string& form) {
  const std::string name = redis_name(key);
  const auto reply = ask(reader_, std::array<std::string_view, 2>{"GET", name}, times_.lookup);
  if (!reply || (*reply)->type != REDIS_REPLY_STRING) return std::nullopt;
  std::string entry((*reply)->str, static_cast<size_t>((*reply)->len));
  if (const std::string damage = damage_of(entry); !damage.empty()) {
    reject(key, damage);
    return std::nullopt;
  }
  if (!is_of_form(entry, form)) return std::nullopt;
  keep_artifact(entry);
  return entry;
}

void RedisCache::put(const std::string& key, const std::string& form, const std::string& artifact) {
  stores_.post([this, name = redis_name(key), entry = pack_entry(form, artifact)] {
    ask(writer_, std::array<std::string_view, 3>{"SET", name, entry}, times_.store);
  });
}

void RedisCache::reject(const std::string& key, const std::string& why) {
  spdlog::warn("the entry {} of {} is of no use ({}); the kernel is compiled again", key,
               address_.text(), why);
  stores_.post([this, name = redis_name(key)] {
    ask(writer_, std::array<std::string_view, 2>{"DEL", name}, times_.store);
  });
}

std::string RedisCache::problem() const {
  for (Side* side : {&reader_, &writer_}) {
    const std::lock_guard lock(side->mutex);
    if (!side->problem.empty()) return side->problem;
  }
  return "";
}

}  // namespace kiln::server
