#include "compiler/target.h"

#include "runtime/core/error.h"

namespace kiln {

TargetKind target_from_name(std::string_view name) {
  if (name == "llvm" || name == "cpu") return TargetKind::Llvm;
  if (name == "cuda") return TargetKind::Cuda;
  fail(ErrorKind::InvalidArgument, "TARGET",
       "there is no target {}; the targets are llvm (or cpu) and cuda", name);
}

std::string_view name_of(TargetKind kind) { return kind == TargetKind::Llvm ? "llvm" : "cuda"; }

}  // namespace kiln
