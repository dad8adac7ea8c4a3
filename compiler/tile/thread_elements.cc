// What a thread knows of tiles: a value that is read once is an expression where it is read.
#include "compiler/tile/thread_elements.h"

#include "compiler/ir/build.h"
#include "compiler/ir/flushed_power.h"
#include "compiler/tile/form_error.h"

namespace kiln::tile {

using ir::Expr;
using ir::index;

namespace {

/// Of an element in loops: what is made of places are indices.
DType element_type(DType type) { return type == DType::Int32 ? DType::Int64 : type; }

[[noreturn]] void refuse_reshape() {
  refuse_form("threads have rows and columns of a tile, which is made of other dimensions");
}

}  // namespace

bool ThreadElements::is_kept(ValueId value) const {
  const DType type = type_of(value).element;
  if (type == DType::Bool || type == DType::Int32) return false;
  return uses_.count_of(value) > 1 || uses_.is_broadcast(value);
}

Expr ThreadElements::operator()(ValueId value, const Indices& at) const {
  const auto kept = registers_.find(value);
  if (kept != registers_.end()) return ir::Load::make(kept->second, own_place(at));
  const Instruction& maker = uses_.maker_of(value);
  return std::visit(
      [&](const auto& what) -> Expr {
        if constexpr (requires { element(what, maker, value, at); })
          return element(what, maker, value, at);
        else
          refuse_form("threads read a tile that none of them has");
      },
      maker.what);
}

Expr ThreadElements::element(const Constant& constant, const Instruction&, ValueId value,
                             const Indices&) const {
  const DType type = type_of(value).element;
  if (type == DType::Int32) return index(static_cast<int64_t>(constant.number));
  return ir::constant({type, 1}, constant.number);
}

Expr ThreadElements::element(const SizeOf& size, const Instruction&, ValueId,
                             const Indices&) const {
  return places_.sizes()[size.size];
}

Expr ThreadElements::element(const Places& places, const Instruction&, ValueId,
                             const Indices& at) const {
  Expr place = places_.first_of(places.axis);
  for (const Along& along : at)
    place = place + along.place;
  return place;
}

Expr ThreadElements::element(const Load& load, const Instruction&, ValueId value,
                             const Indices& at) const {
  std::vector<Expr> place;
  for (const Along& along : at)
    place.push_back(along.place);
  const View& view = program_.views[load.view];
  const Expr loaded = ir::Load::make(places_.tensor_of(view), places_.inside(view, load.at, place));
  const DType type = element_type(type_of(value).element);
  return loaded->type.element == type ? loaded : ir::Cast::make({type, 1}, loaded);
}

Expr ThreadElements::element(const Apply& apply, const Instruction& each, ValueId,
                             const Indices& at) const {
  std::vector<Expr> operands;
  for (const ValueId operand : each.operands)
    operands.push_back((*this)(operand, at));
  if (apply.function == language::Operator::Exp2) return ir::flushed_power(operands[0]);
  return ir::operation(apply.function, std::move(operands));
}

Expr ThreadElements::element(const Cast&, const Instruction& each, ValueId value,
                             const Indices& at) const {
  const DType type = element_type(type_of(value).element);
  const Expr operand = (*this)(each.operands[0], at);
  return operand->type.element == type ? operand : ir::Cast::make({type, 1}, operand);
}

/// Dimensions of one element come and go.
Expr ThreadElements::element(const Reshape&, const Instruction& each, ValueId value,
                             const Indices& at) const {
  std::vector<Along> longer;
  for (size_t d = 0; d < at.size(); ++d)
    if (type_of(value).shape[d] > 1) longer.push_back(at[d]);
  Indices inner;
  size_t next = 0;
  for (const int64_t extent : type_of(each.operands[0]).shape) {
    const bool is_long = extent > 1;
    if (is_long && next == longer.size()) refuse_reshape();
    inner.push_back(is_long ? longer[next++] : alone_along());
  }
  if (next != longer.size()) refuse_reshape();
  return (*this)(each.operands[0], inner);
}

Expr ThreadElements::element(const Broadcast&, const Instruction& each, ValueId,
                             const Indices& at) const {
  Indices inner = at;
  const std::vector<int64_t>& shape = type_of(each.operands[0]).shape;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == 1) inner[d] = alone_along();
  return (*this)(each.operands[0], inner);
}

}  // namespace kiln::tile
