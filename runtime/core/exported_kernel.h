#pragma once

#include <string>
#include <string_view>

#include "runtime/core/arguments.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// A compiled kernel as a file that runs without a service: the artifact, and what its author calls
/// things. Lines of source are left out.
struct ExportedKernel {
  Artifact artifact;
  KernelNames names;
};

/// Of the file; the artifact within has a version of its own.
constexpr uint32_t kExportVersion = 1;

/// The bytes of the file NAME.kart. Throws Unsupported EXPORT for the interpreter's loops, which
/// need the compiler to run.
std::string serialize(const ExportedKernel& kernel);

/// Reads what serialize() wrote. Throws InvalidArgument ARTIFACT_FILE (no such file),
/// ARTIFACT_VERSION or ARTIFACT_CORRUPT, each with `name` in its sentence; any bytes at all are
/// safe to pass.
ExportedKernel deserialize_exported(std::string_view bytes, std::string_view name);

}  // namespace kiln
