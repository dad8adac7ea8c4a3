// Asks LLVM which features a CPU's name stands for and which this host has. The host is called by
// its own name only if it has all that code for the name may use, else by the highest x86-64 level
// that holds, plus the tensor instructions it has: "x86-64-v4+avx512vnni". What is the operating
// system's alone (mwaitx, invpcid), which virtual machines hide, makes no other CPU of it.
// KILN_CPU=x86-64-v3 has it pass for another one, with fewer instructions.
#include "runtime/core/cpu_name.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include <fmt/ranges.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "runtime/core/cpu_features.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

/// What kernels have a use for and no level of CPUs has. The name of a host says which of them it
/// has beyond its level: virtual machines often hide what the name of their CPU promises, but not
/// these.
constexpr std::array<std::string_view, 5> kTensorFeatures = {"avx512vnni", "avx512bf16", "amx-int8",
                                                             "amx-bf16", "amx-fp16"};

std::vector<llvm::StringRef> features_of(std::string_view arch) {
  const CpuName name = cpu_name_of(arch);
  llvm::SmallVector<llvm::StringRef, 64> features;
  llvm::X86::getFeaturesForCPU(llvm::StringRef(name.cpu), features);
  std::vector<llvm::StringRef> all(features.begin(), features.end());
  for (const std::string_view feature : name.features)
    if (!feature.starts_with(kCoresPrefix)) all.emplace_back(feature);
  return all;
}

/// What LLVM finds, less what the operating system does not let this process use.
llvm::StringMap<bool> host_features() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (auto& feature : features)
    if (feature.getKey().starts_with("amx-") && feature.second) feature.second = may_use_tiles();
  return features;
}

/// Those of the CPU that code may use and this host lacks.
std::vector<llvm::StringRef> missing_features(std::string_view arch) {
  const llvm::StringMap<bool> host = host_features();
  std::vector<llvm::StringRef> features = features_of(arch);
  std::erase_if(features, [&](llvm::StringRef feature) {
    const auto found = host.find(feature);
    return !is_code_feature(feature) || found == host.end() || found->second;
  });
  return features;
}

/// The CPU that this host says it is. A virtual machine may show the number of an older model, but
/// what that one never had tells: tiles began with Sapphire Rapids.
std::string shown_cpu() {
  constexpr std::string_view kFirstWithTiles = "sapphirerapids";
  std::string shown = llvm::sys::getHostCPUName().str();
  const bool is_older =
      is_known_cpu(shown) && !cpu_has(shown, "amx-tile") && host_can_run(kFirstWithTiles);
  return is_older ? std::string(kFirstWithTiles) : shown;
}

constexpr size_t kFeaturesNamed = 4;  // in a sentence

}  // namespace

std::string with_cores(std::string arch, int threads) {
  if (threads <= kFewCores) return arch;
  const unsigned cores = std::bit_ceil(static_cast<unsigned>(std::min(threads, kMostCores)));
  return fmt::format("{}+{}{}", arch, kCoresPrefix, cores);
}

std::string without_cores(std::string_view arch) {
  const CpuName name = cpu_name_of(arch);
  std::string plain(name.cpu);
  for (const std::string_view feature : name.features)
    if (!feature.starts_with(kCoresPrefix)) plain += fmt::format("+{}", feature);
  return plain;
}

bool is_known_cpu(std::string_view arch) {
  llvm::SmallVector<llvm::StringRef, 128> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  const CpuName name = cpu_name_of(arch);
  const bool is_plain = std::ranges::all_of(name.features, [&](std::string_view feature) {
    if (feature.starts_with(kCoresPrefix))
      return with_cores("", cores_of(arch)) == "+" + std::string(feature);
    return std::ranges::find(kTensorFeatures, feature) != kTensorFeatures.end();
  });
  return is_plain && llvm::is_contained(names, llvm::StringRef(name.cpu));
}

bool cpu_has(std::string_view arch, std::string_view feature) {
  return llvm::is_contained(features_of(arch), llvm::StringRef(feature));
}

std::vector<std::string> code_features(std::string_view arch) {
  std::vector<std::string> features;
  for (const llvm::StringRef feature : features_of(arch)) {
    if (is_code_feature(feature)) features.push_back(feature.str());
  }
  std::ranges::sort(features);
  return features;
}

bool host_can_run(std::string_view arch) {
  return is_known_cpu(arch) && missing_features(arch).empty();
}

std::string host_cpu() {
  const char* const asked = std::getenv("KILN_CPU");
  return asked != nullptr && *asked != '\0' ? asked : own_cpu();
}

std::string runnable_cpu() {
  const std::string cpu = host_cpu();
  if (!is_known_cpu(cpu)) {
    fail(ErrorKind::Unsupported, "KILN_CPU",
         "KILN_CPU is {}, but there is no such CPU; names are those of -march, as {} (this host) "
         "or x86-64-v3",
         cpu, own_cpu());
  }
  const std::vector<llvm::StringRef> missing = missing_features(cpu);
  if (missing.empty()) return cpu;
  std::vector<std::string_view> some(missing.begin(), missing.end());
  const size_t more = some.size() - std::min<size_t>(some.size(), kFeaturesNamed);
  some.resize(some.size() - more);
  const std::string lacks =
      fmt::format("{}{}", fmt::join(some, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  fail(ErrorKind::Unsupported, "KILN_CPU",
       "KILN_CPU is {}, whose code this host ({}) cannot run: it lacks {}; compile for it with "
       "--arch {}, and leave KILN_CPU unset or name a lesser CPU, as x86-64-v3, to run",
       cpu, own_cpu(), lacks, cpu);
}

std::string own_cpu() {
  const std::string own = shown_cpu();
  for (const std::string_view cpu :
       {std::string_view(own), std::string_view("x86-64-v4"), std::string_view("x86-64-v3"),
        std::string_view("x86-64-v2")}) {
    if (!host_can_run(cpu)) continue;
    const llvm::StringMap<bool> host = host_features();
    std::string arch(cpu);
    for (const std::string_view feature : kTensorFeatures) {
      if (!cpu_has(cpu, feature) && host.lookup(llvm::StringRef(feature))) {
        arch += "+" + std::string(feature);
      }
    }
    return arch;
  }
  return "x86-64";
}

}  // namespace kiln
