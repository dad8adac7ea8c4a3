#pragma once

#include <string>

#include "runtime/core/dtype.h"

namespace kiln::testing {

/// What is known of the values of a tensor or of an expression in a random kernel.
///
/// Most are whole numbers so small that their type holds every partial result exactly, in whatever
/// order a schedule computes them: then every result must be equal to the last bit. Where they are
/// not whole, `error` says how far rounding may have moved them.
struct Values {
  DType type = DType::Float32;
  double bound = 4;  // the largest magnitude
  bool whole = true;
  double error = 0;
};

/// An expression as text. Operators below take operands of one type, and keep results exact: an
/// operand that may be too large is limited with min and max first. Integers wrap instead.
struct Term {
  std::string text;
  Values values;

  DType type() const { return values.type; }
  double bound() const { return values.bound; }
};

/// Up to this magnitude a type holds every whole number.
double exact_limit(DType type);

Term literal_of(DType type, int value);
/// min(max(term, -limit), limit), where it may be larger.
Term within(const Term& term, double limit);
Term cast_to(DType type, const Term& term);

// Of bools these are ||, ^ and &&.
Term add(const Term& a, const Term& b);
Term subtract(const Term& a, const Term& b);
Term multiply(const Term& a, const Term& b);
Term smaller(const Term& a, const Term& b);
Term larger(const Term& a, const Term& b);
/// What text says of the same operands, with results no larger than `bound`.
Term computed(std::string text, DType type, double bound);

/// The source of a sum over so many elements, in a type that has room for them.
Term summand(const Term& source, int count);
/// The same for a product.
Term summand(const Term& a, const Term& b, int count);
/// What a sum of the summand is.
Values sum_of(const Values& summand, int count);
/// The smallest or the largest of so many: of nothing it is the end of the type's range.
Values extreme_of(const Values& source, int count);

}  // namespace kiln::testing
