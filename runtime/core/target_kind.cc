// The table of targets: the one place that says what each kind can do.
#include "runtime/core/target_kind.h"

#include <algorithm>
#include <array>

#include "runtime/core/error.h"

namespace kiln {
namespace {

constexpr std::array kTargets = {
    TargetTraits{.kind = TargetKind::Llvm,
                 .name = "llvm",
                 .device = "cpu",
                 .arch = "",
                 .arch_example = "x86-64-v3",
                 .is_compiled = true,
                 .is_host = true,
                 .has_threads = false,
                 .has_vectors = true,
                 .is_specialised = true},
    TargetTraits{.kind = TargetKind::Cuda,
                 .name = "cuda",
                 .device = "cuda",
                 .arch = "sm_90",
                 .arch_example = "sm_90",
                 .is_compiled = true,
                 .is_host = false,
                 .has_threads = true,
                 .has_vectors = false,
                 .is_specialised = false},
    TargetTraits{.kind = TargetKind::Interpreter,
                 .name = "interpreter",
                 .device = "cpu",
                 .arch = "",
                 .arch_example = "",
                 .is_compiled = false,
                 .is_host = true,
                 .has_threads = false,
                 .has_vectors = false,
                 .is_specialised = false},
};

}  // namespace

std::span<const TargetTraits> target_table() { return kTargets; }

const TargetTraits& traits_of(TargetKind kind) {
  const auto row = std::ranges::find(kTargets, kind, &TargetTraits::kind);
  KILN_CHECK(row != kTargets.end());
  return *row;
}

std::string_view name_of(TargetKind kind) { return traits_of(kind).name; }

TargetKind target_from_name(std::string_view name) {
  if (name == "cpu") return TargetKind::Llvm;
  const auto row = std::ranges::find(kTargets, name, &TargetTraits::name);
  if (row != kTargets.end()) return row->kind;
  fail(ErrorKind::InvalidArgument, "TARGET",
       "there is no target {}; known are llvm (or cpu), cuda and interpreter", name.substr(0, 80));
}

}  // namespace kiln
