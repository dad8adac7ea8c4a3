// Rewrites the body of a loop for all lanes at once: what does not depend on the variable stays
// scalar, indices stay ramps, branches become masks (if-conversion), sums into one element a
// VectorReduce, and buffers of the body get a copy a lane. Halide's VectorizeLoops works by the
// same substitution. What has no form in vectors is named as the obstacle.
#include "compiler/passes/vector_lanes.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/vector_index.h"

namespace kiln::passes {
namespace {

using namespace ir;

class LoadsFrom : public Visitor {
 public:
  explicit LoadsFrom(const BufferRef& buffer) : buffer_(buffer) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    found = found || load.buffer == buffer_;
    Visitor::visit(load);
  }
  const BufferRef& buffer_;
};

bool loads_from(const Expr& expr, const BufferRef& buffer) {
  LoadsFrom walk(buffer);
  walk(expr);
  return walk.found;
}

/// `place op term`, taken from a store of that to `place`.
struct Accumulation {
  Combiner combiner;
  Expr place;
  Expr term;
};

std::optional<Accumulation> as_accumulation(const Store& store) {
  const Binary* value = as<Binary>(store.value);
  if (value == nullptr || store.predicate) return std::nullopt;
  const auto is_place = [&](const Expr& expr) {
    const Load* load = as<Load>(expr);
    return load != nullptr && load->buffer == store.buffer && !load->predicate &&
           equal_trees(load->indices[0], store.indices[0]);
  };
  for (const language::CombinerRow& row : language::combiner_table()) {
    if (row.op != value->op) continue;
    if (is_place(value->a)) return Accumulation{row.combiner, value->a, value->b};
    if (is_place(value->b)) return Accumulation{row.combiner, value->b, value->a};
  }
  return std::nullopt;
}

class Vectorizer : public Mutator {
 public:
  Vectorizer(const VarRef& var, const Expr& base, int lanes, bool reassociate)
      : var_(var),
        base_(base),
        lanes_(lanes),
        reassociate_(reassociate),
        all_(Ramp::make(base, index(1), lanes)) {}

  std::string obstacle;  // the first thing that cannot be a vector; the result is then of no use

 private:
  using Mutator::visit;

  bool is_vector(const Expr& expr) const { return expr->type.lanes > 1; }
  Expr wide(const Expr& expr) const { return widened(expr, lanes_); }

  template <typename T>
  auto refuse(const T& node, std::string why) {
    if (obstacle.empty()) obstacle = std::move(why);
    return std::conditional_t<std::is_base_of_v<ExprNode, T>, Expr, Stmt>(&node);
  }

  // Masks. `mask_` says which lanes reach the code being visited; null: all. A statement under a
  // mask stands in `if any(mask_)`, so that what all lanes share is safe to compute there. An
  // expression in a branch has no such statement around it: `in_branch_`.

  Expr both(const Expr& a, const Expr& b) const {
    if (!a) return b;
    if (!b) return a;
    return Binary::make(Operator::And, wide(a), wide(b));
  }

  /// The lanes that are reached and for which `given` (may be null) holds.
  Expr wide_mask(const Expr& given) const {
    const Expr mask = both(mask_, given);
    return mask ? wide(mask) : mask;
  }

  template <typename Body>
  auto under(const Expr& condition, Body&& body) {
    const Expr outer = std::exchange(mask_, both(mask_, wide(condition)));
    auto result = body();
    mask_ = outer;
    return result;
  }

  Expr visit(const Var& var) override { return &var == var_.get() ? all_ : Expr(&var); }

  /// Stays scalar where no lane differs, so that what is the same for all is computed once.
  Expr visit(const Binary& node) override {
    const Expr a = (*this)(node.a);
    const Expr b = (*this)(node.b);
    if (a == node.a && b == node.b) return &node;
    return vector_binary(node.op, a, b);
  }

  Expr visit(const Cast& cast) override {
    const Expr value = (*this)(cast.value);
    if (value == cast.value) return &cast;
    return Cast::make(cast.type.with_lanes(value->type.lanes), value);
  }

  Expr visit(const Call& call) override {
    if (call.op == Operator::IfThenElse) return branches(call);
    std::vector<Expr> args;
    int lanes = 1;
    for (const Expr& arg : call.args) {
      args.push_back((*this)(arg));
      lanes = std::max(lanes, args.back()->type.lanes);
    }
    if (args == call.args) return &call;
    for (Expr& arg : args)
      arg = widened(arg, lanes);
    return Call::make(call.op, std::move(args));
  }

