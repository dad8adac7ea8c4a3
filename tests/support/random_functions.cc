// Draws mathematical functions, with how much each lets an error grow, so that results have bounds.
// Operands are kept where the function is tame, as exp below 2.
#include <algorithm>

#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

struct Function {
  std::string_view format;
  double largest;  // result; 0: no larger than the operand or 1
  double slope;    // how much an error of the operand grows
};

constexpr Function kFunctions[] = {
    {"tanh({})", 1, 1},
    {"sin({})", 1, 1},
    {"cos({})", 1, 1},
    {"atan({})", 1.6, 1},
    {"sigmoid({})", 1, 1},
    {"erf({})", 1, 1.2},
    {"exp(min({}, 2.0))", 7.4, 7.4},
    {"log(max({}, 1.0))", 0, 1},
    {"sqrt(max({}, 1.0))", 0, 1},
    {"rsqrt(max({}, 1.0))", 1, 1},
};

}  // namespace

bool add_function(KernelWriter& writer, const DrawnTensor& source) {
  if (source.values.whole) return false;
  const Function& function = kFunctions[writer.random.below(std::size(kFunctions))];
  const std::vector<std::string> axes = KernelWriter::axes_of(source.rank());
  const Term operand = KernelWriter::read(source, axes);
  Values values = operand.values;
  values.bound = function.largest > 0 ? function.largest : std::max(1.0, operand.bound());
  // Twice the accuracy that the operator table states for any of these.
  values.error =
      function.slope * operand.values.error + 16 * values.bound / exact_limit(source.type());
  writer.add_compute(source.shape, axes,
                     {fmt::format(fmt::runtime(function.format), operand.text), values});
  return true;
}

}  // namespace kiln::testing
