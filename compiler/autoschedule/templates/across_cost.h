#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/element_work.h"
#include "compiler/autoschedule/templates/transfers.h"

namespace kiln::autoschedule {

/// Rows and columns of a stage that are computed one after the other.
struct ElementBlock {
  double rows = 1;
  double columns = 1;
  double lanes = 1;      // of the vectors along the columns
  double square = 0;     // rows and columns that are turned in registers; 0: each element by itself
  bool is_down = false;  // the next block is below, not beside it
  double between = 1;    // whole rows between one of a line and the next, where rows are not blocks
};

/// What the elements of a stage take that reads tensors across: along an axis whose neighbours lie
/// in different lines, while those along the axis `across` are neighbours.
class AcrossCost {
 public:
  /// `line`: the last axis, with those before that are one with it.
  AcrossCost(const Chooser& chooser, StageId stage, AxisId across, const std::vector<AxisId>& line);

  /// One core, in cycles. Sizes that are not known are taken to be large.
  double cycles(const ElementBlock& block) const;
  /// The same with the loops in the order of the axes, in vectors of so many lanes.
  double row_by_row(double lanes) const;

 private:
  /// A tensor whose elements are neighbours down the rows or along them.
  struct Tensor {
    double bytes = 0;     // of an element
    double distance = 0;  // in bytes, of the next line
    double size = 0;      // in bytes, of what the stage reads or writes
  };

  double instructions(const ElementBlock& block) const;
  double rest(const ElementBlock& block) const;
  void add_across(const Tensor& tensor, const ElementBlock& block, Transfers& transfers) const;
  void add_along(const Tensor& tensor, const ElementBlock& block, Transfers& transfers) const;
  void add_pieces(const ElementBlock& block, Transfers& transfers) const;
  double new_pages(const ElementBlock& block) const;

  const Machine machine_;
  double rows_;
  double columns_;
  double elements_;
  double between_ = 1;  // rows of the axes between the one across and the last
  std::vector<Tensor> across_;
  std::vector<Tensor> along_;
  size_t written_ = 0;
  Busy busy_;  // of an element
  double bytes_of_element_ = 0;
};

}  // namespace kiln::autoschedule
