#pragma once

#include <cstdint>
#include <string_view>

namespace kiln {

/// What an artifact is for. The interpreter runs loops as they are written, slowly, on the CPU.
enum class TargetKind : uint8_t { Llvm = 1, Cuda = 2, Interpreter = 3 };

/// "llvm", "cuda", "interpreter".
std::string_view name_of(TargetKind kind);

/// The target of a name; "cpu" is another name for "llvm". Throws InvalidArgument TARGET listing
/// the known ones.
TargetKind target_from_name(std::string_view name);

}  // namespace kiln
