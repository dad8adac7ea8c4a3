#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace kiln {

/// What kernels have a use for and no level of CPUs has. The name of a host says which of them it
/// has beyond its level: virtual machines often hide what the name of their CPU promises, but not
/// these.
constexpr std::array<std::string_view, 2> kTensorFeatures = {"avx512vnni", "avx512bf16"};

/// A CPU by the name that -march has for it, and features beyond: "x86-64-v4+avx512vnni".
struct CpuName {
  std::string_view cpu;
  std::vector<std::string_view> features;

  /// Whether all features are of kTensorFeatures.
  bool is_plain() const {
    return std::all_of(features.begin(), features.end(), [](std::string_view feature) {
      return std::find(kTensorFeatures.begin(), kTensorFeatures.end(), feature) !=
             kTensorFeatures.end();
    });
  }
};

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

}  // namespace kiln
