// What the device was given last, written as CUDA C writes a launch. Kept as it is given, and put
// into words only where something went wrong.
#include "runtime/cuda/launch_journal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cuda {
namespace {

constexpr size_t kKept = 8;

}  // namespace

void LaunchJournal::add(const std::string& entry, const LaunchSize& size) {
  if (entries_.size() == kKept) entries_.pop_back();
  entries_.push_front({entry, size});
}

std::string LaunchJournal::text() const {
  std::string text;
  for (const Entry& entry : entries_) {
    text += fmt::format("{}{} <<<({}), ({}), {}>>>",
                        text.empty() ? "the last launches, latest first: " : ", ", entry.entry,
                        fmt::join(entry.size.grid, ", "), fmt::join(entry.size.block, ", "),
                        entry.size.shared_bytes);
  }
  return text;
}

}  // namespace kiln::cuda
