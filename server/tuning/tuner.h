#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kiln/v1/service.pb.h"
#include "server/engine/compile_service.h"
#include "server/engine/run_service.h"
#include "server/tuning/record_store.h"
#include "server/tuning/search.h"
#include "server/tuning/turns.h"

namespace kiln::server {

/// What the searches of a daemon work with.
struct TuningParts {
  CompileService& compiles;
  CompilerPool& compilers;
  KernelTable& kernels;
  RunService& runs;
  Devices& devices;
  std::shared_ptr<ArenaPool> arenas;
  int64_t tensor_bytes = 0;  // that the arenas may give out
  RecordStore& records;
  Counters& counters;
};

/// A search that was asked for and checked.
struct TuningTask {
  CheckedRequest request;
  v1::TuneRequest wire;
  Caller caller;
  TuningKey key;  // its sizes are found by the search
  uint32_t trials = 0;
  Clock::duration time{};
};

/// One search, in the thread that calls run().
///
/// Each candidate is compiled, run once on the same data as the schedule without tuning, compared
/// with its outputs bit by bit, and measured. One that fails, takes too long or ends its worker is
/// noted and passed over. What seems faster than the best so far is measured against it in turns,
/// so that a busy moment decides nothing, and is a record at once.
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
  struct Compiled;
  struct Best;

  void require_uncancelled() const;
  void place_arguments();
  void open_space();
  /// The reply of a compiler. `key` is what is blamed when the compiler dies. Throws
  /// ResourceExhausted COMPILE_TIME after `limit`.
  internal::FromWorker ask_compiler(internal::ToWorker message, std::string key,
                                    Clock::duration limit) const;
  void resume();
  /// Measures the record of an earlier search against the default.
  void try_record();
  void try_candidate(const Candidate& candidate, const Bar& bar);
  void challenge(const Candidate& candidate, const Compiled& compiled, double seconds,
                 const Bar& bar);
  void finish(const std::string& end);

  Compiled compile(const Candidate& candidate);
  std::vector<double> measure(const Compiled& compiled, double seconds_a_run,
                              uint32_t measurements);
  double first_run(const Compiled& compiled);
  DeviceResult execute(const Compiled& compiled, uint32_t repeat, uint32_t measurements);
  void require_same_outputs() const;
  std::string text_of(const Candidate& candidate) const;
  void tell(const TuningTrial& trial, const std::string& failure, bool recorded);
  Clock::duration limit_of_run() const;

  const TuningParts& parts_;
  const TuningTask task_;
  const Observer observer_;
  std::atomic<bool> cancelled_{false};
  const Clock::time_point started_ = Clock::now();

  TuningKey key_;
  std::shared_ptr<const KernelEntry> default_kernel_;
  DeviceCall call_;                              // of the default, its outputs the reference
  std::vector<std::shared_ptr<Slice>> outputs_;  // of candidates, one a parameter; null: an input
  std::optional<Search> search_;
  double default_seconds_ = 0;
  std::unique_ptr<Best> best_;
  uint32_t number_ = 0;  // of the next trial
  uint32_t measured_ = 0;
  uint32_t failures_ = 0;
};

}  // namespace kiln::server
