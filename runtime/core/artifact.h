#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/size_expr.h"
#include "runtime/core/target_kind.h"

namespace kiln {

/// One argument of a kernel. Names are not here: they belong to the caller (KernelNames).
struct Parameter {
  DType type;
  std::vector<SizeExpr> shape;  // over the sizes
  bool is_output = false;
  bool operator==(const Parameter&) const = default;
};

/// A condition on the sizes that must hold at every call: value >= minimum, e.g. time extent >=
/// initial steps. Named by the dimension of a parameter where one has the value.
struct SizeRequirement {
  enum class Kind : uint8_t {
    ScanExtent,  // of the scan `stage`, whose initial steps are `minimum`
  };
  Kind kind = Kind::ScanExtent;
  int32_t parameter = -1;  // -1: no parameter has this dimension
  int32_t dimension = 0;
  SizeExpr value = SizeExpr::constant(0);  // what must be at least `minimum`
  SizeExpr minimum = SizeExpr::constant(0);
  int32_t stage = -1;  // the scan
  bool operator==(const SizeRequirement&) const = default;
};

/// What generated code checks while it runs, when it could not be proved: it leaves the check's
/// number and the values in its frame, and stops.
struct RuntimeCheck {
  int32_t stage = -1;   // in which stage's body the access stands
  int32_t tensor = -1;  // the stage that is read, or `stage` itself: what a scatter updates
  int32_t dimension = 0;
  bool operator==(const RuntimeCheck&) const = default;
};

/// One kernel launch on a device with a grid; on the CPU one call of `entry`, without a grid.
struct Launch {
  std::string entry;
  std::vector<SizeExpr> grid;   // empty, or x, y, z
  std::vector<SizeExpr> block;  // empty, or x, y, z
  SizeExpr shared_bytes = SizeExpr::constant(0);
  bool operator==(const Launch&) const = default;
};

/// Launches that are repeated, all of them in order each time: those from `first` to before `end`.
/// Each is given the number of the iteration as its last argument.
struct LaunchLoop {
  int32_t first = 0;
  int32_t end = 0;
  SizeExpr count = SizeExpr::constant(0);
  bool operator==(const LaunchLoop&) const = default;
};

/// Code for the calls whose scalars satisfy `condition`; the first that does is taken.
struct Variant {
  SizeExpr condition = SizeExpr::constant(1);
  std::vector<Launch> launches;
  std::vector<LaunchLoop> loops;  // in the order of the launches, none in another one
  SizeExpr workspace_bytes = SizeExpr::constant(0);             // one block, shared by all threads
  SizeExpr workspace_bytes_per_thread = SizeExpr::constant(0);  // one block for each thread
  /// cuda only: launches that do what `launches` do, of code made of CUDA Tile IR; empty: there are
  /// none. A block of them is given as one thread.
  std::vector<Launch> tile_launches;
  /// The cubin of each, for this very architecture and drivers that know Tile IR.
  std::vector<std::string> tile_code;
  /// What these take in the place of the other.
  SizeExpr tile_workspace_bytes = SizeExpr::constant(0);
  bool operator==(const Variant&) const = default;
};

/// Of the saved form and of the calling convention (kernel_abi.h); one that differs is not read.
constexpr uint32_t kArtifactVersion = 6;

/// Calls run(i, iteration) for each launch of a variant, in order.
template <typename Run>
void for_each_launch(const Variant& variant, std::span<const int64_t> scalars, const Run& run) {
  const auto count = static_cast<int32_t>(variant.launches.size());
  auto loop = variant.loops.begin();
  for (int32_t first = 0; first < count;) {
    const bool is_repeated = loop != variant.loops.end() && loop->first == first;
    const int32_t end = is_repeated ? loop->end : first + 1;
    const int64_t times = is_repeated ? loop->count.evaluate(scalars) : 1;
    for (int64_t iteration = 0; iteration < times; ++iteration) {
      for (int32_t i = first; i < end; ++i)
        run(static_cast<size_t>(i), iteration);
    }
    if (is_repeated) ++loop;
    first = end;
  }
}

/// A compiled kernel: all that the runtime needs, and nothing of the compiler.
///
/// The scalars of a call are its sizes (one a variable of the definition), then the strides of all
/// parameters in order, in elements.
struct Artifact {
  TargetKind target = TargetKind::Llvm;
  std::string arch;  // "znver5", "sm_90"; how it is interpreted
  /// llvm only: what the code uses beyond x86-64 ("avx2"): of the table in cpu_features.h.
  std::vector<std::string> features;
  std::string code;  // an ELF object, a cubin, or loops as text
  std::string ptx;   // cuda only
  int32_t size_count = 0;
  std::vector<Parameter> parameters;
  std::vector<SizeRequirement> requirements;
  std::vector<Variant> variants;
  std::vector<RuntimeCheck> checks;
  std::string report;  // JSON; stages and axes by number

  bool operator==(const Artifact&) const = default;
};

/// The bytes of a saved artifact: magic, version, length, XXH3-128 of the rest, contents.
std::string serialize(const Artifact& artifact);

/// Reads what serialize() wrote. Throws InvalidArgument ARTIFACT_VERSION or ARTIFACT_CORRUPT; any
/// bytes at all are safe to pass.
Artifact deserialize_artifact(std::string_view bytes);

}  // namespace kiln