  /// A choice a lane: both branches are computed, each with the lanes that take it.
  Expr branches(const Call& call) {
    const Expr condition = (*this)(call.args[0]);
    const Expr negated = (*this)(logical_not(call.args[0]));
    const bool was_in_branch = std::exchange(in_branch_, true);
    const Expr a = under(condition, [&] { return (*this)(call.args[1]); });
    const Expr b = under(negated, [&] { return (*this)(call.args[2]); });
    in_branch_ = was_in_branch;
    if (!is_vector(condition) && !is_vector(a) && !is_vector(b)) {
      return Call::make(Operator::IfThenElse,
                        {condition, (*this)(call.args[1]), (*this)(call.args[2])});
    }
    return Call::make(Operator::Select, {wide(condition), wide(a), wide(b)});
  }

  /// A[i] is A[ramp], under the mask; an element that all lanes share is loaded once, inside a
  /// branch only where a lane takes it.
  Expr visit(const Load& load) override {
    const Expr place = (*this)(load.indices[0]);
    const Expr given = load.predicate ? (*this)(load.predicate) : Expr();
    const auto copy = copies_.find(load.buffer);
    if (copy != copies_.end()) {
      return Load::make(copy->second, {place_in_copy(place)}, wide_mask(given));
    }
    if (is_vector(place) || (given && is_vector(given))) {
      return Load::make(load.buffer, {wide(place)}, wide_mask(given));
    }
    if (!in_branch_) {
      if (place == load.indices[0] && given == load.predicate) return &load;
      return Load::make(load.buffer, {place}, given);
    }
    const Expr reached = any_lane(mask_);
    return Load::make(load.buffer, {place},
                      given ? Binary::make(Operator::And, reached, given) : reached);
  }

  /// Each lane has a group of `b` of its own; `a` may be one for all.
  Expr visit(const Dot& dot) override {
    const Expr start = (*this)(dot.start);
    const Expr a = groups_of(dot.a, dot.group());
    const Expr b = groups_of(dot.b, dot.group());
    if (start == dot.start && a == dot.a && b == dot.b) return &dot;
    if (mask_ || b->type.lanes == dot.group()) {
      return refuse(dot, "a sum of products in it is not of all lanes");
    }
    return Dot::make(wide(start), a, b);
  }

  /// The elements of all lanes, side by side; those of one where all have the same.
  Expr groups_of(const Expr& operand, int group) {
    const bool is_same =
        !uses_var(operand, var_) && std::ranges::none_of(copies_, [&](const auto& copy) {
          return loads_from(operand, copy.first);
        });
    if (is_same) return operand;
    const Load* load = as<Load>(operand);
    const Ramp* row = load != nullptr ? as<Ramp>(load->indices[0]) : nullptr;
    if (row == nullptr || !is_const(row->stride, 1) || copies_.contains(load->buffer)) {
      return refuse(*operand, "the products in it are not of elements side by side");
    }
    const Expr base = (*this)(row->base);
    const Ramp* bases = as<Ramp>(base);
    if (bases == nullptr || !is_const(bases->stride, group)) {
      return refuse(*operand, "the products in it are not of elements side by side");
    }
    const int elements = group * lanes_;
    const Expr inside = load->predicate ? inside_of_groups(load->predicate, group) : Expr();
    return Load::make(load->buffer, {Ramp::make(bases->base, index(1), elements)}, inside);
  }

  /// Which elements are of groups inside, where lanes are while their number is below an extent.
  Expr inside_of_groups(const Expr& predicate, int group) {
    const Broadcast* for_all = as<Broadcast>(predicate);
    const Binary* below = for_all != nullptr ? as<Binary>(for_all->value) : nullptr;
    const bool is_end = below != nullptr && below->op == Operator::Less && below->a == Expr(var_) &&
                        !uses_var(below->b, var_);
    if (!is_end) return refuse(*predicate, "the products in it are not of elements side by side");
    const int elements = group * lanes_;
    return Binary::make(Operator::Less, Ramp::make(base_ * group, index(1), elements),
                        Broadcast::make(below->b * group, elements));
  }

  /// C[i] = v is C[ramp] = v under the mask. Places that do not depend on the variable are the hard
  /// ones: see below.
  Stmt visit(const Store& store) override {
    if (store.predicate) return store_with_predicate(store);
    const auto copy = copies_.find(store.buffer);
    const Expr place = (*this)(store.indices[0]);
    if (copy != copies_.end()) {
      return Store::make(copy->second, {place_in_copy(place)}, wide((*this)(store.value)), mask_);
    }
    const Expr value = (*this)(store.value);
    if (is_vector(place)) return Store::make(store.buffer, {place}, wide(value), mask_);
    // What all lanes store alike is stored once, unless each lane adds to it.
    if (!is_vector(value) && !loads_from(store.value, store.buffer)) {
      return Store::make(store.buffer, {place}, value);
    }
    return store_of_all_lanes(store, place);
  }

