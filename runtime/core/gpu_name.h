#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// What one GPU has where another of its architecture has less, as its driver says.
struct GpuFigures {
  int64_t multiprocessors = 0;
  int64_t gigabytes = 0;     // a second, from memory
  int64_t l2_mebibytes = 0;  // of L2
  int64_t megahertz = 0;     // of its multiprocessors

  bool operator==(const GpuFigures&) const = default;
};

/// "sm_89+sms142+gbs864+l2mib96+mhz2520", or "sm_89+l40s": an architecture, and the GPU of it that
/// kernels are planned for.
std::string with_figures(std::string_view arch, const GpuFigures& figures);

/// "sm_89". What is no architecture of a GPU stays as it is.
std::string_view without_figures(std::string_view arch);

/// Nothing where an arch says none. Throws InvalidArgument ARCH where what it says is no figure.
std::optional<GpuFigures> figures_of(std::string_view arch);

}  // namespace kiln
