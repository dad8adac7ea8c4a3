// Which machine code runs on which GPU: that of the same major number, on devices of the minor
// number it was compiled for and of later ones. Code that uses what one architecture alone has,
// written with an "a", runs on that one. PTX for an architecture can be compiled for all later
// ones.
//
//   sm_80 on 8.6: yes    sm_86 on 8.0: no    sm_80 on 9.0: no    sm_90a on 9.0: yes
#include "runtime/cuda/compute_capability.h"

#include <charconv>
#include <optional>
#include <tuple>

#include <fmt/format.h>

namespace kiln::cuda {

std::string arch_of(ComputeCapability capability) {
  return fmt::format("sm_{}{}", capability.major, capability.minor);
}

namespace {

/// "sm_90a" in its parts.
struct Arch {
  ComputeCapability capability;
  std::string_view suffix;
};

std::optional<Arch> parse(std::string_view arch) {
  constexpr std::string_view kPrefix = "sm_";
  if (!arch.starts_with(kPrefix)) return std::nullopt;
  arch.remove_prefix(kPrefix.size());
  int number = 0;
  const char* end = arch.data() + arch.size();
  const std::from_chars_result read = std::from_chars(arch.data(), end, number);
  if (read.ec != std::errc() || number < 10) return std::nullopt;
  return Arch{{number / 10, number % 10}, {read.ptr, static_cast<size_t>(end - read.ptr)}};
}

}  // namespace

bool runs_on(std::string_view arch, ComputeCapability device) {
  const std::optional<Arch> code = parse(arch);
  if (!code || code->capability.major != device.major) return false;
  if (code->suffix == "a") return code->capability.minor == device.minor;
  const bool is_known = code->suffix.empty() || code->suffix == "f";
  return is_known && code->capability.minor <= device.minor;
}

bool compiles_on(std::string_view arch, ComputeCapability device) {
  const std::optional<Arch> code = parse(arch);
  if (!code || !code->suffix.empty()) return false;
  return std::tie(code->capability.major, code->capability.minor) <=
         std::tie(device.major, device.minor);
}

}  // namespace kiln::cuda
