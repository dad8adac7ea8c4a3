#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"

namespace kiln::tile {

/// How a block of threads computes an attention in CUDA C: so many queries, and so many keys at
/// once. Powers of two, 16 at least.
struct ThreadBlock {
  int64_t queries = 64;
  int64_t keys = 64;
  bool operator==(const ThreadBlock&) const = default;
};

/// The block that a schedule asks for (pragmas attention_queries and attention_keys), if it does.
std::optional<ThreadBlock> thread_block_of(const language::Schedule& schedule);

/// What an attention comes to on an architecture, for who compares blocks of it.
struct ThreadedWork {
  language::StageId output = 0;
  double heads = 1;  // of known sizes, and a guess at those that the call brings
  double queries = 1;
  double keys = 1;
  double seen = 1;    // the share of the keys that a query sees
  int64_t depth = 1;  // numbers of a query
  int64_t width = 1;  // of a value
  bool has_matrices = false;
  bool has_stage_of_weights = false;
};
/// What a block has of the numbers of a head where it is too wide for all of them: so many of a
/// result, and blocks with others of them compute the scores anew; so many of a query and a key at
/// once. Powers of two.
struct HeadParts {
  int64_t columns = 0;
  int64_t depth = 0;
};
/// Throws Unsupported TILE_FORM with the reason where a kernel is no attention that threads do.
ThreadedWork threaded_work(const language::Kernel& kernel, std::string_view arch);

/// Warps of a block.
int64_t warps_of(const ThreadedWork& work, const ThreadBlock& block);
/// As many columns as registers hold, and as much of the depth as shared memory does.
HeadParts parts_of(const ThreadedWork& work, const ThreadBlock& block, std::string_view arch);
/// Bytes of shared memory that a block has.
int64_t shared_bytes_of(const ThreadedWork& work, const ThreadBlock& block, const HeadParts& parts);
/// Registers of a thread for scores and sums; with more of them than these cubins spill.
constexpr int64_t kMostSums = 192;
int64_t sums_of_thread(const ThreadedWork& work, const ThreadBlock& block, const HeadParts& parts);

/// The loops of an attention whose scores are never stored, as build_loops leaves those of a
/// schedule. Throws as threaded_work() does.
ir::Kernel threaded_attention(const language::Kernel& kernel, const ThreadBlock& block,
                              const HeadParts& parts, std::string_view arch);

/// The loops that a schedule asks for, which has such a block. Throws InvalidArgument PRAGMA, with
/// what to do and the step's line, where the kernel has none.
ir::Kernel threaded_attention(const language::Kernel& kernel, const language::Schedule& schedule,
                              std::string_view arch, bool strict);

}  // namespace kiln::tile
