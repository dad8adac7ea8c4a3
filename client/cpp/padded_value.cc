// Finds what the service's step makes a stage of (compiler/schedule/steps/padded_read.h), as far as
// its type goes.
//
//   sum[k](float32(float16(A[i, k] * 2.0)) * B[k, j])  with A of float32  ->  float16
#include "client/cpp/padded_value.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/cpp/expr_operands.h"
#include "client/cpp/language_border.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

bool is_read_of(const Expr& expr, const Tensor& tensor) {
  const auto* read = std::get_if<ReadValue>(&expr.node()->value);
  return read != nullptr && is_same(read->tensor, tensor);
}

bool is_wider(DType narrow, DType wide) {
  const int from = static_cast<int>(narrow);
  const int to = static_cast<int>(wide);
  return narrow != boolean && border::is_float(from) == border::is_float(to) &&
         border::dtype_size(to) > border::dtype_size(from);
}

/// Without casts that keep each value, and without the choice of a float32's bits.
Expr without_widening(Expr expr) {
  while (true) {
    const auto* cast = std::get_if<CastValue>(&expr.node()->value);
    const auto* operation = std::get_if<OperationValue>(&expr.node()->value);
    const bool is_bits = operation != nullptr && operation->spelling == "tf32";
    if (!is_bits && (cast == nullptr || !is_wider(cast->operand.dtype(), expr.dtype())))
      return expr;
    expr = is_bits ? Expr(operation->operands[0]) : Expr(cast->operand);
  }
}

/// What is found of a tensor in the expressions of a stage; no two of them alike.
class PaddedValue {
 public:
  explicit PaddedValue(const Tensor& tensor) : tensor_(tensor) {}

  void look_for_reads(const Expr& expr) {
    if (!asked_for_reads_.insert(expr.node().get()).second) return;
    if (is_choice(expr)) add(expr, choices);
    if (is_read_of(expr, tensor_)) add(expr, reads);
    for (const Expr& part : operands_of(expr))
      look_for_reads(part);
  }

  /// The most that is computed of the one element that is read.
  void look_for_values(const Expr& expr) {
    if (!asked_for_values_.insert(expr.node().get()).second || !has_read_of_tensor(expr)) return;
    if (is_of_element(expr)) return add(without_widening(expr), values);
    for (const Expr& part : operands_of(expr))
      look_for_values(part);
  }

  std::vector<Expr> choices;
  std::vector<Expr> reads;
  std::vector<Expr> values;

 private:
  static void add(const Expr& expr, std::vector<Expr>& found) {
    const auto is_there = [&](const Expr& other) { return are_alike(expr, other); };
    if (std::ranges::none_of(found, is_there)) found.push_back(expr);
  }

  bool is_choice(const Expr& expr) const {
    const auto* operation = std::get_if<OperationValue>(&expr.node()->value);
    if (operation == nullptr) return false;
    if (operation->spelling != "if_then_else" && operation->spelling != "select") return false;
    return is_element(operation->operands[1]) || is_element(operation->operands[2]);
  }
  bool is_element(Expr branch) const {
    while (const auto* cast = std::get_if<CastValue>(&branch.node()->value))
      branch = Expr(cast->operand);
    return is_read_of(branch, tensor_);
  }

  bool has_read_of_tensor(const Expr& expr) {
    const auto [known, is_new] = has_read_.try_emplace(expr.node().get(), false);
    if (!is_new) return known->second;
    const bool has =
        is_read_of(expr, tensor_) || std::ranges::any_of(operands_of(expr), [&](const Expr& part) {
          return has_read_of_tensor(part);
        });
    return has_read_[expr.node().get()] = has;
  }
  static bool has_read(const Expr& index) {
    return std::holds_alternative<ReadValue>(index.node()->value) ||
           std::ranges::any_of(operands_of(index), has_read);
  }

  /// Whether it depends on the element alone, and on its place where its indices say that.
  bool is_of_element(const Expr& expr) {
    const auto [known, is_new] = is_of_element_.try_emplace(expr.node().get(), false);
    if (!is_new) return known->second;
    return is_of_element_[expr.node().get()] = is_made_of_element(expr);
  }
  bool is_made_of_element(const Expr& expr) {
    if (is_read_of(expr, tensor_)) return true;
    const auto& value = expr.node()->value;
    if (std::holds_alternative<ReductionValue>(value)) return false;
    if (std::holds_alternative<AxisValue>(value)) {
      return std::ranges::any_of(operands_of(reads[0]),
                                 [&](const Expr& index) { return are_alike(index, expr); });
    }
    const std::vector<Expr> parts = operands_of(expr);
    if (std::holds_alternative<ReadValue>(value) && std::ranges::any_of(parts, has_read))
      return false;
    return std::ranges::all_of(parts, [&](const Expr& part) { return is_of_element(part); });
  }

  const Tensor& tensor_;
  // Of nodes, each of which may be a part of several others.
  std::unordered_set<const ExprNode*> asked_for_reads_;
  std::unordered_set<const ExprNode*> asked_for_values_;
  std::unordered_map<const ExprNode*, bool> has_read_;
  std::unordered_map<const ExprNode*, bool> is_of_element_;
};

}  // namespace

std::optional<DType> type_of_padded(const StageNode& reader, const Tensor& tensor) {
  const auto* compute = std::get_if<ComputeStage>(&reader.value);
  if (compute == nullptr) return std::nullopt;
  PaddedValue found(tensor);
  for (const Expr& body : compute->bodies)
    found.look_for_reads(body);
  if (!found.choices.empty()) return found.choices[0].dtype();
  if (found.reads.size() != 1) return std::nullopt;
  for (const Expr& body : compute->bodies)
    found.look_for_values(body);
  if (found.values.size() != 1) return std::nullopt;
  return found.values[0].dtype();
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
