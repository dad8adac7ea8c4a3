#pragma once

#include <cstdint>
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

/// Code for the calls whose scalars satisfy `condition`; the first that does is taken.
struct Variant {
  SizeExpr condition = SizeExpr::constant(1);
  std::vector<Launch> launches;
  SizeExpr workspace_bytes = SizeExpr::constant(0);             // one block, shared by all threads
  SizeExpr workspace_bytes_per_thread = SizeExpr::constant(0);  // one block for each thread
  bool operator==(const Variant&) const = default;
};

/// Of the saved form and of the calling convention (kernel_abi.h); one that differs is not read.
constexpr uint32_t kArtifactVersion = 1;

/// A compiled kernel: all that the runtime needs, and nothing of the compiler.
///
/// The scalars of a call are its sizes (one a variable of the definition), then the strides of all
/// parameters in order, in elements.
struct Artifact {
  TargetKind target = TargetKind::Llvm;
  std::string arch;  // "znver5", "sm_90"; how it is interpreted
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
