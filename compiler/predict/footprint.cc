// How much comes through a cache of a given size: a loop whose body touches more than fits has it
// come again in every iteration; where the body fits, each line comes once.
//
//   for i in 0..1024 { for k in 0..1024 { .. A[i*1024 + k]*B[k*1024 + ramp(0, 1, 1024)] } }
//     ->   B is 4 MiB: into a cache of 2 MiB it comes 1024 times, into one of 8 MiB once
//
// The reuse of M. Wolf and M. Lam, "A Data Locality Optimizing Algorithm", 1991, in bytes: whether
// a loop carries reuse follows from its strides, whether a cache keeps it from its size. Of
// conflict misses those are counted that a buffer has with itself.
#include "compiler/predict/footprint.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace kiln::predict {
namespace {

constexpr double kLineBytes = 64;

double sum_of(const std::map<const void*, double>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0,
                         [](double sum, const auto& entry) { return sum + entry.second; });
}

}  // namespace

Footprint::Footprint(const Nest& kernel) {
  std::vector<double> extents;
  kernel_ = collect(kernel, extents, false);
}

Footprint::Loop Footprint::collect(const Nest& nest, std::vector<double>& extents, bool is_loop) {
  Loop loop{.extent = nest.extent,
            .depth = extents.size() + (is_loop ? 1 : 0),
            .own_groups = {},
            .groups = {},
            .inner = {}};
  if (is_loop) extents.push_back(nest.extent);
  for (const Touch& touch : nest.touches) {
    std::vector<double> strides(touch.strides.begin(), touch.strides.end());
    const auto same = std::ranges::find_if(loop.own_groups, [&](size_t i) {
      const Group& group = groups_[i];
      return group.buffer == touch.buffer.get() && group.strides == strides &&
             group.lanes == static_cast<double>(touch.lanes) &&
             group.is_gather == touch.is_gather &&
             group.lane_stride == static_cast<double>(touch.lane_stride);
    });
    if (same != loop.own_groups.end()) {
      groups_[*same].firsts.push_back(touch.first);
      continue;
    }
    loop.own_groups.push_back(groups_.size());
    groups_.push_back({.buffer = touch.buffer.get(),
                       .buffer_bytes = touch.buffer_bytes,
                       .element_bytes = static_cast<double>(touch.element_bytes),
                       .lanes = static_cast<double>(touch.lanes),
                       .is_gather = touch.is_gather,
                       .lane_stride = static_cast<double>(touch.lane_stride),
                       .strides = std::move(strides),
                       .extents = extents,
                       .firsts = {touch.first}});
  }
  for (const size_t i : loop.own_groups) {
    std::vector<int64_t>& firsts = groups_[i].firsts;
    std::ranges::sort(firsts);
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  }
  loop.groups = loop.own_groups;
  for (const Nest& inner : nest.inner) {
    loop.inner.push_back(collect(inner, extents, true));
    const std::vector<size_t>& more = loop.inner.back().groups;
    loop.groups.insert(loop.groups.end(), more.begin(), more.end());
  }
  if (is_loop) extents.pop_back();
  return loop;
}

/// The lines that a group touches while the loops from `depth` on run, and those around stand
/// still. Elements side by side grow from the least stride to the largest; what lies further apart
/// than a line begins a run of its own.
Footprint::Runs Footprint::runs_of(const Group& group, size_t depth) {
  std::vector<std::pair<double, double>> steps;  // stride, how often
  for (size_t i = depth; i < group.strides.size(); ++i)
    steps.emplace_back(std::abs(group.strides[i]), group.extents[i]);
  const auto count = static_cast<double>(group.firsts.size());
  if (count > 1) {
    const auto spread = static_cast<double>(group.firsts.back() - group.firsts.front());
    steps.emplace_back(spread / (count - 1), count);
  }
  const bool is_anywhere = group.is_gather && group.lane_stride == 0;
  if (group.is_gather && !is_anywhere) steps.emplace_back(std::abs(group.lane_stride), group.lanes);
  std::ranges::sort(steps);
  double run = group.is_gather ? 1 : group.lanes;
  Runs runs{.count = is_anywhere ? group.lanes : 1};
  for (const auto& [stride, times] : steps) {
    if (stride == 0 || times <= 1) continue;
    if (stride <= run + kLineBytes / group.element_bytes) {
      run += stride * (times - 1);
      continue;
    }
    if (runs.count == 1) runs.apart = stride * group.element_bytes;
    runs.count *= times;
  }
  runs.lines = std::ceil(run * group.element_bytes / kLineBytes);
  return runs;
}

Footprint::Bytes Footprint::touched(const std::vector<size_t>& groups, size_t depth) const {
  Bytes bytes;
  for (const size_t i : groups) {
    const Group& group = groups_[i];
    const Runs runs = runs_of(group, depth);
    double& sum = bytes[group.buffer];
    sum = std::min(sum + runs.count * runs.lines * kLineBytes,
                   std::max(group.buffer_bytes, kLineBytes));
  }
  return bytes;
}

/// Runs that lie a multiple of a large power of two apart share few sets of a cache, which then
/// keeps fewer lines than it has room for.
bool Footprint::evicts_itself(const Group& group, size_t depth, const Cache& cache) const {
  const Runs runs = runs_of(group, depth);
  if (runs.count <= 1 || std::fmod(runs.apart, kLineBytes) != 0) return false;
  const auto sets = static_cast<int64_t>(cache.bytes / kLineBytes / cache.ways);
  const auto apart = static_cast<int64_t>(runs.apart / kLineBytes);
  if (apart == 0 || sets == 0) return false;
  const int64_t used = std::max<int64_t>(sets / std::gcd(apart, sets), 1);
  const double kept = static_cast<double>(std::min<int64_t>(used, sets)) * cache.ways;
  return runs.count > kept && runs.lines < static_cast<double>(apart);
}

Footprint::Bytes Footprint::into_body(const Loop& loop, const Cache& cache) const {
  Bytes bytes = touched(loop.own_groups, loop.depth);
  for (const Loop& inner : loop.inner) {
    for (const auto& [buffer, more] : into(inner, cache))
      bytes[buffer] += more;
  }
  return bytes;
}

Footprint::Bytes Footprint::into(const Loop& loop, const Cache& cache) const {
  Bytes once = touched(loop.groups, loop.depth - 1);
  const bool fits = sum_of(touched(loop.groups, loop.depth)) <= cache.bytes;
  std::set<const void*> lost;
  for (const size_t i : loop.groups) {
    if (!fits || evicts_itself(groups_[i], loop.depth, cache)) lost.insert(groups_[i].buffer);
  }
  if (lost.empty()) return once;
  for (const auto& [buffer, each] : into_body(loop, cache)) {
    if (lost.contains(buffer)) once[buffer] = each * loop.extent;
  }
  return once;
}

double Footprint::bytes() const { return sum_of(touched(kernel_.groups, 0)); }

double Footprint::bytes_into(const Cache& cache) const { return sum_of(into_body(kernel_, cache)); }

}  // namespace kiln::predict