  Stmt store_with_predicate(const Store& store) {
    const Expr place = (*this)(store.indices[0]);
    if (!is_vector(place) || copies_.contains(store.buffer)) {
      return refuse(store, "a store in it to one place has a predicate");
    }
    const Expr value = (*this)(store.value);
    return Store::make(store.buffer, {place}, wide(value), wide_mask((*this)(store.predicate)));
  }

  /// All lanes store to one place: a reduction, or the last lane counts.
  Stmt store_of_all_lanes(const Store& store, const Expr& place) {
    if (const auto sum = as_accumulation(store); sum && !loads_from(sum->term, store.buffer)) {
      Expr term = wide((*this)(sum->term));
      if (mask_) {
        const Expr identity = identity_of(sum->combiner, store.buffer->type);
        term = Call::make(Operator::Select, {mask_, term, wide(identity)});
      }
      return Store::make(
          store.buffer, {place},
          VectorReduce::make(sum->combiner, (*this)(sum->place), term, reassociate_));
    }
    if (mask_ || loads_from(store.value, store.buffer)) {
      return refuse(store,
                    "each iteration needs what the one before stored in " + store.buffer->name);
    }
    return Store::make(store.buffer, {place},
                       substitute(store.value, {{var_, base_ + (lanes_ - 1)}}));
  }

  Stmt visit(const If& node) override {
    const Expr condition = (*this)(node.condition);
    if (!is_vector(condition)) {
      return If::make(condition, (*this)(node.then_body),
                      node.else_body ? (*this)(node.else_body) : Stmt(), node.likely);
    }
    std::vector<Stmt> parts = {masked(condition, node.then_body)};
    if (node.else_body) {
      parts.push_back(masked((*this)(logical_not(node.condition)), node.else_body));
    }
    return Block::make(std::move(parts));
  }

  /// What no lane reaches is skipped, loops inside included: guards are false for whole vectors
  /// mostly.
  Stmt masked(const Expr& condition, const Stmt& body) {
    return under(condition, [&] { return If::make(any_lane(mask_), (*this)(body)); });
  }

  /// The loop goes outside of the lanes: all of them run it in step, which needs one extent.
  Stmt visit(const For& loop) override {
    const Expr extent = (*this)(loop.extent);
    if (is_vector(extent)) {
      return refuse(loop, fmt::format("the extent of {} in it differs between its iterations",
                                      loop.var->name));
    }
    return For::make(loop.var, extent, loop.loop_kind, loop.thread, (*this)(loop.body));
  }

  Stmt visit(const Check& check) override {
    const Expr place = (*this)(check.index);
    const Expr extent = (*this)(check.extent);
    if (is_vector(place) || is_vector(extent)) {
      return refuse(check, "an index in it must be checked in each iteration");
    }
    return Check::make(place, extent, check.check);
  }

  /// One element stands for all lanes, unless that lane may be left out. What is allocated in the
  /// body is in the cache already.
  Stmt visit(const Prefetch& prefetch) override {
    if (mask_ || copies_.contains(prefetch.buffer)) return Block::make({});
    return substitute(Stmt(&prefetch), {{var_, base_}});
  }

  /// A buffer of one iteration becomes one with a copy a lane; those of one element lie side by
  /// side.
  Stmt visit(const Allocate& allocate) override {
    const Buffer& buffer = *allocate.buffer;
    std::vector<Expr> shape;
    for (const Expr& extent : extents_in_memory(buffer)) {
      shape.push_back((*this)(extent));
      if (is_vector(shape.back())) {
        return refuse(allocate, "the shape of " + buffer.name + " differs between its iterations");
      }
    }
    shape.push_back(index(lanes_));
    const BufferRef copy = Buffer::make(buffer.name, buffer.type, std::move(shape), buffer.scope);
    copies_[allocate.buffer] = copy;
    return Allocate::make(copy, (*this)(allocate.body));
  }

  /// Element `place` of lane l lies at place*lanes + l, so that a vector of one element is
  /// contiguous.
  Expr place_in_copy(const Expr& place) const {
    const Expr lane = Ramp::make(index(0), index(1), lanes_);
    return vector_binary(Operator::Add, vector_binary(Operator::Mul, place, index(lanes_)), lane);
  }

  const VarRef& var_;
  const Expr base_;
  const int lanes_;
  const bool reassociate_;
  const Expr all_;
  Expr mask_;
  bool in_branch_ = false;
  std::unordered_map<BufferRef, BufferRef> copies_;  // of buffers allocated in the body
};

}  // namespace

VectorLanes vectorize(const Stmt& body, const VarRef& var, const Expr& base, int lanes,
                      bool reassociate) {
  Vectorizer vectorizer(var, base, lanes, reassociate);
  Stmt result = vectorizer(body);
  if (!vectorizer.obstacle.empty()) return {nullptr, std::move(vectorizer.obstacle)};
  return {std::move(result), ""};
}

}  // namespace kiln::passes
