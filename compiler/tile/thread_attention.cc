// An attention as loops of threads: its program on tiles (attention.cc), each block of which some
// warps have. Queries and keys of 16-bit floats are multiplied by tensor cores where there are
// such; else lanes multiply, of what is float32 in shared memory.
//
//   64 queries and 64 keys of 512 numbers  ->  in 16 bits, on sm_90: 256 numbers of a result a
//       block, another block has the other ones; in float32, queries and keys 128 numbers at a time
#include "compiler/tile/thread_attention.h"

#include <algorithm>

#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/language/tables/hints.h"
#include "compiler/tile/attention.h"
#include "compiler/tile/find_attention.h"
#include "compiler/tile/part_sizes.h"
#include "compiler/tile/thread_layout.h"
#include "compiler/tile/thread_loops.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln::tile {
namespace {

using namespace language;

constexpr int64_t kWarps = 4;
constexpr int64_t kManyWarps = 8;
// Of fewer columns scores would be computed too often.
constexpr int64_t kFewestColumns = 64;
// Threads would wait for shorter parts more than they compute with them.
constexpr int64_t kFewestSteps = 32;

/// Products of queries and keys, and of weights and values, by tensor cores.
bool has_matrices(const Definition& definition, const Attention& found, std::string_view arch) {
  const DType query = definition.type_of(found.query.tensor);
  const DType values = definition.type_of(found.values.tensor);
  return query == definition.type_of(found.keys.tensor) && ir::is_short_float(query) &&
         ir::is_short_float(values) && ir::has_matrix_unit(arch, *ir::matrix_unit(query, query));
}

/// What a step says of a block of threads.
std::optional<PragmaKind> kind_of(const Step& step) {
  if (step.kind != StepKind::Pragma) return std::nullopt;
  const auto kind = find_pragma(step.tag);
  const bool is_of_block =
      kind == PragmaKind::AttentionQueries || kind == PragmaKind::AttentionKeys;
  return is_of_block ? kind : std::nullopt;
}

[[noreturn]] void refuse_step(const Kernel& kernel, const Step& step, const std::string& why) {
  Error error(ErrorKind::InvalidArgument, "PRAGMA", fmt::format("pragma {} {}", step.tag, why));
  const std::vector<std::string>& files = kernel.names.files;
  error.set_location(
      {step.file < files.size() ? files[step.file] : std::string(), static_cast<int>(step.line)});
  throw error;
}

}  // namespace

std::optional<ThreadBlock> thread_block_of(const Schedule& schedule) {
  std::optional<ThreadBlock> block;
  for (const Step& step : schedule.steps) {
    const auto kind = kind_of(step);
    if (!kind) continue;
    if (!block) block.emplace();
    (kind == PragmaKind::AttentionQueries ? block->queries : block->keys) = step.value;
  }
  return block;
}

ThreadedWork threaded_work(const Kernel& kernel, std::string_view arch) {
  const Definition& definition = kernel.definition;
  AttentionFinder finder(definition);
  const Attention found = finder.find();
  const auto extent_of = [&](language::AxisId axis) {
    return static_cast<double>(extent_or_guess(definition, finder, axis));
  };
  ThreadedWork work{.output = found.output};
  for (const language::AxisId axis : found.axes)
    if (axis != found.column && axis != found.row) work.heads *= extent_of(axis);
  work.queries = extent_of(found.row);
  work.keys = extent_of(found.key);
  if (found.seen) work.seen = 0.5;
  work.depth = known_extent(definition, finder, found.depth, "a query");
  work.width = known_extent(definition, finder, found.column, "a value");
  work.has_matrices = has_matrices(definition, found, arch);
  work.has_stage_of_weights = found.has_stage_of_weights;
  return work;
}

/// Warps of tensor cores have rows of their own, as many as an instruction at least. Of lanes more
/// of them have registers for results that are wider.
int64_t warps_of(const ThreadedWork& work, const ThreadBlock& block) {
  if (work.has_matrices) return std::clamp<int64_t>(block.queries / ir::kMatrixRows, 1, kWarps);
  const int64_t sums = block.queries * whole_step(work.width) / (kWarps * ir::kWarp);
  return sums > kMostSums ? kManyWarps : kWarps;
}

