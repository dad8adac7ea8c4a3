// Compares sizes as sums of terms over the program's size variables, so that n + 1 - 1 is n. What
// cannot be compared counts as different.
#include "client/cpp/sizes.h"

#include <algorithm>
#include <map>

#include "client/cpp/fail.h"
#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// A sum of parts, each with a factor. The constant has the empty key.
using Linear = std::map<std::string, std::int64_t>;

/// The same text for the same computation of the same sizes.
std::string key_of(const Expr& size) {
  if (const auto value = as_integer(size)) return std::to_string(*value);
  if (const auto* operation = std::get_if<OperationValue>(&size.node()->value)) {
    std::string key = fmt::format("{}(", operation->spelling);
    for (const Expr& operand : operation->operands)
      key += key_of(operand) + ",";
    return key + ")";
  }
  // A size variable is known by its node: two of one name are two.
  return fmt::format("{}", static_cast<const void*>(size.node().get()));
}

Linear scaled(Linear parts, std::int64_t factor) {
  for (auto& [part, own] : parts)
    own *= factor;
  std::erase_if(parts, [](const auto& entry) { return entry.second == 0; });
  return parts;
}

Linear sum(Linear a, const Linear& b) {
  for (const auto& [part, factor] : b)
    a[part] += factor;
  return scaled(std::move(a), 1);
}

std::optional<std::int64_t> constant_of(const Linear& parts) {
  if (parts.empty()) return 0;
  if (parts.size() == 1 && parts.begin()->first.empty()) return parts.begin()->second;
  return std::nullopt;
}

Linear linear(const Expr& size) {
  if (const auto value = as_integer(size)) return scaled({{"", *value}}, 1);
  if (const auto* operation = std::get_if<OperationValue>(&size.node()->value)) {
    const bool adds = operation->spelling == "add";
    if (adds || operation->spelling == "subtract") {
      return sum(linear(operation->operands[0]),
                 scaled(linear(operation->operands[1]), adds ? 1 : -1));
    }
    if (operation->spelling == "multiply") {
      const Linear a = linear(operation->operands[0]);
      const Linear b = linear(operation->operands[1]);
      if (const auto factor = constant_of(a)) return scaled(b, *factor);
      if (const auto factor = constant_of(b)) return scaled(a, *factor);
    }
  }
  return {{key_of(size), 1}};
}

bool changes_nothing(std::string_view spelling, std::int64_t right) {
  if (right == 0) return spelling == "add" || spelling == "subtract";
  return right == 1 && (spelling == "multiply" || spelling == "floordiv" || spelling == "truncdiv");
}

/// What the operation is when one of its sides is a constant that decides it.
std::optional<Expr> decided(std::string_view spelling, const Expr& a, const Expr& b) {
  const auto left = as_integer(a);
  const auto right = as_integer(b);
  if (right && !left) {
    if (changes_nothing(spelling, *right)) return a;
    const bool is_zero =
        (spelling == "multiply" && *right == 0) || (spelling == "floormod" && *right == 1);
    if (is_zero) return constant(0, int64);
  }
  if (left && !right) {
    if ((*left == 0 && spelling == "add") || (*left == 1 && spelling == "multiply")) return b;
    if (*left == 0 && spelling == "multiply") return constant(0, int64);
  }
  return std::nullopt;
}

constexpr std::pair<std::string_view, std::string_view> kInfixes[] = {
    {"add", "+"}, {"subtract", "-"}, {"multiply", "*"}};

}  // namespace

std::optional<std::int64_t> difference(const Expr& a, const Expr& b) {
  return constant_of(sum(linear(a), scaled(linear(b), -1)));
}

bool is_one(const Expr& size) { return as_integer(size) == 1; }

Expr folded(std::string_view spelling, std::span<const Expr> operands) {
  if (operands.size() == 2 && operands[0].dtype() == int64 && operands[1].dtype() == int64) {
    if (const auto known = decided(spelling, operands[0], operands[1])) return *known;
  }
  switch (operands.size()) {
    case 1: return apply(spelling, {operands[0]});
    case 2: return apply(spelling, {operands[0], operands[1]});
    default: return apply(spelling, {operands[0], operands[1], operands[2]});
  }
}

std::string written(const Expr& size) {
  if (const auto value = as_integer(size)) return std::to_string(*value);
  if (const auto* variable = std::get_if<VariableValue>(&size.node()->value)) return variable->name;
  const auto* operation = std::get_if<OperationValue>(&size.node()->value);
  if (operation == nullptr) return "a size";
  for (const auto& [spelling, sign] : kInfixes) {
    if (operation->spelling != spelling) continue;
    return fmt::format("{} {} {}", written(operation->operands[0]), sign,
                       written(operation->operands[1]));
  }
  std::string text = fmt::format("{}(", operation->spelling);
  for (std::size_t i = 0; i < operation->operands.size(); ++i)
    text += (i == 0 ? "" : ", ") + written(operation->operands[i]);
  return text + ")";
}

std::string written(const Shape& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d == 0 ? "" : ", ") + written(shape[d]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::optional<Shape> stretched(std::span<const Shape> shapes) {
  std::size_t rank = 0;
  for (const Shape& shape : shapes)
    rank = std::max(rank, shape.size());
  Shape result(rank, constant(1, int64));
  for (const Shape& shape : shapes) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      Expr& wide = result[rank - shape.size() + d];
      if (is_one(shape[d]) || is_same_size(wide, shape[d])) continue;
      if (!is_one(wide)) return std::nullopt;
      wide = shape[d];
    }
  }
  return result;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
