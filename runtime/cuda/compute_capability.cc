// Which machine code runs on which GPU: that of the same major number, on devices of the minor
// number it was compiled for and of later ones. Code that uses what one architecture alone has,
// written with an "a", runs on that one.
//
//   sm_80 on 8.6: yes    sm_86 on 8.0: no    sm_80 on 9.0: no    sm_90a on 9.0: yes
#include "runtime/cuda/compute_capability.h"

#include <charconv>

#include <fmt/format.h>

namespace kiln::cuda {

std::string arch_of(ComputeCapability capability) {
  return fmt::format("sm_{}{}", capability.major, capability.minor);
}

bool runs_on(std::string_view arch, ComputeCapability device) {
  constexpr std::string_view kPrefix = "sm_";
  if (!arch.starts_with(kPrefix)) return false;
  arch.remove_prefix(kPrefix.size());
  int number = 0;
  const char* end = arch.data() + arch.size();
  const std::from_chars_result read = std::from_chars(arch.data(), end, number);
  if (read.ec != std::errc() || number < 10) return false;

  const std::string_view suffix(read.ptr, static_cast<size_t>(end - read.ptr));
  const ComputeCapability code{number / 10, number % 10};
  if (suffix == "a") return code.major == device.major && code.minor == device.minor;
  const bool is_known = suffix.empty() || suffix == "f";
  return is_known && code.major == device.major && code.minor <= device.minor;
}

}  // namespace kiln::cuda
