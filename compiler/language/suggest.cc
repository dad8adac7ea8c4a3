// Suggests the known name nearest to what was written, by Levenshtein's distance.
//
//   "splt"  ->  split     "x"  ->  nothing: every letter is as near
#include "compiler/language/suggest.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::language {
namespace {

// Letters. The distance takes the product of two lengths, and names come from anyone.
constexpr size_t kLongestCompared = 64;

/// How many letters must be put in, taken out or changed.
size_t edit_distance(std::string_view a, std::string_view b) {
  // The table of Wagner and Fischer (1974), of which one row is kept.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::string_view nearest(std::string_view written, std::span<const std::string_view> candidates) {
  if (written.size() > kLongestCompared) return {};
  std::string_view best;
  // Of a single letter every other letter is one change away.
  size_t best_distance = std::min(std::max<size_t>(1, written.size() / 3) + 1, written.size());
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongestCompared) continue;
    const size_t distance = edit_distance(written, candidate);
    const bool begins_alike = distance == best_distance && !best.empty() &&
                              common_prefix(written, candidate) > common_prefix(written, best);
    if (distance < best_distance || begins_alike) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view written, std::span<const std::string_view> candidates) {
  const std::string_view near = nearest(written, candidates);
  if (!near.empty()) return fmt::format("; did you mean {}", near);
  if (candidates.empty()) return "";
  return fmt::format("; known: {}", fmt::join(candidates, ", "));
}

}  // namespace kiln::language
