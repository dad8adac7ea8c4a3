#pragma once

#include <memory>
#include <vector>

#include "server/tuning/candidate_compiler.h"
#include "server/tuning/turns.h"

namespace kiln::server {

/// What candidates are compared by.
class Judge {
 public:
  virtual ~Judge() = default;

  /// Comes first. The sizes of a call, in the order of the definition. Throws InvalidArgument for
  /// what it is given, and what the kernel itself fails with.
  virtual std::vector<int64_t> prepare() = 0;
  /// Comes next. Seconds of a run under the schedule without tuning.
  virtual double begin() = 0;
  virtual CompiledCandidate compile(const Candidate& candidate) = 0;
  /// Whether it is what runs without tuning, under another name.
  virtual bool is_default(const CompiledCandidate& candidate) const = 0;
  /// Seconds of a run, exact where it may be faster than `best`. Throws why it is no candidate.
  virtual double seconds_of(const CompiledCandidate& candidate, double best) = 0;
  /// A candidate that took `seconds` against the fastest so far, which is null where none is faster
  /// than the schedule without tuning, and took `best_seconds`.
  virtual Turns compare(const CompiledCandidate& candidate, double seconds,
                        const CompiledCandidate* best, double best_seconds) = 0;
};

/// Runs each candidate once on the same data as the schedule without tuning, compares its outputs
/// with those bit by bit, and measures it. What seems faster is measured in turns.
std::unique_ptr<Judge> measuring_judge(const SearchContext& search);
/// Reads the machine code of each for an architecture of which there is no device here, and
/// predicts (compiler/read_code.h). Nothing runs.
std::unique_ptr<Judge> reading_judge(const SearchContext& search);

}  // namespace kiln::server
