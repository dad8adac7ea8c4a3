#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "runtime/core/artifact.h"

namespace kiln {
namespace codegen {
class TileAssembler;
}

/// What to compile for. A value; there is no current target.
struct Target {
  TargetKind kind = TargetKind::Llvm;
  std::string arch;  // a CPU name ("znver5"), "sm_90"; of the interpreter none

  /// What such a target can do.
  const TargetTraits& traits() const { return traits_of(kind); }
};

/// What a block of code made of tiles has, of a product or an attention; what is not said is as it
/// is thought best.
struct TileBlock {
  std::optional<int64_t> rows;     // of sums, or queries
  std::optional<int64_t> columns;  // of sums, or keys at once
  std::optional<int64_t> steps;    // of the sums at once
  std::optional<int64_t> warps;    // 0: what the assembler thinks best
  bool operator==(const TileBlock&) const = default;
};

/// What a compile may cost at most. Passing one is ResourceExhausted with both numbers.
struct CompileLimits {
  language::Limits language;
  int64_t unrolled_iterations = 4096;  // of one loop, and of a nest of them
  int64_t statements = 200'000;        // of a kernel in any pass
  int64_t code = 80'000;               // of a compiled kernel: about so many instructions
};

struct CompileOptions {
  bool automatic = true;   // stages without a step are scheduled automatically
  bool untouched = false;  // no step is the user's, nor a tuner's
  bool strict = false;     // no reassociation, ever
  bool fast = false;       // float sums may be reassociated, and those of 8 bits be short
  bool reproducible = true;
  bool check_nan = false;  // of the interpreter: the first NaN stops the call
  bool strided = false;    // also for arguments that do not lie side by side: as much code again
  // None, or what each size of the definition is at every call: a variant for these alone.
  std::vector<int64_t> sizes;
  // Makes code of tiles for GPUs; null: none is made.
  const codegen::TileAssembler* assembler = nullptr;
  // What the schedule says of code made of tiles: it is made, whatever is predicted of it.
  std::optional<TileBlock> block = {};
  CompileLimits limits;
};

}  // namespace kiln
