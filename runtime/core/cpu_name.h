#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A CPU by the name that -march has for it, and features beyond: "x86-64-v4+avx512vnni". LLVM's
/// names, for both.
struct CpuName {
  std::string_view cpu;
  std::vector<std::string_view> features;
};

/// Here, for those who need names alone: the rest asks LLVM.
inline CpuName cpu_name_of(std::string_view arch) {
  CpuName name;
  size_t end = arch.find('+');
  name.cpu = arch.substr(0, end);
  while (end != std::string_view::npos) {
    const size_t begin = end + 1;
    end = arch.find('+', begin);
    name.features.push_back(arch.substr(begin, end == std::string_view::npos ? end : end - begin));
  }
  return name;
}

/// Whether LLVM knows the CPU, and the features beyond are of those that a host's name may have.
bool is_known_cpu(std::string_view arch);

/// Whether every CPU of this name has a feature.
bool cpu_has(std::string_view arch, std::string_view feature);

/// What code for the CPU may use beyond x86-64, as artifacts keep it: of the table in
/// cpu_features.h.
std::vector<std::string> code_features(std::string_view arch);

/// The CPU that this host is planned as: the one that KILN_CPU names, which is for tests, else its
/// own.
std::string host_cpu();
/// host_cpu(), whose code runs here. Throws Unsupported KILN_CPU where it would not.
std::string runnable_cpu();

/// The CPU of this host ("znver5"); a generic level ("x86-64-v3") where the host lacks features
/// that its own name promises and code may use, as virtual machines may, with the features beyond
/// that kernels can use.
std::string own_cpu();

/// Whether this host has all that code for the CPU may use. False for names LLVM does not know.
bool host_can_run(std::string_view arch);

}  // namespace kiln
