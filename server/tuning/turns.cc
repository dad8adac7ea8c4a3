// Judges pairs: how many turns were won, and the median of the ratios. Medians and signs need
// nothing to be known of how times scatter.
#include "server/tuning/turns.h"

#include <algorithm>

namespace kiln::server {

double median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return std::max(seconds[seconds.size() / 2], kShortestRun);
}

bool Bar::is_passed(const Turns& turns) const {
  std::vector<double> against_best;
  for (size_t i = 0; i < turns.own.size(); ++i)
    against_best.push_back(turns.own[i] / std::max(turns.best[i], kShortestRun));
  const auto won = std::ranges::count_if(against_best, [](double ratio) { return ratio < 1; });
  if (won < wins || median(against_best) > part) return false;
  return median(turns.own) <= std::max(part, 1.0) * median(turns.defaults);
}

}  // namespace kiln::server
