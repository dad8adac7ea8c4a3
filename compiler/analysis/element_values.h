#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/simplifier.h"

namespace kiln::analysis {

/// What the element alone says about the iterations that touch it.
///
/// A *value* of the element is a sum for each place. Whenever two accesses touch one element, each
/// of its values is one number in both. The indices are such values; others follow:
///   - digits: where c*w + r has r in 0 .. c - 1 at all places, w and r are values;
///   - recombination: with floormod(x, n) and floordiv(x, n), so is x;
///   - any sum of values, with or without what is the same in all accesses.
/// A value that is a variable at all places tells that variable: it is the same in both accesses,
/// and from then on counts as standing still. Each step is proved at each place, whatever made it
/// look for that step.
class ElementValues {
 public:
  /// `facts` are the same again when this one is gone.
  ElementValues(std::vector<const Place*> places, Facts& facts);
  ~ElementValues();
  ElementValues(const ElementValues&) = delete;
  ElementValues& operator=(const ElementValues&) = delete;

  /// Whether touching one element takes the same value of each of the variables.
  bool tell(const std::vector<ir::VarRef>& vars);
  /// Whether two places are never one element, as far as tell() found values.
  bool are_disjoint();

 private:
  using Value = std::vector<Linear>;  // by place

  /// A constant times what stands still.
  struct Divisor {
    int64_t coefficient;
    Product product;
    Linear sum() const;
  };

  bool at_all_places(const std::function<bool(size_t)>& visit);
  size_t push_facts_of(const Place& place);
  void pop_facts(size_t count);

  bool is_still(AtomId atom) const;
  bool is_still(const Product& product) const;
  Linear canonical(const Linear& sum);
  AtomId canonical(AtomId division);
  bool normalise(Value& value) const;
  void keep(Value value);

  bool step();
  std::optional<AtomId> variable_of(const Value& value) const;
  void mark_told(AtomId var);
  bool tell_one();
  bool tell_by_conditions(AtomId var);

  std::vector<Divisor> divisors_of(const Value& value) const;
  bool split(size_t which);
  std::optional<Linear> first_of(const Value& rests, const Divisor& divisor);
  bool lies_within(const Value& rests, const Linear& first, const Divisor& divisor);

  bool recombine(size_t which);
  std::optional<Value> recombined(const Value& remainder, const Value& quotient);
  std::optional<Linear> quotient_in(const Linear& sum, Linear a, Linear b);
  Linear coarser(const Linear& sum);
  std::optional<Linear> without_remainder(const Linear& remainder, const Linear& quotient,
                                          std::optional<Linear>& divisor);

  bool eliminate(size_t pivot);
  const Term* only_moving(const Linear& sum) const;

  const std::vector<const Place*> places_;
  Facts& facts_;
  Atoms& atoms_;
  size_t common_ = 0;        // facts pushed where they are the same at all places
  std::vector<AtomId> own_;  // variables with another value in each access
  std::vector<AtomId> divisions_;
  std::vector<Value> values_;
  bool index_changes_ = false;
};

}  // namespace kiln::analysis
