#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A CPU by the name that -march has for it, and features beyond: "x86-64-v4+avx512vnni". LLVM's
/// names, for both. "cores64" stands among the features, and says for how many cores, at most,
/// kernels are planned.
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

constexpr std::string_view kCoresPrefix = "cores";
/// So many cores are what every kernel is planned for.
constexpr int kFewCores = 4;
constexpr int kMostCores = 1024;

/// What an arch says of cores; kFewCores where it says nothing.
inline int cores_of(std::string_view arch) {
  for (const std::string_view feature : cpu_name_of(arch).features) {
    if (!feature.starts_with(kCoresPrefix)) continue;
    int cores = 0;
    for (const char digit : feature.substr(kCoresPrefix.size()))
      cores = digit >= '0' && digit <= '9' && cores <= kMostCores ? cores * 10 + digit - '0' : 0;
    if (cores > 0) return cores;
  }
  return kFewCores;
}

/// The arch of a CPU whose kernels run on so many threads: the next power of two, so that hosts
/// which differ by little share their kernels. As it is where they are few.
std::string with_cores(std::string arch, int threads);
/// Without what it says of cores.
std::string without_cores(std::string_view arch);

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
