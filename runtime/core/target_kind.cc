#include "runtime/core/target_kind.h"

#include "runtime/core/error.h"

namespace kiln {

std::string_view name_of(TargetKind kind) {
  switch (kind) {
    case TargetKind::Llvm: return "llvm";
    case TargetKind::Cuda: return "cuda";
    case TargetKind::Interpreter: return "interpreter";
  }
  return "";
}

TargetKind target_from_name(std::string_view name) {
  if (name == "cpu") return TargetKind::Llvm;
  for (const TargetKind kind : {TargetKind::Llvm, TargetKind::Cuda, TargetKind::Interpreter}) {
    if (name == name_of(kind)) return kind;
  }
  fail(ErrorKind::InvalidArgument, "TARGET",
       "there is no target {}; known are llvm (or cpu), cuda and interpreter", name.substr(0, 80));
}

}  // namespace kiln
