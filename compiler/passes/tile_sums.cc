// Which loops add up products of tiles as matrix instructions may: as many steps as one has, sums
// in registers, factors in shared memory, and nothing else beside the guard that ends the sum.
#include "compiler/passes/tile_sums.h"

#include <optional>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

const Binary* as_binary(const Expr& expr, Operator op) {
  const Binary* node = as<Binary>(expr);
  return node != nullptr && node->op == op ? node : nullptr;
}

/// The element of shared memory that a factor is, whatever its type becomes.
const Load* shared_element(const Expr& factor) {
  Expr inner = factor;
  if (const Call* call = as<Call>(inner); call && call->op == Operator::Tf32) inner = call->args[0];
  if (const Cast* cast = as<Cast>(inner)) inner = cast->value;
  const Load* load = as<Load>(inner);
  const bool serves = load != nullptr && !load->predicate && load->buffer->scope == Scope::Shared;
  return serves ? load : nullptr;
}

bool is_tensor_float(const Expr& factor) {
  const Call* call = as<Call>(factor);
  return call != nullptr && call->op == Operator::Tf32;
}

/// The product that a statement in loops adds to its element; null where it does something else.
const Binary* added_product(Stmt stmt) {
  while (const For* loop = as<For>(stmt))
    stmt = loop->body;
  const Store* store = as<Store>(stmt);
  const Binary* sum = store != nullptr ? as_binary(store->value, Operator::Add) : nullptr;
  const Load* so_far = sum != nullptr ? as<Load>(sum->a) : nullptr;
  const bool is_own = so_far != nullptr && !store->predicate && !so_far->predicate &&
                      store->buffer->scope == Scope::Local && so_far->buffer == store->buffer;
  if (!is_own) return nullptr;
  for (size_t d = 0; d < store->indices.size(); ++d)
    if (!equal_trees(store->indices[d], so_far->indices[d])) return nullptr;
  return as_binary(sum->b, Operator::Mul);
}

class FindTileSums : public Visitor {
 public:
  explicit FindTileSums(const PassContext& context) : context_(context) {}
  std::vector<TileSum> found;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    if (std::optional<TileSum> sum = sum_of(loop)) found.push_back(std::move(*sum));
    around_.push_back(&loop);
    Visitor::visit(loop);
    around_.pop_back();
  }

  std::optional<TileSum> sum_of(const For& loop) const {
    const If* guard = as<If>(loop.body);
    const bool ends = loop.loop_kind == LoopKind::Serial && guard != nullptr && !guard->else_body &&
                      order_of(*guard) != nullptr && !reads_memory(guard->condition);
    if (!ends) return std::nullopt;
    TileSum sum{.steps = &loop, .guard = guard, .around = around_, .factors = {}};
    const Binary* product = added_product(guard->then_body);
    const bool is_along = product != nullptr && !uses_var(sum.limit(), loop.var) &&
                          analysis::stride_of(sum.place(), loop.var) == 1;
    if (!is_along || !has_unit(*product, as_const_int(loop.extent).value_or(0)))
      return std::nullopt;
    const auto a = factor_of(sum, product->a);
    const auto b = factor_of(sum, product->b);
    if (!a || !b) return std::nullopt;
    sum.factors = {*a, *b};
    return sum;
  }

  bool has_unit(const Binary& product, int64_t steps) const {
    const Load* a = shared_element(product.a);
    const Load* b = shared_element(product.b);
    if (a == nullptr || b == nullptr) return false;
    const auto unit = is_tensor_float(product.a) && is_tensor_float(product.b)
                          ? std::optional(tensor_float_unit())
                          : matrix_unit(a->buffer->type, b->buffer->type);
    return unit && unit->steps == steps && product.type.element == unit->sums &&
           (unit->is_exact || !context_.options.strict) &&
           has_matrix_unit(context_.target.arch, *unit);
  }

  static std::optional<TileFactor> factor_of(const TileSum& sum, const Expr& expr) {
    const Load* load = shared_element(expr);
    std::optional<TileFactor> factor;
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const auto stride = analysis::stride_of(load->indices[d], sum.steps->var);
      if (stride == 0) continue;
      if (stride != 1 || factor) return std::nullopt;
      factor = TileFactor{load, d, analysis::simplify(sum.place() - load->indices[d])};
    }
    return factor;
  }

  const PassContext& context_;
  std::vector<const For*> around_;
};

}  // namespace

const Expr& TileSum::place() const { return order_of(*guard)->a; }
const Expr& TileSum::limit() const { return order_of(*guard)->b; }

std::vector<TileSum> find_tile_sums(const Stmt& body, const PassContext& context) {
  FindTileSums walk(context);
  walk(body);
  return std::move(walk.found);
}

}  // namespace kiln::passes
