// Draws divisions and operators on bits, whose corner cases (zero, negative, the smallest number)
// the operator table defines.
#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

/// The source with another tensor, or a number that is not zero.
struct Operands {
  std::vector<std::string> axes;
  Term a;
  Term b;
};

Operands operands_of(KernelWriter& writer, const DrawnTensor& source) {
  const std::vector<std::string> axes = KernelWriter::axes_of(source.rank());
  const Term b = writer.random.chance(0.5)
                     ? writer.read_over(axes, source.shape, source.type())
                     : literal_of(source.type(), writer.random.pick(std::vector<int>{-3, 2, 5}));
  return {axes, KernelWriter::read(source, axes), b};
}

}  // namespace

bool add_division(KernelWriter& writer, const DrawnTensor& source) {
  if (!is_int(source.type())) return false;
  const Operands of = operands_of(writer, source);
  const char* name =
      writer.random.pick(std::vector<const char*>{"floordiv", "floormod", "truncdiv", "truncmod"});
  writer.add_compute(source.shape, of.axes,
                     computed(fmt::format("{}({}, {})", name, of.a.text, of.b.text), source.type(),
                              exact_limit(source.type())));
  return true;
}

bool add_bits(KernelWriter& writer, const DrawnTensor& source) {
  if (!is_int(source.type())) return false;
  const Operands of = operands_of(writer, source);
  const char* sign = writer.random.pick(std::vector<const char*>{"&", "|", "^", "<<", ">>"});
  std::string text = fmt::format("({} {} {})", of.a.text, sign, of.b.text);
  if (writer.random.chance(0.3)) {
    text = fmt::format("{}({})",
                       writer.random.pick(std::vector<const char*>{"popcount", "clz", "~", "abs"}),
                       text);
  }
  writer.add_compute(source.shape, of.axes,
                     computed(text, source.type(), exact_limit(source.type())));
  return true;
}

}  // namespace kiln::testing
