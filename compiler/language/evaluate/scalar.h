#pragma once

#include <cstdint>
#include <span>

#include "compiler/language/evaluate/host_tensor.h"
#include "compiler/language/tables/operator.h"

namespace kiln::language {

/// One element of any type. Integers and bools are in `integer`, wrapped to their width and then
/// extended to int64; floating numbers are in `floating`, rounded to their type.
struct Scalar {
  DType type = DType::Int64;
  int64_t integer = 0;
  double floating = 0;

  static Scalar of_int(DType type, int64_t value);
  static Scalar of_float(DType type, double value);
  static Scalar of_bool(bool value) { return of_int(DType::Bool, value ? 1 : 0); }
};

/// `op` applied to operands, exactly as the operator table says. IfThenElse and Select choose among
/// operands that are all there.
Scalar apply_operator(Operator op, std::span<const Scalar> operands);

/// Integer to float rounds; float to integer rounds to zero, saturates, and gives 0 for nan;
/// anything to bool is whether it differs from zero.
Scalar convert(DType type, const Scalar& value);

Scalar identity_of(Combiner combiner, DType type);

Scalar read_element(const HostTensor& tensor, int64_t position);
void write_element(HostTensor& tensor, int64_t position, const Scalar& value);

}  // namespace kiln::language
