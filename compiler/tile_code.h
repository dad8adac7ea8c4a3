#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/language/kernel.h"
#include "compiler/target.h"
#include "compiler/tile/sequence.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// A kernel's program on tiles as text, for a person. Throws Unsupported TILE_FORM, with the
/// reason, where it has none.
std::string tile_text(const language::Kernel& kernel, const CompileOptions& options = {});

/// What a kernel is on tiles, in words too: "product of 16-bit floats, in blocks of ..".
struct TileCandidate {
  tile::Sequence sequence;
  std::string what;
};

/// Those that an untouched kernel may get for an architecture and a call of these sizes, the one
/// that is tried first in front; none where it stays with CUDA C whatever is made of them.
std::vector<TileCandidate> tile_candidates(const language::Kernel& kernel, const Target& target,
                                           const CompileOptions& options,
                                           std::span<const int64_t> sizes);

/// Completes an artifact for cuda, made of `loops`: where the kernel has a program on tiles whose
/// machine code is better than that of its CUDA C, and there is an assembler, its first variant
/// gets launches of that, or variants before it for the calls that a program is for. Its report
/// says which generator it is, and why. Whatever goes wrong, the artifact is as good as before.
void add_tile_code(const language::Kernel& kernel, const ir::Kernel& loops, const Target& target,
                   const CompileOptions& options, Artifact& artifact);

/// Code made of tiles: what it was made of, and the name of its last kernel in its cubin.
struct TileCode {
  tile::Sequence sequence;
  std::string entry;
  std::string cubin;
};

/// That of a call of these sizes; nothing where it runs the CUDA C. The options are those that the
/// artifact was made with, the block of its schedule among them.
std::optional<TileCode> tile_code_of(const language::Kernel& kernel, const Artifact& artifact,
                                     std::span<const int64_t> sizes, const CompileOptions& options);

}  // namespace kiln
