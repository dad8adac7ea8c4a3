#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/tuning/tuner.h"

namespace kiln::server {

/// Who follows a search. Both are told from a thread that must not be kept.
struct TuneWatcher {
  std::function<bool(const v1::TuneEvent&)> event;  // false: no more
  std::function<void(const Error*)> end;            // null: it ran to its end
};

/// The searches of a daemon: one at a time, since two would measure each other, the others wait.
/// Who asks for what is searched for already, in the same names, joins that search; in other names
/// the second waits and goes on from the records of the first. A search that nobody follows ends.
class TuneService {
 public:
  struct Options {
    uint32_t trials = 2000;  // of one search, at most
    Clock::duration time = std::chrono::minutes(10);
    size_t waiting = 16;
  };
  TuneService(const TuningParts& parts, const Options& options);
  ~TuneService() { stop(); }

  /// A ticket for leave(). Throws InvalidArgument TUNE_BUDGET, ResourceExhausted QUEUE_FULL,
  /// Unavailable DRAINING.
  uint64_t tune(CheckedRequest request, const v1::TuneRequest& wire, const Caller& caller,
                const TuningKey& key, TuneWatcher watcher);
  void leave(uint64_t ticket);

  /// Ends all searches; what they found stays.
  void drain();
  /// Call after drain(), when the devices have ended what ran.
  void stop();
  int64_t searches() const;

 private:
  struct Flight {
    std::string subject;
    TuningTask task;
    std::vector<v1::TuneEvent> told;  // for who joins later
    std::map<uint64_t, TuneWatcher> watchers;
    std::shared_ptr<Tuner> tuner;  // while it runs
  };
  uint64_t join(Flight& flight, TuneWatcher watcher);
  void tell(Flight& flight, const v1::TuneEvent& event);
  void end(Flight& flight, const Error* error);
  void loop();

  const TuningParts parts_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Flight>> flights_;  // the first runs
  uint64_t next_ticket_ = 1;
  bool draining_ = false;
  std::thread thread_;  // last: it uses the above
};

}  // namespace kiln::server
