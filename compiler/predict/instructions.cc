// How long vector operations keep a core busy: one instruction a register for most, more for those
// that are written out as polynomials, and a call of a C function for each lane of the others.
//
//   exp of 32 lanes of float32, registers of 16   ->   2 * 24 instructions, 2 * 10 multiply-adds
//
// Counted in the code that Kiln generates for a CPU with AVX-512, without loads and stores;
// divisions and roots are the reciprocal throughput of LLVM 19's model of Zen 4.
#include "compiler/predict/instructions.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kiln::predict {
namespace {

using ir::Operator;

/// A function that is written out for vectors of float32: instructions on one register, and how
/// many of them multiply or add.
struct Row {
  Operator op;
  double all;
  double multiply_adds;
};
constexpr Row kFunctions[] = {
    {Operator::Exp, 24, 10},   {Operator::Exp2, 24, 10},    {Operator::Expm1, 34, 14},
    {Operator::Log, 47, 17},   {Operator::Log2, 51, 20},    {Operator::Log10, 53, 21},
    {Operator::Log1p, 64, 23}, {Operator::Cbrt, 53, 26},    {Operator::Sin, 41, 16},
    {Operator::Cos, 41, 16},   {Operator::Tanh, 51, 20},    {Operator::Erf, 55, 26},
    {Operator::Rsqrt, 32, 0},  {Operator::Sigmoid, 35, 11},
};

// Cycles of a register of 64 bytes; a shorter one takes as much less.
constexpr double kDivision32 = 6;
constexpr double kDivision64 = 10;
constexpr double kRoot32 = 10;
constexpr double kRoot64 = 18;
// Cycles of a call of a C function, for one lane, and of an integer division.
constexpr double kCall = 35;
constexpr double kIntegerDivision = 12;

bool is_function(Operator op) {
  return op >= Operator::Exp && op <= Operator::Hypot && op != Operator::Sqrt &&
         op != Operator::Fma;
}

bool divides(Operator op) {
  return op == Operator::Div || op == Operator::FloorDiv || op == Operator::FloorMod ||
         op == Operator::TruncDiv || op == Operator::TruncMod;
}

}  // namespace

Busy busy_cycles(const Operations& operations, const autoschedule::Machine& machine) {
  const auto register_bytes = static_cast<double>(machine.vectors.bytes);
  const auto lanes = static_cast<double>(operations.lanes);
  const double registers =
      operations.count *
      std::ceil(lanes * static_cast<double>(operations.element_bytes) / register_bytes);
  const double part = register_bytes / 64;
  const bool is_wide = operations.element_bytes > 4;
  const Operator op = operations.op;
  if (op == Operator::Sqrt && operations.is_float)
    return {0, registers * part * (is_wide ? kRoot64 : kRoot32)};
  if (divides(op) && operations.is_float)
    return {0, registers * part * (is_wide ? kDivision64 : kDivision32)};
  if (divides(op)) return {0, operations.count * lanes * kIntegerDivision};
  if (is_function(op)) {
    const auto* const row = std::ranges::find(kFunctions, op, &Row::op);
    if (row == std::end(kFunctions) || is_wide) return {0, operations.count * lanes * kCall};
    return {registers * row->multiply_adds / machine.multiply_adds,
            registers * row->all / machine.operations};
  }
  const bool multiplies =
      op == Operator::Mul || op == Operator::Add || op == Operator::Sub || op == Operator::Fma;
  return {operations.is_float && multiplies ? registers / machine.multiply_adds : 0,
          registers / machine.operations};
}

}  // namespace kiln::predict