int64_t sums_of_thread(const ThreadedWork& work, const ThreadBlock& block, const HeadParts& parts) {
  return block.queries * (block.keys + parts.columns) / (warps_of(work, block) * ir::kWarp);
}

int64_t shared_bytes_of(const ThreadedWork& work, const ThreadBlock& block,
                        const HeadParts& parts) {
  // Rows are 16 bytes longer (shared_factors.cc).
  constexpr int64_t kLonger = 16;
  const auto bytes = [&](int64_t outer, int64_t inner) {
    return outer * (inner * (work.has_matrices ? 2 : 4) + kLonger);
  };
  const int64_t steps = work.has_matrices ? kMatrixSteps : 1;
  const int64_t depth = std::min(parts.depth, (work.depth + steps - 1) / steps * steps);
  if (work.has_matrices)
    return bytes(block.queries, depth) + bytes(block.keys, depth) +
           bytes(block.keys, parts.columns) + bytes(block.queries, block.keys);
  return bytes(depth, block.queries) + bytes(depth, block.keys) + bytes(block.keys, parts.columns) +
         bytes(block.keys, block.queries);
}

HeadParts parts_of(const ThreadedWork& work, const ThreadBlock& block, std::string_view arch) {
  const ir::GpuArch limits = ir::gpu_arch(arch);
  HeadParts parts{whole_step(work.width), whole_step(work.depth)};
  while (parts.columns > kFewestColumns && sums_of_thread(work, block, parts) > kMostSums)
    parts.columns /= 2;
  const auto fits = [&](int64_t bytes) { return shared_bytes_of(work, block, parts) <= bytes; };
  if (fits(limits.shared_bytes_of_block)) return parts;
  for (; parts.columns >= kFewestColumns; parts.columns /= 2) {
    // Two blocks of a multiprocessor wait for different parts.
    for (const int64_t blocks : {2, 1}) {
      for (parts.depth = whole_step(work.depth) / 2; parts.depth >= kFewestSteps; parts.depth /= 2)
        if (fits(limits.shared_bytes / blocks - limits.uncounted_bytes)) return parts;
    }
  }
  return {kFewestColumns, kFewestSteps};
}

ir::Kernel threaded_attention(const Kernel& kernel, const ThreadBlock& block,
                              const HeadParts& parts, std::string_view arch) {
  const ThreadedWork work = threaded_work(kernel, arch);
  const AttentionShape shape{
      .queries = block.queries, .keys = block.keys, .depth = parts.depth, .columns = parts.columns};
  return thread_loops(attention(kernel, shape), warps_of(work, block), work.has_matrices);
}

ir::Kernel threaded_attention(const Kernel& kernel, const Schedule& schedule, std::string_view arch,
                              bool strict) {
  const auto asking = std::ranges::find_if(
      schedule.steps, [](const Step& step) { return kind_of(step).has_value(); });
  KILN_CHECK(asking != schedule.steps.end());
  const ThreadBlock block = *thread_block_of(schedule);
  if (strict)
    refuse_step(kernel, *asking,
                "adds up weights in another order, which strict forbids; leave out one of the two");
  try {
    const ThreadedWork work = threaded_work(kernel, arch);
    const HeadParts parts = parts_of(work, block, arch);
    const int64_t bytes = shared_bytes_of(work, block, parts);
    const int64_t most = ir::gpu_arch(arch).shared_bytes_of_block;
    if (bytes > most) {
      refuse_step(kernel, *asking,
                  fmt::format("asks for {} queries and {} keys a block, which take {} bytes of "
                              "shared memory, and a block of {} has {}; ask for fewer",
                              block.queries, block.keys, bytes, arch, most));
    }
    return threaded_attention(kernel, block, parts, arch);
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    refuse_step(kernel, *asking,
                fmt::format("is for attentions, and {} is none that threads do: {}; leave it out",
                            kernel.names.kernel, error.message()));
  }
}

}  // namespace kiln::tile
