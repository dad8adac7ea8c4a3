// An attention as loops of threads: its program on tiles (attention.cc), each block of which some
// warps have. Queries and keys of 16-bit floats are multiplied by tensor cores where there are
// such; else lanes multiply, of what is float32 in shared memory.
#include "compiler/tile/thread_attention.h"

#include <algorithm>

#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/language/tables/hints.h"
#include "compiler/tile/attention.h"
#include "compiler/tile/find_attention.h"
#include "compiler/tile/part_sizes.h"
#include "compiler/tile/thread_loops.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln::tile {
namespace {

using namespace language;

constexpr int64_t kWarps = 4;

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
  ThreadedWork work;
  for (const language::AxisId axis : found.axes)
    if (axis != found.column && axis != found.row) work.heads *= extent_of(axis);
  work.queries = extent_of(found.row);
  work.keys = extent_of(found.key);
  if (found.seen) work.seen = 0.5;
  work.depth = whole_step(definition, finder, found.depth, "a query");
  work.width = whole_step(definition, finder, found.column, "a value");
  work.has_matrices = has_matrices(definition, found, arch);
  return work;
}

/// Warps have rows of their own, as many as an instruction at least.
int64_t warps_of(const ThreadedWork& work, const ThreadBlock& block) {
  return work.has_matrices ? std::clamp<int64_t>(block.queries / ir::kMatrixRows, 1, kWarps)
                           : kWarps;
}

int64_t shared_bytes_of(const ThreadedWork& work, const ThreadBlock& block) {
  // Rows are 16 bytes longer (shared_factors.cc).
  constexpr int64_t kLonger = 16;
  const auto bytes = [&](int64_t outer, int64_t inner) {
    return outer * (inner * (work.has_matrices ? 2 : 4) + kLonger);
  };
  if (work.has_matrices)
    return bytes(block.queries, work.depth) + bytes(block.keys, work.depth) +
           bytes(block.keys, work.width) + bytes(block.queries, block.keys);
  return bytes(work.depth, block.queries) + bytes(work.depth, block.keys) +
         bytes(block.keys, work.width) + bytes(block.keys, block.queries);
}

ir::Kernel threaded_attention(const Kernel& kernel, const ThreadBlock& block,
                              std::string_view arch) {
  const ThreadedWork work = threaded_work(kernel, arch);
  const AttentionShape shape{.queries = block.queries, .keys = block.keys};
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
    const int64_t bytes = shared_bytes_of(work, block);
    const int64_t most = ir::gpu_arch(arch).shared_bytes_of_block;
    if (bytes > most) {
      refuse_step(kernel, *asking,
                  fmt::format("asks for {} queries and {} keys a block, which take {} bytes of "
                              "shared memory, and a block of {} has {}; ask for fewer",
                              block.queries, block.keys, bytes, arch, most));
    }
    return threaded_attention(kernel, block, arch);
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    refuse_step(kernel, *asking,
                fmt::format("is for attentions, and {} is none that threads do: {}; leave it out",
                            kernel.names.kernel, error.message()));
  }
}

}  // namespace kiln::tile
