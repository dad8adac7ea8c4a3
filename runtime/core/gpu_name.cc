// Names of GPUs: an architecture, and behind it what a single GPU of it has, since an L4 and an
// L40S run the same code and are planned otherwise.
#include "runtime/core/gpu_name.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/core/error.h"

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "sm_";
constexpr int64_t kMost = 1'000'000;

struct Field {
  std::string_view name;
  int64_t GpuFigures::*value;
};

constexpr Field kFields[] = {{"sms", &GpuFigures::multiprocessors},
                             {"gbs", &GpuFigures::gigabytes},
                             {"l2mib", &GpuFigures::l2_mebibytes},
                             {"mhz", &GpuFigures::megahertz}};

/// GPUs of architectures that have several, by their data sheets.
struct Known {
  std::string_view name;
  GpuFigures figures;
};

constexpr Known kKnown[] = {
    {"a100-80gb", {108, 2039, 40, 1410}}, {"l40s", {142, 864, 96, 2520}},
    {"h100-pcie", {114, 2000, 50, 1755}}, {"h200", {132, 4800, 50, 1830}},
    {"rtx4090", {128, 1008, 72, 2520}},
};

std::vector<std::string_view> names_of_known() {
  std::vector<std::string_view> names;
  for (const Known& gpu : kKnown)
    names.push_back(gpu.name);
  return names;
}

/// Whether a part as "sms142" is of the field.
bool read(std::string_view part, const Field& field, GpuFigures& figures) {
  if (!part.starts_with(field.name)) return false;
  part.remove_prefix(field.name.size());
  int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || end != part.data() + part.size() || value < 1 || value > kMost)
    return false;
  figures.*field.value = value;
  return true;
}

}  // namespace

std::string with_figures(std::string_view arch, const GpuFigures& figures) {
  std::string name(arch);
  for (const Field& field : kFields)
    name += fmt::format("+{}{}", field.name, figures.*field.value);
  return name;
}

std::string_view without_figures(std::string_view arch) {
  return arch.starts_with(kPrefix) ? arch.substr(0, arch.find('+')) : arch;
}

std::optional<GpuFigures> figures_of(std::string_view arch) {
  const std::string_view plain = without_figures(arch);
  if (plain.size() == arch.size()) return std::nullopt;
  GpuFigures figures;
  std::string_view rest = arch.substr(plain.size());
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('+'));
    rest.remove_prefix(part.size());
    bool is_known = false;
    for (const Field& field : kFields)
      is_known = is_known || read(part, field, figures);
    for (const Known& gpu : kKnown) {
      if (part != gpu.name) continue;
      figures = gpu.figures;
      is_known = true;
    }
    if (!is_known) {
      fail(ErrorKind::InvalidArgument, "ARCH",
           "{} says {} of a GPU, which is no figure of it; write {}+sms142+gbs864+l2mib96+mhz2520 "
           "(multiprocessors, GB/s from memory, MiB of L2, MHz), or its name: {}",
           arch, part, plain, fmt::join(names_of_known(), ", "));
    }
  }
  return figures;
}

}  // namespace kiln
