#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compiler/analysis/linear.h"

namespace kiln::analysis {

/// A few sets of numbers that satisfy what is known. A claim that is false for one of them has no
/// proof, so the search for one need not start. They follow the facts as these are pushed and
/// popped; one that a fact rules out is set aside until that fact is popped.
class Models {
 public:
  explicit Models(Atoms& atoms) : atoms_(atoms) {}

  void mark();
  void pop();
  /// lower <= var < upper; either may be missing.
  void add_range(AtomId var, const std::optional<Linear>& lower,
                 const std::optional<Linear>& upper);
  void add_condition(const ir::Expr& condition);
  void add_nonnegative(const Linear& sum);

  /// Whether the sum is negative in one of them.
  bool refutes(const Linear& sum);

 private:
  static constexpr int kCount = 8;
  struct Model {
    bool alive = true;
    std::vector<std::optional<int64_t>> values;  // by atom; of variables and memory
  };
  struct Mark {
    std::array<bool, kCount> alive;
    AtomId ranged = -1;
    std::array<std::optional<int64_t>, kCount> before;
  };

  std::optional<int64_t>& stored(int model, AtomId atom);
  std::optional<int64_t> value(int model, const Linear& sum);
  std::optional<int64_t> value(int model, AtomId atom);
  std::optional<int64_t> operator_value(int model, ir::Operator op, AtomId atom);
  std::optional<bool> holds(int model, const ir::Expr& condition);
  int64_t choose(int model, AtomId atom) const;

  Atoms& atoms_;
  std::array<Model, kCount> models_;
  std::vector<Mark> marks_;
  int nesting_ = 0;
};

}  // namespace kiln::analysis
