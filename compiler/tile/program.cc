// What a program on tiles is made of, and how many blocks run it.
#include "compiler/tile/program.h"

#include <set>

#include <fmt/format.h>

#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/short_integers.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using language::Operator;

int64_t Extent::at(std::span<const int64_t> sizes) const {
  if (size < 0) return constant;
  KILN_CHECK(static_cast<size_t>(size) < sizes.size());
  return sizes[static_cast<size_t>(size)];
}

int64_t Parameter::pitch(int64_t row) const {
  return row_multiple == 0 ? row : (row + row_multiple - 1) / row_multiple * row_multiple;
}

int64_t Axis::parts(std::span<const int64_t> sizes) const {
  return (extent.at(sizes) + step - 1) / step;
}

int64_t TileType::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape)
    product *= extent;
  return product;
}

// Written out, since clang 14 does not survive a default one of a type that contains itself.
bool For::operator==(const For& other) const {
  return axes == other.axes && from == other.from && until == other.until &&
         carried == other.carried && body == other.body && yields == other.yields;
}
bool Instruction::operator==(const Instruction& other) const {
  return what == other.what && operands == other.operands && results == other.results;
}

SizeExpr length_in_memory(const Parameter& parameter, size_t dimension) {
  using Op = SizeExpr::Op;
  const Extent& extent = parameter.shape[dimension];
  const bool is_row = dimension + 1 == parameter.shape.size() && parameter.row_multiple > 0;
  if (extent.size < 0) return SizeExpr::constant(is_row ? parameter.row_pitch() : extent.constant);
  SizeExpr length = SizeExpr::scalar(extent.size);
  if (!is_row) return length;
  const SizeExpr multiple = SizeExpr::constant(parameter.row_multiple);
  length = SizeExpr::binary(Op::Add, length, SizeExpr::constant(parameter.row_multiple - 1));
  length = SizeExpr::binary(Op::FloorDiv, length, multiple);
  return SizeExpr::binary(Op::Mul, length, multiple);
}

bool is_factor_float(DType type) {
  return type != DType::Float32 && type != DType::Float64 && is_float(type);
}
bool is_factor_int(DType type) { return ir::is_byte(type); }
DType sum_type_of(DType factor) { return is_float(factor) ? DType::Float32 : DType::Int32; }
bool is_computed(DType type) {
  return type == DType::Float32 || type == DType::Int32 || ir::is_short_float(type);
}
bool is_tile_type(DType type) {
  return is_computed(type) || is_factor_float(type) || is_factor_int(type);
}

bool is_known(Operator function, DType type) {
  switch (function) {
    case Operator::Add:
    case Operator::Sub:
    case Operator::Mul:
    case Operator::Min:
    case Operator::Max:
    case Operator::Negative:
    case Operator::Equal:
    case Operator::NotEqual:
    case Operator::Less:
    case Operator::LessEqual:
    case Operator::Greater:
    case Operator::GreaterEqual:
    case Operator::Select: return is_computed(type);
    case Operator::Div:
    case Operator::Fma:
    case Operator::Exp:
    case Operator::Exp2:
    case Operator::Log:
    case Operator::Sqrt:
    case Operator::Rsqrt:
    case Operator::Tanh: return type == DType::Float32;
    case Operator::And:
    case Operator::Or:
    case Operator::Not: return type == DType::Bool;
    default: return false;
  }
}

bool is_composed(Operator function) {
  return function == Operator::Erf || function == Operator::Sigmoid;
}

namespace {

/// Those of which loops read parts.
std::set<uint32_t> read_in_loops(const Program& program, const std::vector<Instruction>& body,
                                 bool is_loop) {
  std::set<uint32_t> parameters;
  for (const Instruction& each : body) {
    if (const auto* loop = std::get_if<For>(&each.what))
      parameters.merge(read_in_loops(program, loop->body, true));
    if (!is_loop) continue;
    if (const auto* load = std::get_if<Load>(&each.what))
      parameters.insert(program.views[load->view].parameter);
    if (const auto* window = std::get_if<Window>(&each.what)) parameters.insert(window->parameter);
  }
  return parameters;
}

}  // namespace

std::string unaligned_rows(const Program& program) {
  // Threads move other rows element by element: then the loop is slower than that of the CUDA C,
  // and some of them tileiras (13.5) does not finish in half a minute.
  for (const uint32_t number : read_in_loops(program, program.body, false)) {
    const Parameter& parameter = program.parameters[number];
    if (parameter.shape.size() < 2) continue;
    if (parameter.has_open_rows()) {
      if (parameter.row_multiple * size_of(parameter.type) % kRowBytes == 0 &&
          parameter.row_multiple > 0)
        continue;
      return "the call says how long the rows of its factors are";
    }
    if (parameter.row_pitch() * size_of(parameter.type) % kRowBytes != 0)
      return fmt::format("the rows of a factor are no multiples of {} bytes", kRowBytes);
  }
  return "";
}

SizeExpr block_count(const Program& program) {
  using Op = SizeExpr::Op;
  int64_t known = 1;
  SizeExpr open = SizeExpr::constant(1);
  bool is_open = false;
  for (const Axis& axis : program.blocks()) {
    if (axis.extent.size < 0) {
      known *= axis.parts({});
      continue;
    }
    const SizeExpr rounded = SizeExpr::binary(Op::Add, SizeExpr::scalar(axis.extent.size),
                                              SizeExpr::constant(axis.step - 1));
    const SizeExpr parts = SizeExpr::binary(Op::FloorDiv, rounded, SizeExpr::constant(axis.step));
    open = is_open ? SizeExpr::binary(Op::Mul, open, parts) : parts;
    is_open = true;
  }
  const SizeExpr constant = SizeExpr::constant(known);
  if (!is_open) return constant;
  return known == 1 ? open : SizeExpr::binary(Op::Mul, open, constant);
}

}  // namespace kiln::tile
