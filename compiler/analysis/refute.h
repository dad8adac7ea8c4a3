#pragma once

#include <unordered_map>

#include "compiler/analysis/knowledge.h"

namespace kiln::analysis {

/// Proves that sums are not negative, by refuting the opposite.
///
/// `-1 - sum >= 0` is combined with what is known until a contradiction shows: its innermost
/// product is cancelled with each fact that has it with the other sign, then the next. The facts
/// are the conditions and ranges that were pushed, and what floordiv, floormod, min, max and casts
/// promise. Each step follows from the ones before, so a contradiction is a proof; the number of
/// steps is bounded.
class Refuter {
 public:
  explicit Refuter(Knowledge& knowledge) : knowledge_(knowledge), atoms_(knowledge.atoms) {}

  bool nonnegative(const Linear& sum);
  bool positive(const Linear& sum);
  /// a <= b
  bool ordered(const Linear& a, const Linear& b);

 private:
  /// How far a search has come. `lifts`: how often it was multiplied by something.
  struct Place {
    int depth = 0;
    int lifts = 0;
    Place deeper() const { return {depth + 1, lifts}; }
    Place lifted() const { return {depth + 1, lifts + 1}; }
  };

  bool refute(Linear sum, Place place);
  bool cancel(const Linear& sum, const Term& target, const Linear& fact, Place place);
  bool use_facts(const Linear& sum, const Term& target, Place place);
  bool use_atom(const Linear& sum, const Term& target, AtomId atom, Place place);
  bool use_division(const Linear& sum, const Term& target, AtomId atom, Place place);
  std::optional<Linear> rounded_end(AtomId quotient, const Atoms::Operands& operands,
                                    bool is_highest);
  bool use_end_of_dividend(const Linear& sum, const Term& target, AtomId quotient,
                           const Atoms::Operands& operands, Place place);
  bool use_choice(const Linear& sum, const Term& target, AtomId atom, Place place);
  bool split(const Linear& sum, AtomId atom, const Linear& value, const Linear& order,
             const ir::Expr& condition, Place place);
  bool lift(const Linear& sum, const Term& target, Place place);
  bool is_refuted_by_product(const Linear& sum);
  bool at_least(AtomId atom, int64_t least);
  bool nonnegative(const Product& product);
  bool is_positive_term(const Linear& sum);
  bool is_positive_product(const Linear& sum, int factors);

  Knowledge& knowledge_;
  Atoms& atoms_;
  int budget_ = 0;
  std::array<std::unordered_map<AtomId, bool>, 2> known_signs_;  // whether atom >= 0, atom >= 1
};

}  // namespace kiln::analysis
