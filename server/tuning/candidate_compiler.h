#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/tuning/search.h"
#include "server/tuning/tuning_task.h"

namespace kiln::server {

/// A candidate that compiled.
struct CompiledCandidate {
  std::shared_ptr<const KernelEntry> kernel;  // null where its code was to be read alone
  v1::Schedule schedule;
  double predicted_seconds = 0;  // of a call, where its code was to be read
};

/// What a search asks of the compilers.
class CandidateCompiler {
 public:
  explicit CandidateCompiler(const SearchContext& search) : search_(search) {}

  /// The schedules that the kernel may have. Throws Unsupported NOTHING_TO_TUNE.
  std::vector<StageSketches> space() const;
  /// A candidate; nothing: what is taken unmeasured. `read_at`: the sizes of a call that its code
  /// is to be read for. Throws what the kernel fails with, ResourceExhausted COMPILE_TIME.
  CompiledCandidate compile(const std::optional<Candidate>& candidate,
                            const std::optional<std::vector<int64_t>>& read_at) const;

 private:
  /// The reply of a compiler. `key` is what is blamed when the compiler dies. Throws
  /// ResourceExhausted COMPILE_TIME after `limit`.
  internal::FromWorker ask(internal::ToWorker message, std::string key,
                           Clock::duration limit) const;

  const SearchContext& search_;
};

}  // namespace kiln::server
