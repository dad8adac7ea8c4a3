// Looks at the sum of an output for weights that are a softmax of products.
#include "compiler/tile/find_attention.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/gpu_arch.h"
#include "compiler/tile/find_product.h"

namespace kiln::tile {

using namespace language;

namespace {

constexpr int kMostCompared = 10'000;  // expressions

/// Of these, queries, keys and weights are multiplied.
bool is_attended(DType type) { return ir::is_short_float(type) || type == DType::Float32; }

bool is_plain(const Reduction& reduction, Combiner combiner) {
  return reduction.combiner == combiner && reduction.sources.size() == 1 &&
         reduction.axes.size() == 1 && !reduction.condition && reduction.init.empty();
}

/// -inf, also as the negative of inf.
bool is_least(const Definition& definition, ExprId expr) {
  const auto& node = definition.expressions[expr].node;
  if (const auto* number = std::get_if<FloatConstant>(&node))
    return std::isinf(number->value) && number->value < 0;
  const auto* operation = std::get_if<Operation>(&node);
  if (operation == nullptr || operation->op != Operator::Negative) return false;
  const auto* number =
      std::get_if<FloatConstant>(&definition.expressions[operation->operands[0]].node);
  return number != nullptr && std::isinf(number->value) && number->value > 0;
}

}  // namespace

Attention AttentionFinder::find() {
  attention_.output = find_output();
  attention_.axes = compute_of(attention_.output).axes;
  look_at(compute_of(attention_.output).bodies[0], same_names(attention_.axes));
  if (!has_weights_) refuse_form("it has no sum of weights");
  set_scores();
  set_axes();
  set_seen();
  return std::move(attention_);
}

void AttentionFinder::look_at_reduction(const Reduction& sum, DType type, const Renamed& outer) {
  if (has_sum_) refuse_form("it has several sums");
  has_sum_ = true;
  if (!is_plain(sum, Combiner::Sum) || type != DType::Float32)
    refuse_form("it has no sum of weights");
  attention_.key = sum.axes[0];
  Renamed renamed = outer;
  renamed[attention_.key] = attention_.key;
  const auto* product = std::get_if<Operation>(&definition_.expressions[sum.sources[0]].node);
  if (product == nullptr || product->op != Operator::Mul) refuse_form("it has no sum of weights");
  for (const size_t side : {0, 1}) {
    if (!is_weight({product->operands[side], renamed})) continue;
    has_weights_ = true;
    attention_.has_stage_of_weights = is_stage(product->operands[side]);
    if (!is_attended(weight_))
      refuse_form("its weights are multiplied as {}, and not as a float of 16 or 32 bits", weight_);
    attention_.values = factor_of(product->operands[1 - side], renamed);
    if (attention_.values.computed) refuse_form("it has no sum of weights");
    const DType values = definition_.type_of(attention_.values.tensor);
    if (values != weight_) refuse_form("its weights are {} and its values {}", weight_, values);
    if (attention_.values.in_tf32) refuse_form("its values are tf32(), its weights are not");
    return;
  }
  refuse_form("it has no sum of weights");
}

/// What an element of stages in between is.
Place AttentionFinder::followed(Place place) const {
  while (const auto* read = std::get_if<Read>(&definition_.expressions[place.expr].node)) {
    if (is_placeholder(read->tensor)) return place;
    const Element element = element_of(*read, place.renamed);
    place = {compute_of(read->tensor.stage).bodies[0], renamed_of(element)};
  }
  return place;
}

/// exp(S - top) / total, as a float32 that may have been rounded to a shorter type once.
bool AttentionFinder::is_weight(Place place) {
  weight_ = DType::Float32;
  place = followed(std::move(place));
  while (const auto* cast = std::get_if<CastTo>(&definition_.expressions[place.expr].node)) {
    const DType type = definition_.expressions[place.expr].type;
    if (type != DType::Float32 && weight_ != DType::Float32 && type != weight_) return false;
    if (type != DType::Float32) weight_ = type;
    place = followed({cast->operand, place.renamed});
  }
  const auto operation_of = [&](const Place& at, Operator op) -> const Operation* {
    const Expression& expression = definition_.expressions[at.expr];
    const auto* operation = std::get_if<Operation>(&expression.node);
    const bool is_one =
        operation != nullptr && operation->op == op && expression.type == DType::Float32;
    return is_one ? operation : nullptr;
  };
  const Operation* quotient = operation_of(place, Operator::Div);
  if (quotient == nullptr) return false;
  const Place total = followed({quotient->operands[1], place.renamed});
  const Place power = followed({quotient->operands[0], place.renamed});
  const Operation* exp = operation_of(power, Operator::Exp);
  if (exp == nullptr || !is_over_keys(total, Combiner::Sum, power)) return false;
  const Place difference = followed({exp->operands[0], power.renamed});
  const Operation* minus = operation_of(difference, Operator::Sub);
  if (minus == nullptr) return false;
  const Place top = followed({minus->operands[1], difference.renamed});
  attention_.scores = followed({minus->operands[0], difference.renamed});
  return is_over_keys(top, Combiner::Max, attention_.scores);
}

/// Whether a factor is an element of a stage that has the type of the weights.
bool AttentionFinder::is_stage(ExprId factor) const {
  const Expression* expression = &definition_.expressions[factor];
  if (const auto* cast = std::get_if<CastTo>(&expression->node))
    expression = &definition_.expressions[cast->operand];
  const auto* read = std::get_if<Read>(&expression->node);
  return read != nullptr && definition_.type_of(read->tensor) == weight_;
}

/// Whether it reduces `source` over the keys.
bool AttentionFinder::is_over_keys(const Place& reduction, Combiner combiner, const Place& source) {
  const auto* reduced = std::get_if<Reduction>(&definition_.expressions[reduction.expr].node);
  if (reduced == nullptr || !is_plain(*reduced, combiner)) return false;
  const auto extent = [&](language::AxisId axis) {
    return extent_of(definition_.axes[axis].extent);
  };
  if (extent(reduced->axes[0]) != extent(attention_.key)) return false;
  Renamed renamed = reduction.renamed;
  renamed[reduced->axes[0]] = attention_.key;
  return are_same({reduced->sources[0], renamed}, source);
}

/// Whether they are the same for all places.
bool AttentionFinder::are_same(Place a, Place b) {
  if (++compared_ > kMostCompared) return false;
  a = followed(std::move(a));
  b = followed(std::move(b));
  const Expression& first = definition_.expressions[a.expr];
  const Expression& second = definition_.expressions[b.expr];
  if (first.type != second.type || first.node.index() != second.node.index()) return false;
  if (const auto* constant = std::get_if<IntegerConstant>(&first.node))
    return *constant == std::get<IntegerConstant>(second.node);
  if (const auto* constant = std::get_if<FloatConstant>(&first.node))
    return constant->value == std::get<FloatConstant>(second.node).value;
  if (const auto* use = std::get_if<VariableUse>(&first.node))
    return use->variable == std::get<VariableUse>(second.node).variable;
  if (const auto* use = std::get_if<AxisUse>(&first.node))
    return a.renamed.at(use->axis) == b.renamed.at(std::get<AxisUse>(second.node).axis);
  if (const auto* cast = std::get_if<CastTo>(&first.node)) {
    return are_same({cast->operand, a.renamed}, {std::get<CastTo>(second.node).operand, b.renamed});
  }
  if (const auto* operation = std::get_if<Operation>(&first.node)) {
    const auto& other = std::get<Operation>(second.node);
    if (operation->op != other.op) return false;
    for (size_t i = 0; i < operation->operands.size(); ++i) {
      if (!are_same({operation->operands[i], a.renamed}, {other.operands[i], b.renamed}))
        return false;
    }
    return true;
  }
  if (const auto* read = std::get_if<Read>(&first.node)) {
    const auto& other = std::get<Read>(second.node);
    return read->tensor == other.tensor &&
           element_of(*read, a.renamed).axes == element_of(other, b.renamed).axes;
  }
  // Of one reduction, as it stands in one stage.
  return a.expr == b.expr && a.renamed == b.renamed;
}

void AttentionFinder::set_scores() {
  ProductFinder finder(definition_);
  Product product = finder.find_factors(attention_.scores.expr, attention_.scores.renamed);
  if (product.rows.computed || product.columns.computed) refuse_form("{}", kNoProduct);
  const DType queries = definition_.type_of(product.rows.tensor);
  if (!is_attended(queries))
    refuse_form("its queries are {}, and no float of 16 or 32 bits", queries);
  if (product.rows.in_tf32) refuse_form("its scores are products of tf32()");
  if (product.sums.size() != 1) refuse_form("its scores are sums over several axes");
  attention_.depth = product.sums[0];
  if (product.rows.has(attention_.key)) std::swap(product.rows, product.columns);
  attention_.query = std::move(product.rows);
  attention_.keys = std::move(product.columns);
  for (const Element* each : {&attention_.query, &attention_.keys, &attention_.values})
    if (each->window) refuse_form("it reads a window of a tensor");
  const bool are_apart =
      attention_.keys.has(attention_.key) && !attention_.query.has(attention_.key) &&
      attention_.query.has(attention_.depth) && attention_.keys.has(attention_.depth) &&
      attention_.values.has(attention_.key);
  if (!are_apart) refuse_form("its scores are no products of a query and a key");
}

/// `select(j <= i + 7, S, -inf)`, and its like.
void AttentionFinder::set_seen() {
  const Place& scores = attention_.scores;
  const auto* choice = std::get_if<Operation>(&definition_.expressions[scores.expr].node);
  if (choice == nullptr || tile_function(choice->op) != Operator::Select ||
      !is_least(definition_, choice->operands[2]))
    return;
  const auto* condition =
      std::get_if<Operation>(&definition_.expressions[choice->operands[0]].node);
  if (condition == nullptr) return;
  const bool is_turned =
      condition->op == Operator::Greater || condition->op == Operator::GreaterEqual;
  const bool is_less = condition->op == Operator::Less || condition->op == Operator::LessEqual;
  if (!is_turned && !is_less) return;
  const ExprId key = condition->operands[is_turned ? 1 : 0];
  const ExprId end = condition->operands[is_turned ? 0 : 1];
  const auto* use = std::get_if<AxisUse>(&definition_.expressions[key].node);
  const bool is_of_key = use != nullptr && scores.renamed.at(use->axis) == attention_.key;
  const std::optional<int64_t> growth = is_of_key ? growth_of({end, scores.renamed}) : std::nullopt;
  if (!growth) return;
  const bool includes_end =
      condition->op == Operator::LessEqual || condition->op == Operator::GreaterEqual;
  attention_.seen = SeenKeys{choice->operands[1], {end, scores.renamed}, *growth, includes_end};
}

/// By how much it grows from one query to the next; nothing where it is made of more than that, or
/// of the place of a key.
std::optional<int64_t> AttentionFinder::growth_of(const Place& end) const {
  const auto& node = definition_.expressions[end.expr].node;
  if (std::holds_alternative<IntegerConstant>(node) || std::holds_alternative<VariableUse>(node))
    return 0;
  if (const auto* use = std::get_if<AxisUse>(&node)) {
    const language::AxisId axis = end.renamed.at(use->axis);
    if (axis == attention_.key) return std::nullopt;
    return axis == attention_.row ? 1 : 0;
  }
  const auto* operation = std::get_if<Operation>(&node);
  if (operation == nullptr) return std::nullopt;
  std::vector<int64_t> growths;
  for (const ExprId operand : operation->operands) {
    const std::optional<int64_t> growth = growth_of({operand, end.renamed});
    if (!growth) return std::nullopt;
    growths.push_back(*growth);
  }
  const bool is_fixed = std::ranges::count(growths, 0) == std::ssize(growths);
  switch (operation->op) {
    case Operator::Add: return growths[0] + growths[1];
    case Operator::Sub: return growths[0] - growths[1];
    case Operator::Negative: return -growths[0];
    case Operator::Mul: return is_fixed ? std::optional<int64_t>(0) : std::nullopt;
    default: return std::nullopt;
  }
}

void AttentionFinder::set_axes() {
  std::optional<language::AxisId> row;
  std::optional<language::AxisId> column;
  for (const language::AxisId axis : attention_.axes) {
    const bool is_of_keys = attention_.keys.has(axis);
    const bool is_of_values = attention_.values.has(axis);
    if (attention_.query.has(axis)) {
      if (!is_of_keys && !is_of_values) row = axis;
    } else if (is_of_values && !is_of_keys) {
      if (column) refuse_form("its values have several axes of their own");
      column = axis;
    } else if (!is_of_keys) {
      refuse_form("an axis of its output is one of neither queries, keys nor values");
    }
  }
  if (!row || !column) refuse_form("its queries or its values have no axis of their own");
  attention_.row = *row;
  attention_.column = *column;
}

}  // namespace kiln::tile
