#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/tuning/judge.h"

namespace kiln::server {

/// One search, in the thread that calls run().
///
/// Each candidate is compiled and judged: measured on the device, or, for an architecture of which
/// there is no device here, by its code. One that fails, takes too long or ends its worker is noted
/// and passed over. What seems faster than the best so far is compared with it in turns, so that a
/// busy moment decides nothing, and is a record at once.
class Tuner {
 public:
  using Observer = std::function<void(const v1::TuneEvent&)>;
  Tuner(const TuningParts& parts, TuningTask task, Observer observer);
  ~Tuner();

  /// Throws Cancelled after cancel(), and what the kernel itself fails with.
  void run();
  /// From any thread. run() ends within a few hundredths of a second, or as soon as the worker of a
  /// kernel that does not end is ended.
  void cancel() { cancelled_ = true; }

 private:
  struct Best;

  void open_space();
  void resume();
  /// Judges the record of an earlier search against the default.
  void try_record();
  void try_read_record();
  void try_candidate(const Candidate& candidate, const Bar& bar);
  void challenge(const Candidate& candidate, const CompiledCandidate& compiled, double seconds,
                 const Bar& bar);
  void finish(const std::string& end);
  std::string text_of(const Candidate& candidate) const;
  void tell(const TuningTrial& trial, const std::string& failure, bool recorded);

  const TuningParts& parts_;
  const TuningTask task_;
  const Observer observer_;
  std::atomic<bool> cancelled_{false};
  const Clock::time_point started_ = Clock::now();

  const SearchContext context_;
  const std::unique_ptr<Judge> judge_;
  TuningKey key_;
  std::optional<Search> search_;
  double default_seconds_ = 0;
  std::unique_ptr<Best> best_;
  uint32_t number_ = 0;  // of the next trial
  uint32_t measured_ = 0;
  uint32_t failures_ = 0;
};

}  // namespace kiln::server
