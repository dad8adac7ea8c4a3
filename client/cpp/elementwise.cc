// Operators on whole tensors: broadcast to one shape as numpy's, then a stage with one element's
// expression.
//
//   A(m, n) + B(n)  ->  T_add[i, j] = A[i, j] + B[j]
#include <kiln/elementwise.h>

#include "client/cpp/fail.h"
#include "client/cpp/sizes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

Expr applied(std::string_view spelling, const std::vector<Expr>& operands) {
  switch (operands.size()) {
    case 1: return apply(spelling, {operands[0]});
    case 2: return apply(spelling, {operands[0], operands[1]});
    default: return apply(spelling, {operands[0], operands[1], operands[2]});
  }
}

/// The element at an index of the shape that the operand is stretched to.
Expr element_of(const Given& operand, const Shape& shape, const std::vector<Expr>& index) {
  const Shape own = operand.shape();
  const std::size_t missing = shape.size() - own.size();
  std::vector<Expr> indices;
  for (std::size_t d = 0; d < own.size(); ++d) {
    const bool repeated = is_one(own[d]) && !is_one(shape[missing + d]);
    indices.push_back(repeated ? constant(0, int64) : index[missing + d]);
  }
  return operand.at(indices);
}

std::string shapes_of(const std::vector<Given>& operands) {
  std::string text;
  for (const Given& operand : operands) {
    if (operand.is_number()) continue;
    text += fmt::format("{}{} of shape {}", text.empty() ? "" : " and ", operand.tensor().name(),
                        written(operand.shape()));
  }
  return text;
}

}  // namespace

Tensor elementwise(std::string_view spelling, std::vector<Given> operands, SourceLocation where) {
  std::vector<Shape> shapes;
  for (const Given& operand : operands)
    shapes.push_back(operand.shape());
  const std::optional<Shape> shape = stretched(shapes);
  if (!shape) {
    fail_at(where, "BROADCAST", "{} of tensors: {} do not broadcast to one shape", spelling,
            shapes_of(operands));
  }
  const Bodies bodies = [&](const std::vector<Expr>& index) -> std::vector<Expr> {
    std::vector<Expr> elements;
    for (const Given& operand : operands)
      elements.push_back(element_of(operand, *shape, index));
    return {applied(spelling, elements)};
  };
  return compute(*shape, bodies, -1, Names("T_" + std::string(spelling)), where).front();
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
