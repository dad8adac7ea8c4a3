// How long vector operations keep a core busy: one instruction a register for most, more for those
// that are written out as polynomials, and a call of a C function for each lane of the others.
//
//   exp of 32 lanes of float32, registers of 16   ->   2 * 17.5 instructions, 2 * 10 multiply-adds
//
// Counted in the code that Kiln generates for a Zen 4, two registers an iteration, without what
// loads and stores elements; divisions and roots are the reciprocal throughput of LLVM 19's model
// of it. Code for AVX2 has a tenth to a third more.
#include "compiler/autoschedule/recognise/instructions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

namespace kiln::autoschedule {
namespace {

using language::Operator;

/// Instructions on one register, and how many of them multiply or add.
struct Counts {
  double all = 0;
  double multiply_adds = 0;
};

/// A function that is written out for vectors: of float32 and, unless that is called, of float64.
struct Row {
  Operator op;
  Counts narrow;
  std::optional<Counts> wide;
};
constexpr Row kFunctions[] = {
    {Operator::Exp, {17.5, 10}, {{26.5, 15}}},
    {Operator::Exp2, {18.5, 10}, {{26, 15}}},
    {Operator::Expm1, {27.5, 14}, {{35, 19}}},
    {Operator::Log, {39.5, 17}, {{42, 18}}},
    {Operator::Log2, {42, 20}, {{45, 21}}},
    {Operator::Log10, {44, 21}, {{47, 22}}},
    {Operator::Log1p, {48.5, 23}, {{51, 24}}},
    {Operator::Cbrt, {44.5, 26}, {}},
    {Operator::Pow, {105.5, 40}, {}},
    {Operator::Sin, {34, 16}, {{41.5, 21}}},
    {Operator::Cos, {34, 16}, {{41.5, 21}}},
    {Operator::Tan, {29.5, 14}, {{41.5, 22}}},
    {Operator::Asin, {21, 11}, {{31.5, 18}}},
    {Operator::Acos, {26, 14}, {{36.5, 21}}},
    {Operator::Atan, {25.5, 14}, {{42, 25}}},
    {Operator::Atan2, {37.5, 17}, {{54, 28}}},
    {Operator::Sinh, {35.5, 19}, {{47.5, 27}}},
    {Operator::Cosh, {25, 13}, {{32.5, 18}}},
    {Operator::Tanh, {37.5, 20}, {{55.5, 32}}},
    {Operator::Asinh, {59.5, 28}, {{62, 29}}},
    {Operator::Acosh, {58, 28}, {{60.5, 29}}},
    {Operator::Atanh, {56, 26}, {{58.5, 27}}},
    {Operator::Erf, {47, 26}, {{80, 47}}},
    {Operator::Rsqrt, {32, 0}, {{56, 0}}},  // a root, and a division
    {Operator::Sigmoid, {23.5, 11}, {{32.5, 16}}},
};

// Cycles of a register of 64 bytes; a shorter one takes as much less.
constexpr double kDivision32 = 6;
constexpr double kDivision64 = 10;
constexpr double kRoot32 = 10;
constexpr double kRoot64 = 18;
// Cycles of a call of a C function, for one lane, and of an integer division.
constexpr double kCall = 35;
constexpr double kIntegerDivision = 12;

bool divides(Operator op) { return op == Operator::Div || divides_whole(op); }

}  // namespace

// Of what the code for sm_80 and sm_90 has those that a value goes through that is no special case.
double thread_instructions(Operator op) {
  constexpr double kFunction = 8;
  switch (op) {
    case Operator::Div:
    case Operator::Sqrt:
    case Operator::Rsqrt: return 9;
    case Operator::Tanh: return 16;
    case Operator::Sigmoid: return 20;
    case Operator::Erf:
    case Operator::Log:
    case Operator::Log2:
    case Operator::Log10:
    case Operator::Log1p: return 24;
    case Operator::Sin:
    case Operator::Cos:
    case Operator::Tan: return 28;
    case Operator::Pow: return 50;
    case Operator::Fma: return 1;
    default: return op >= Operator::Exp && op <= Operator::Hypot ? kFunction : 1;
  }
}

// FADD, FMUL and FFMA in the same code.
double thread_multiply_adds(Operator op) {
  constexpr double kFunction = 6;
  switch (op) {
    case Operator::Add:
    case Operator::Sub:
    case Operator::Mul:
    case Operator::Fma: return 1;
    case Operator::Div:
    case Operator::Sqrt:
    case Operator::Rsqrt: return 5;
    case Operator::Tanh:
    case Operator::Erf: return 9;
    case Operator::Sigmoid: return 11;
    case Operator::Sin:
    case Operator::Cos:
    case Operator::Tan: return 12;
    case Operator::Log:
    case Operator::Log2:
    case Operator::Log10:
    case Operator::Log1p: return 15;
    case Operator::Pow: return 25;
    default: return op >= Operator::Exp && op <= Operator::Hypot ? kFunction : 0;
  }
}

bool divides_whole(Operator op) {
  return op == Operator::FloorDiv || op == Operator::FloorMod || op == Operator::TruncDiv ||
         op == Operator::TruncMod;
}

Busy busy_cycles(const Operations& operations, const Machine& machine) {
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
  if (language::is_function(op) && op != Operator::Sqrt) {
    const auto* const row = std::ranges::find(kFunctions, op, &Row::op);
    if (row == std::end(kFunctions) || (is_wide && !row->wide))
      return {0, operations.count * lanes * kCall};
    const Counts& counts = is_wide ? *row->wide : row->narrow;
    return {registers * counts.multiply_adds / machine.multiply_adds,
            registers * counts.all / machine.operations,
            operations.count * counts.multiply_adds * machine.latency};
  }
  const bool multiplies =
      op == Operator::Mul || op == Operator::Add || op == Operator::Sub || op == Operator::Fma;
  return {operations.is_float && multiplies ? registers / machine.multiply_adds : 0,
          registers / machine.operations};
}

}  // namespace kiln::autoschedule
