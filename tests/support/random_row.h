#pragma once

#include <string>
#include <vector>

#include "tests/support/kernel_writer.h"

namespace kiln::testing {

/// A reduction of a tensor over one of its dimensions: what is left, and the reads.
struct Row {
  std::vector<DrawnExtent> shape;
  std::vector<std::string> axes;
  DrawnExtent extent;
  Term element;  // at `index`
};

/// Over any dimension of the source, which must have one. `index`: in the place of that dimension.
Row row_of(KernelWriter& writer, const DrawnTensor& source, const std::string& index = "r");

/// A reducer of the element over "r < n". A range may be empty even where `extent` is not.
Term reduced(Random& random, const std::string& range, const Term& element, int extent,
             bool may_be_empty);

}  // namespace kiln::testing
