#pragma once

#include <string>
#include <vector>

#include "compiler/program/fuse.h"
#include "compiler/program/join.h"
#include "compiler/program/memory.h"
#include "compiler/program/packing.h"

namespace kiln::program {

/// One kernel of a step.
struct PlannedKernel {
  std::string name;
  std::vector<NodeId> nodes;
  Joined joined;
  bool is_constant = false;  // it runs once for all steps: constant_nodes()

  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
};

/// Where a value lies while a step runs.
enum class Place : uint8_t {
  Nowhere,  // it passes inside of a kernel, or nothing needs it
  Given,    // outside: an input, a data set, a parameter
  Arena,    // at an offset, for as long as it is needed
  Kept,     // outside, made by a constant kernel
};

struct PlannedValue {
  Place place = Place::Nowhere;
  int64_t offset = 0;
  std::string reuses;  // a value that lay there before
};

/// All that is decided about a step for one set of shapes.
struct Plan {
  Program program;  // with nodes that compute its gradients
  Shapes shapes;
  std::vector<PlannedKernel> kernels;  // in the order in which they run
  std::vector<PlannedValue> values;
  MemoryPlan memory;
};

/// Throws what graph_of() and infer_shapes() throw.
Plan make_plan(const Program& program, const GivenTypes& given,
               const SavedByProducts& saved_by_products = {}, const FindPacked& find_packed = {},
               const HasFastForm& has_fast_form = {});

}  // namespace kiln::program
