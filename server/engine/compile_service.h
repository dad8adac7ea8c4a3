#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/cache/artifact_cache.h"
#include "server/cache/cache_level.h"
#include "server/call.h"
#include "server/engine/compile_request.h"
#include "server/engine/compiler_pool.h"
#include "server/engine/kernel_table.h"
#include "server/task_queue.h"

namespace kiln::server {

struct CompileResult {
  std::shared_ptr<const KernelEntry> kernel;
  v1::CacheLevel level = v1::CACHE_LEVEL_UNSPECIFIED;
  double seconds = 0;
};

using CompileDone = std::function<void(Outcome<CompileResult>)>;
/// Compiles a request on behalf of a call, and tells what became of it once.
using CompileCall =
    std::function<void(const v1::CompileRequest&, std::shared_ptr<Call>, CompileDone)>;

/// Compiled kernels from the nearest place that has them: memory, the other levels (disk, a
/// shared one), the compiler. However many
/// ask for one kernel at a time, it is compiled once.
class CompileService {
 public:
  /// `levels`: behind memory, the nearest first.
  CompileService(KernelTable& kernels, ArtifactCache& memory, std::vector<CacheLevel*> levels,
                 CompilerPool& pool, Counters& counters)
      : kernels_(kernels),
        memory_(memory),
        levels_(std::move(levels)),
        pool_(pool),
        counters_(counters) {}

  /// `done` is told once, perhaps before this returns. Does not throw.
  void compile(CheckedRequest request, std::shared_ptr<Call> call, CompileDone done);

  /// Does what was begun; nothing may be asked after it.
  void stop() { level_work_.stop(); }

 private:
  struct Waiter {
    CheckedRequest request;
    std::shared_ptr<Call> call;
    CompileDone done;
  };
  /// One form that is being found or compiled, on behalf of the caller who asked first.
  struct Flight {
    Flight(const CheckedRequest& first, Caller caller) : leader(first), caller(std::move(caller)) {}
    const CheckedRequest leader;
    const Caller caller;
    const Clock::time_point started = Clock::now();
    std::vector<Waiter> waiters;  // under the lock of the service
  };

  CompileResult result_for(const CheckedRequest& request, const std::string& tenant,
                           std::shared_ptr<const CachedArtifact> compiled, v1::CacheLevel level);
  void look_in_levels(const std::shared_ptr<Flight>& flight);
  std::shared_ptr<const CachedArtifact> find_in(CacheLevel& level, const Flight& flight);
  /// Behind the reply: nobody waits for a disk or a network.
  void keep(const std::string& key, const std::shared_ptr<const CachedArtifact>& entry,
            size_t levels);
  /// Does not throw: what goes wrong ends the flight.
  void ask_compiler(const std::shared_ptr<Flight>& flight);
  void take_compiled(const std::shared_ptr<Flight>& flight, Outcome<internal::FromWorker> outcome);
  bool wanted(const Flight& flight);
  void land(const Flight& flight, const std::shared_ptr<const CachedArtifact>& entry,
            v1::CacheLevel level);
  void crash(const Flight& flight, const Error& error);

  KernelTable& kernels_;
  ArtifactCache& memory_;
  const std::vector<CacheLevel*> levels_;
  CompilerPool& pool_;
  Counters& counters_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;  // by form
  TaskQueue level_work_;                                    // last: its thread uses the above
};

}  // namespace kiln::server
