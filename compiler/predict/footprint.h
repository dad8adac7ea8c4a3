#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/predict/nest.h"

namespace kiln::predict {

struct Cache {
  double bytes = 0;
  double ways = 8;
};

/// Which bytes of memory the loops of a kernel touch, and how often they come into a cache.
class Footprint {
 public:
  explicit Footprint(const Nest& kernel);

  /// Bytes of all that is touched, each line once.
  double bytes() const;

  /// Bytes that come into a cache of this size in all, where it holds nothing at first: what an
  /// iteration of a loop touches is there for the next one if all of it fits, else it comes again.
  double bytes_into(const Cache& cache) const;

 private:
  /// What touches a buffer alike: in the same loops, with the same strides.
  struct Group {
    const void* buffer = nullptr;
    double buffer_bytes = 0;
    double element_bytes = 4;
    double lanes = 1;
    bool is_gather = false;
    double lane_stride = 1;
    std::vector<double> strides;  // of the loops around, from the outside in
    std::vector<double> extents;  // of these loops
    std::vector<int64_t> firsts;  // the first element of each access
  };
  /// A loop by its place in the list of all, and the groups in it.
  struct Loop {
    double extent = 1;
    size_t depth = 0;                // loops around
    std::vector<size_t> own_groups;  // of what stands directly in it
    std::vector<size_t> groups;      // of all inside
    std::vector<Loop> inner;
  };
  using Bytes = std::map<const void*, double>;  // by buffer

  Loop collect(const Nest& nest, std::vector<double>& extents, bool is_loop);
  /// Lines side by side, and how many such runs there are how far apart.
  struct Runs {
    double lines = 1;
    double count = 1;
    double apart = 0;  // bytes, of those that are nearest
  };
  static Runs runs_of(const Group& group, size_t depth);
  Bytes touched(const std::vector<size_t>& groups, size_t depth) const;
  bool evicts_itself(const Group& group, size_t depth, const Cache& cache) const;
  Bytes into_body(const Loop& loop, const Cache& cache) const;
  Bytes into(const Loop& loop, const Cache& cache) const;

  std::vector<Group> groups_;
  Loop kernel_;
};

}  // namespace kiln::predict
