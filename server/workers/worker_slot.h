#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kiln/internal/worker.pb.h"
#include "server/clock.h"
#include "server/ipc/channel.h"
#include "server/ipc/status_page.h"
#include "server/workers/beat_watch.h"
#include "server/workers/launcher.h"
#include "server/workers/supervisor.h"

namespace kiln::server {

/// How a worker ended.
enum class WorkerEnd {
  Fault,    // by itself, or because of what it did
  Killed,   // by a signal that somebody else sent
  Silent,   // it did not beat
  Starved,  // it did not beat because it got no processor
  Draining  // with the daemon
};

/// What a WorkerSlot tells its owner, from the slot's reader thread and without a lock held.
class WorkerOwner {
 public:
  virtual ~WorkerOwner() = default;
  /// The worker greeted. Nothing can be sent to it before welcome().
  virtual void on_ready(const internal::Hello& hello) = 0;
  virtual void on_reply(internal::FromWorker& reply) = 0;
  /// The worker ended, and everything sent to it is lost. Once for each on_ready(), and for a
  /// worker that ended before it was ready. True: it had work, so that its end says nothing about
  /// the next one.
  virtual bool on_lost(WorkerEnd end) = 0;
};

struct WorkerTimes {
  Clock::duration hang = std::chrono::seconds(5);      // without a beat
  Clock::duration starved = std::chrono::seconds(60);  // the same, though it has work
  Clock::duration start = std::chrono::seconds(60);    // until it greets
  Clock::duration margin = std::chrono::seconds(1);    // for a kernel to end once it is told to
  Clock::duration restart_grace = std::chrono::milliseconds(1500);  // for waiting calls
  Clock::duration short_call = std::chrono::milliseconds(1);        // others are sent behind such
  Clock::duration run_limit = std::chrono::hours(1);
  Clock::duration compile_limit = std::chrono::seconds(120);
  Clock::duration quarantine = std::chrono::minutes(10);
};

/// Keeps one worker running: starts it, watches its beats, replaces it when it ends.
///
/// The worker is not trusted: whatever it sends that is no message ends it.
class WorkerSlot {
 public:
  enum class State { Down, Starting, Ready, Absent };

  WorkerSlot(WorkerSpec spec, Launcher& launcher, Supervisor& supervisor, WorkerTimes times,
             WorkerOwner& owner);
  ~WorkerSlot() { stop(); }

  /// False when there is no worker to send to. Never waits.
  bool send(const internal::ToWorker& message, std::span<const int> fds = {});
  /// From on_ready(), with the owner's lock held, unless the device is absent: what is sent from
  /// now on is for the worker that greeted, which knows nothing of what the one before was sent.
  void welcome();
  // Calls by their slots of the status page.
  /// Before the call is sent.
  void open_call(size_t slot);
  /// Takes a call back; false when the worker has begun it.
  bool withdraw_call(size_t slot);
  /// Tells a call that runs, or is about to, to end.
  void cancel_call(size_t slot);
  /// Ends the worker; on_lost() follows.
  void kill(const std::string& why, WorkerEnd end = WorkerEnd::Fault);

  State state() const;
  int pid() const;  // 0 while there is none
  int64_t restarts() const;
  std::string name() const { return spec_.name(); }

  /// In the supervisor's thread only.
  void tick(Clock::time_point now);
  /// Ends the worker for good.
  void stop();

 private:
  /// What a worker that runs has in common with us. Senders hold it, so it outlives a replacement.
  struct Connection {
    Connection(Fd socket, const Fd& page_fd)
        : channel(std::move(socket), Channel::WhenFull::Fail), status(page_fd) {}
    Channel channel;
    SharedStatus status;
  };

  void start(Clock::time_point now);
  void watch(const std::shared_ptr<Connection>& connection, Clock::time_point now);
  void clear_away(Clock::time_point now);
  void reap(Clock::time_point now);
  void read_replies(const std::shared_ptr<Connection>& connection);
  /// Waits for messages; returns why there are no more.
  std::string read_until_end(Connection& connection);
  void greet(const internal::Hello& hello);
  bool is_gone_for_good(const internal::Hello& hello) const;
  Clock::duration back_off() const;

  const WorkerSpec spec_;
  Launcher& launcher_;
  Supervisor& supervisor_;
  const WorkerTimes times_;
  WorkerOwner& owner_;

  mutable std::mutex mutex_;
  State state_ = State::Down;
  bool ended_ = false;    // the reader thread is done, the child may be cleared away
  bool at_once_ = false;  // how it ended is no reason to wait with the next
  bool stopped_ = false;
  std::string kill_reason_;
  WorkerEnd kill_end_ = WorkerEnd::Fault;
  bool was_ready_ = false;  // a worker of this slot, once
  std::shared_ptr<Connection> connection_;
  std::unique_ptr<Child> child_;
  int64_t starts_ = 0;

  // Of the supervisor's thread.
  std::thread reader_;
  /// Told to end, but still there, with when that was noticed.
  std::vector<std::pair<std::unique_ptr<Child>, Clock::time_point>> ending_;
  std::deque<Clock::time_point> deaths_;  // in the last minute, of workers that had no work
  Clock::time_point start_at_{};
  Clock::time_point started_{};
  BeatWatch beats_;
};

}  // namespace kiln::server
