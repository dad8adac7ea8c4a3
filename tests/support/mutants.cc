// Mistakes that passes could make, as rewrites of what they leave: a guard dropped, a loop one
// short, a start value wrong. A test of schedules that finds none of them tests nothing (mutation
// testing; DeMillo, Lipton and Sayward 1978).
//
//   drop_guard: if likely(i < n) { S }  ->  S
#include "tests/support/mutants.h"

#include <functional>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::testing {
namespace {

using namespace ir;  // NOLINT: a table of rewrites of IR nodes
using language::Operator;

/// Rewrites by two functions that give null where they change nothing. They see each node before
/// its children; what they return is not looked at again.
class Rewrite : public Mutator {
 public:
  std::function<Stmt(const Stmt&)> statement = [](const Stmt&) { return Stmt(); };
  std::function<Expr(const Expr&)> expression = [](const Expr&) { return Expr(); };

 private:
#define EXPR(T)                                      \
  Expr visit(const T& node) override {               \
    const Expr changed = expression(Expr(&node));    \
    return changed ? changed : Mutator::visit(node); \
  }
#define STMT(T)                                      \
  Stmt visit(const T& node) override {               \
    const Stmt changed = statement(Stmt(&node));     \
    return changed ? changed : Mutator::visit(node); \
  }
#include "compiler/ir/nodes.def"
};

template <typename F>
Kernel rewrite_statements(Kernel kernel, F change) {
  Rewrite rewrite;
  rewrite.statement = std::move(change);
  kernel.body = rewrite(kernel.body);
  return kernel;
}

template <typename F>
Kernel rewrite_expressions(Kernel kernel, F change) {
  Rewrite rewrite;
  rewrite.expression = std::move(change);
  kernel.body = rewrite(kernel.body);
  return kernel;
}

/// Rewrites the first node only.
template <typename F>
auto once(F change) {
  return [change, done = false](const auto& node) mutable -> std::decay_t<decltype(node)> {
    if (done) return nullptr;
    auto changed = change(node);
    done = static_cast<bool>(changed);
    return changed;
  };
}

bool is_zero(const Expr& expr) {
  const auto* integer = as<IntImm>(expr);
  const auto* floating = as<FloatImm>(expr);
  return (integer != nullptr && integer->value == 0) ||
         (floating != nullptr && floating->value == 0);
}

Expr without_guard_factor(const Expr& expr) {
  const auto* mul = as<Binary>(expr);
  if (mul == nullptr || mul->op != Operator::Mul || mul->type != kIndexType) return nullptr;
  const std::optional<int64_t> factor = as_const_int(mul->b);
  if (!factor || *factor < 2) return nullptr;
  return mul->a * (*factor - 1);
}

Kernel drop_guard(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* guard = as<If>(stmt);
    return guard != nullptr && guard->likely ? guard->then_body : nullptr;
  });
}

Kernel shorten_loop(Kernel kernel) {
  return rewrite_statements(std::move(kernel), once([](const Stmt& stmt) -> Stmt {
                              const auto* loop = as<For>(stmt);
                              if (loop == nullptr || loop->loop_kind != LoopKind::Serial)
                                return nullptr;
                              return For::make(loop->var, loop->extent - 1, loop->loop_kind,
                                               loop->body);
                            }));
}

Kernel wrong_identity(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* store = as<Store>(stmt);
    if (store == nullptr || !is_zero(store->value)) return nullptr;
    return Store::make(store->buffer, store->indices, constant(store->value->type, 1),
                       store->predicate);
  });
}

Kernel no_init(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* store = as<Store>(stmt);
    return store != nullptr && is_zero(store->value) ? Block::make({}) : nullptr;
  });
}

Kernel wrong_split_factor(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), once(without_guard_factor));
}

Kernel lose_offset(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* load = as<Load>(expr);
    if (load == nullptr) return nullptr;
    std::vector<Expr> indices;
    for (const Expr& index : load->indices) {
      const auto* sum = as<Binary>(index);
      const bool offset = sum != nullptr &&
                          (sum->op == Operator::Add || sum->op == Operator::Sub) &&
                          as_const_int(sum->b).has_value();
      indices.push_back(offset ? sum->a : index);
    }
    return Load::make(load->buffer, indices, load->predicate);
  });
}

Kernel drop_else(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* branch = as<If>(stmt);
    if (branch == nullptr || !branch->else_body) return nullptr;
    return If::make(branch->condition, branch->then_body);
  });
}

/// The last of several loops in a row: where partition_loops puts the tail.
Kernel drop_tail(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* block = as<Block>(stmt);
    if (block == nullptr || block->body.size() < 2) return nullptr;
    return Block::make({block->body.begin(), block->body.end() - 1});
  });
}

Kernel short_stride(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), once([](const Expr& expr) -> Expr {
                               const auto* load = as<Load>(expr);
                               if (load == nullptr || load->indices.size() != 1) return nullptr;
                               const auto* sum = as<Binary>(load->indices[0]);
                               if (sum == nullptr || sum->op != Operator::Add) return nullptr;
                               const auto* row = as<Binary>(sum->a);
                               if (row == nullptr || row->op != Operator::Mul) return nullptr;
                               return Load::make(load->buffer, {row->a * (row->b - 1) + sum->b},
                                                 load->predicate);
                             }));
}

Kernel reverse_lanes(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* load = as<Load>(expr);
    if (load == nullptr || load->predicate || load->indices.size() != 1) return nullptr;
    const auto* ramp = as<Ramp>(load->indices[0]);
    if (ramp == nullptr) return nullptr;
    const Expr last = ramp->base + ramp->stride * static_cast<int64_t>(ramp->lanes - 1);
    return Load::make(load->buffer, {Ramp::make(last, ramp->stride * int64_t{-1}, ramp->lanes)});
  });
}

Kernel drop_mask(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* store = as<Store>(stmt);
    if (store == nullptr || !store->predicate) return nullptr;
    return Store::make(store->buffer, store->indices, store->value);
  });
}

Kernel forget_start(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* reduce = as<VectorReduce>(expr);
    if (reduce == nullptr) return nullptr;
    return VectorReduce::make(reduce->combiner,
                              ir::identity_of(reduce->combiner, reduce->type.element),
                              reduce->vector, reduce->reassociate);
  });
}

Kernel drop_last_copy(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* block = as<Block>(stmt);
    if (block == nullptr || block->body.size() < 2) return nullptr;
    for (const Stmt& part : block->body) {
      if (part->kind != NodeKind::Store) return nullptr;
    }
    return Block::make({block->body.begin(), block->body.end() - 1});
  });
}

Kernel swap_min_max(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* binary = as<Binary>(expr);
    if (binary == nullptr || binary->op != Operator::Min) return nullptr;
    return Binary::make(Operator::Max, binary->a, binary->b);
  });
}

Kernel shift_too_far(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* binary = as<Binary>(expr);
    const bool is_first = binary != nullptr && binary->op == Operator::Min &&
                          binary->type == kIndexType && as_const_int(binary->b) > 0;
    if (!is_first) return nullptr;
    return Binary::make(Operator::Min, binary->a, index(*as_const_int(binary->b) - 1));
  });
}

Kernel swap_operands(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* binary = as<Binary>(expr);
    if (binary == nullptr || binary->op != Operator::Sub || binary->type == kIndexType)
      return nullptr;
    return Binary::make(Operator::Sub, binary->b, binary->a);
  });
}

Kernel ignore_condition(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* call = as<Call>(expr);
    if (call == nullptr || call->op != Operator::IfThenElse) return nullptr;
    return call->args[1];
  });
}

/// The loop that a fused one came from is taken modulo one less.
Kernel wrong_modulus(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* binary = as<Binary>(expr);
    if (binary == nullptr || binary->op != Operator::FloorMod || binary->type != kIndexType)
      return nullptr;
    return floormod(binary->a, max(binary->b - 1, index(1)));
  });
}

bool is_accumulators(const Stmt& stmt) {
  const auto* allocate = as<Allocate>(stmt);
  return allocate != nullptr && allocate->buffer->name.ends_with(".acc");
}

/// What accumulate_in_registers made: the loops before, within and after the reduction.
template <typename F>
Kernel change_accumulation(Kernel kernel, F change) {
  return rewrite_statements(std::move(kernel), [&](const Stmt& stmt) -> Stmt {
    if (!is_accumulators(stmt)) return nullptr;
    const auto* parts = as<Block>(as<Allocate>(stmt)->body);
    if (parts == nullptr || parts->body.size() != 3) return nullptr;
    return Allocate::make(as<Allocate>(stmt)->buffer, Block::make(change(parts->body)));
  });
}

Kernel keep_accumulators(Kernel kernel) {
  return change_accumulation(std::move(kernel), [](const std::vector<Stmt>& parts) {
    return std::vector<Stmt>{parts[0], parts[1]};
  });
}

Kernel accumulate_twice(Kernel kernel) {
  return change_accumulation(std::move(kernel), [](const std::vector<Stmt>& parts) {
    return std::vector<Stmt>{parts[0], parts[1], fresh_copy(parts[1]), parts[2]};
  });
}

/// A vector of indices is divided as its first lane, also where it goes past a multiple.
Kernel always_divide_once(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* branch = as<If>(stmt);
    const bool is_of_stores = branch != nullptr && as<Store>(branch->then_body) != nullptr &&
                              as<Store>(branch->else_body) != nullptr;
    return is_of_stores ? branch->then_body : Stmt();
  });
}

/// The last step of a recurrence stays what it was.
Kernel forget_step(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* block = as<Block>(stmt);
    if (block == nullptr || block->body.size() != 2) return {};
    const auto* kept = as<Store>(block->body[0]);
    const auto* stored = as<Store>(block->body[1]);
    const auto* load = stored == nullptr ? nullptr : as<Load>(stored->value);
    const bool is_step = kept != nullptr && load != nullptr && load->buffer == kept->buffer;
    return is_step ? Store::make(stored->buffer, stored->indices, kept->value) : Stmt();
  });
}

Kernel drop_barrier(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    return stmt->kind == NodeKind::Barrier ? Block::make({}) : nullptr;
  });
}

/// An index that is a little too small where it may be equal.
Kernel lose_equality(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* binary = as<Binary>(expr);
    if (binary == nullptr || binary->op != Operator::LessEqual) return nullptr;
    return Binary::make(Operator::Less, binary->a, binary->b);
  });
}

Kernel drop_any_guard(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* guard = as<If>(stmt);
    return guard != nullptr && !guard->else_body ? guard->then_body : nullptr;
  });
}

Kernel shorten_parallel_loop(Kernel kernel) {
  return rewrite_statements(std::move(kernel), once([](const Stmt& stmt) -> Stmt {
                              const auto* loop = as<For>(stmt);
                              if (loop == nullptr || loop->loop_kind != LoopKind::Parallel)
                                return nullptr;
                              return For::make(loop->var, loop->extent - 1, loop->loop_kind,
                                               loop->thread, loop->body);
                            }));
}

/// Values that only move from one buffer to another: the copies of cache_read and cache_write.
Kernel drop_copy(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* store = as<Store>(stmt);
    return store != nullptr && as<Load>(store->value) != nullptr ? Block::make({}) : nullptr;
  });
}

/// The loop over partial results, which rfactor names k.v.
Kernel drop_last_partial(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* loop = as<For>(stmt);
    if (loop == nullptr || !loop->var->name.ends_with(".v")) return nullptr;
    return For::make(loop->var, loop->extent - 1, loop->loop_kind, loop->thread, loop->body);
  });
}

/// The condition of a reduction, which is no guard of a split.
Kernel drop_condition(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* branch = as<If>(stmt);
    const bool is_condition = branch != nullptr && !branch->likely && !branch->else_body;
    return is_condition ? branch->then_body : nullptr;
  });
}

/// A value of a tuple is stored as soon as it is computed, though later values need it as it was.
Kernel store_early(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* allocate = as<Allocate>(stmt);
    const auto* block = allocate != nullptr ? as<Block>(allocate->body) : nullptr;
    if (block == nullptr || !allocate->buffer->name.ends_with(".next")) return nullptr;
    std::vector<Stmt> early;
    for (const Stmt& part : block->body) {
      const auto* store = as<Store>(part);
      const auto* load = store != nullptr ? as<Load>(store->value) : nullptr;
      if (load != nullptr && load->buffer == allocate->buffer) {
        early.insert(early.begin() + 1, part);
      } else {
        early.push_back(part);
      }
    }
    return Allocate::make(allocate->buffer, Block::make(std::move(early)));
  });
}

bool is_time(const VarRef& var) { return var->name.find(".idx") != std::string::npos; }

/// Each loop of time with `change` of its variable in the place of the variable.
template <typename F>
Kernel rewrite_time(Kernel kernel, F change) {
  return rewrite_statements(std::move(kernel), [change](const Stmt& stmt) -> Stmt {
    const auto* loop = as<For>(stmt);
    if (loop == nullptr || !is_time(loop->var)) return nullptr;
    const Stmt body = substitute(loop->body, {{loop->var, change(*loop)}});
    return For::make(loop->var, loop->extent, loop->loop_kind, loop->thread, body);
  });
}

Kernel reverse_time(Kernel kernel) {
  return rewrite_time(std::move(kernel),
                      [](const For& loop) { return loop.extent - 1 - Expr(loop.var); });
}

Kernel shift_time(Kernel kernel) {
  return rewrite_time(std::move(kernel),
                      [](const For& loop) { return min(Expr(loop.var) + 1, loop.extent - 1); });
}

bool is_of_fused_axis(const Expr& expr) {
  bool found = false;
  Rewrite walk;
  walk.expression = [&](const Expr& part) -> Expr {
    const auto* var = as<Var>(part);
    found = found || (var != nullptr && var->name.find("fused") != std::string::npos);
    return nullptr;
  };
  walk(expr);
  return found;
}

/// The steps that a scan keeps are taken modulo one less, where they are written and read.
Kernel short_window(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* binary = as<Binary>(expr);
    if (binary == nullptr || binary->op != Operator::FloorMod || binary->type != kIndexType)
      return nullptr;
    const std::optional<int64_t> window = as_const_int(binary->b);
    if (!window || *window < 2 || *window > 4 || is_of_fused_axis(binary->a)) return nullptr;
    return floormod(binary->a, index(*window - 1));
  });
}

Kernel drop_check(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    return stmt->kind == NodeKind::Check ? Block::make({}) : nullptr;
  });
}

/// What is added to an element at an index that is data takes its place.
Kernel forget_element(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const auto* store = as<Store>(stmt);
    const auto* sum = store != nullptr ? as<Binary>(store->value) : nullptr;
    const auto* old = sum != nullptr ? as<Load>(sum->a) : nullptr;
    if (old == nullptr || old->buffer != store->buffer) return nullptr;
    for (const Expr& place : store->indices) {
      if (as<Load>(place) != nullptr)
        return Store::make(store->buffer, store->indices, sum->b, store->predicate);
    }
    return nullptr;
  });
}

/// Quotients of values, not of indices, are rounded to zero.
Kernel round_to_zero(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* binary = as<Binary>(expr);
    const bool is_value = binary != nullptr && binary->op == Operator::FloorDiv &&
                          is_signed_int(binary->type.element) && binary->type != kIndexType;
    return is_value ? Binary::make(Operator::TruncDiv, binary->a, binary->b) : Expr();
  });
}

/// The rows of a buffer that storage_align spreads out, one element too close.
Kernel close_rows(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* load = as<Load>(expr);
    if (load == nullptr || load->buffer->strides.size() < 2) return nullptr;
    const Expr& row = load->indices[0];
    const auto* sum = as<Binary>(row);
    if (sum == nullptr || sum->op != Operator::Add || row->type.lanes > 1) return nullptr;
    return Load::make(load->buffer, {sum->a}, load->predicate);
  });
}

/// The copy that a doubled stage is read from is always the first.
Kernel same_copy(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* load = as<Load>(expr);
    if (load == nullptr || load->indices.empty()) return nullptr;
    const auto* copy = as<Binary>(load->indices[0]);
    if (copy == nullptr || copy->op != Operator::FloorMod || !is_const(copy->b, 2)) return nullptr;
    std::vector<Expr> indices = load->indices;
    indices[0] = index(0);
    return Load::make(load->buffer, indices, load->predicate);
  });
}

/// A sum of products leaves out the last one.
Kernel shorten_dot(Kernel kernel) {
  return rewrite_expressions(std::move(kernel), [](const Expr& expr) -> Expr {
    const auto* dot = as<Dot>(expr);
    return dot != nullptr ? dot->start : Expr();
  });
}

/// The statements of an allocation that begin with steps that store all of it, as contract_buffers
/// leaves the memory of an iteration; null where it is another.
const Block* steps_of_iteration(const Stmt& stmt) {
  const auto* allocate = as<Allocate>(stmt);
  const auto* block = allocate != nullptr ? as<Block>(allocate->body) : nullptr;
  const auto* steps = block != nullptr ? as<For>(block->body.front()) : nullptr;
  const bool is_found = steps != nullptr && steps->loop_kind == LoopKind::Vectorized &&
                        as<Store>(steps->body) != nullptr &&
                        as<Store>(steps->body)->buffer == allocate->buffer;
  return is_found ? block : nullptr;
}

Kernel forget_last_element(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    const Block* const block = steps_of_iteration(stmt);
    if (block == nullptr) return nullptr;
    std::vector<Stmt> statements = block->body;
    const auto* steps = as<For>(statements[0]);
    statements[0] = For::make(steps->var, steps->extent - 1, steps->loop_kind, steps->body);
    return Allocate::make(as<Allocate>(stmt)->buffer, Block::make(std::move(statements)));
  });
}

Kernel read_first_element(Kernel kernel) {
  return rewrite_statements(std::move(kernel), [](const Stmt& stmt) -> Stmt {
    if (steps_of_iteration(stmt) == nullptr) return nullptr;
    const BufferRef memory = as<Allocate>(stmt)->buffer;
    Rewrite rewrite;
    rewrite.expression = [&](const Expr& expr) -> Expr {
      const auto* load = as<Load>(expr);
      if (load == nullptr || load->buffer != memory) return nullptr;
      return Load::make(memory, std::vector<Expr>(load->indices.size(), index(0)), load->predicate);
    };
    return Allocate::make(memory, rewrite(as<Allocate>(stmt)->body));
  });
}

constexpr Mutant kMutants[] = {
    {"an index is not checked", "build_loops", drop_check},
    {"an update replaces the element it should add to", "build_loops", forget_element},
    {"a division of integers is rounded to zero", "build_loops", round_to_zero},
    {"a copy is not made", "build_loops", drop_copy},
    {"the last partial result is not reduced", "build_loops", drop_last_partial},
    {"a doubled stage is read from the first copy always", "build_loops", same_copy},
    {"a reduction forgets its condition", "build_loops", drop_condition},
    {"a value of a tuple is stored too early", "build_loops", store_early},
    {"a scan runs the other way", "build_loops", reverse_time},
    {"a scan takes a step too late", "build_loops", shift_time},
    {"a scan keeps one step too few", "build_loops", short_window},
    {"a guard of a split is dropped", "build_loops", drop_guard},
    {"a loop runs one iteration too few", "build_loops", shorten_loop},
    {"a sum starts at one", "build_loops", wrong_identity},
    {"a sum is not initialised", "build_loops", no_init},
    {"a split is put together with a smaller factor", "build_loops", wrong_split_factor},
    {"the axes of a fused one are taken apart wrongly", "build_loops", wrong_modulus},
    {"the offset of an index is lost", "simplify:1", lose_offset},
    {"min becomes max", "simplify:1", swap_min_max},
    {"the operands of a difference are swapped", "simplify:1", swap_operands},
    {"if_then_else takes its first branch always", "simplify:1", ignore_condition},
    {"a shifted tile ends an element too early", "shift_last_tiles", shift_too_far},
    {"a partitioned loop loses its tail", "partition_loops", drop_tail},
    {"the guarded part of a partitioned loop is lost", "partition_loops", drop_else},
    {"rows that are spread out lose their column", "flatten_storage", close_rows},
    {"products of an intrinsic are not added", "tensorize", shorten_dot},
    {"a row stride is one too short", "flatten_storage", short_stride},
    {"lanes are loaded in reverse", "vectorize_loops", reverse_lanes},
    {"the mask of a store is lost", "vectorize_loops", drop_mask},
    {"a reduction over lanes forgets where it starts", "vectorize_loops", forget_start},
    {"the last unrolled copy is lost", "unroll_loops", drop_last_copy},
    {"lanes past a multiple are divided as the first", "divide_once", always_divide_once},
    {"a core's last block is forgotten", "bind_to_cores", shorten_parallel_loop},
    {"the axes of collapsed loops are taken apart wrongly", "collapse_parallel", wrong_modulus},
    {"accumulators are not stored", "accumulate_in_registers", keep_accumulators},
    {"a reduction into registers runs twice", "accumulate_in_registers", accumulate_twice},
    {"a recurrence forgets its last step", "carry_steps", forget_step},
    {"the last element of an iteration is not kept", "contract_buffers", forget_last_element},
    {"an iteration reads its first element always", "contract_buffers", read_first_element},
    {"a condition loses its equality", "simplify:2", lose_equality},
    {"a guard is lost when it is moved", "hoist_invariants", drop_any_guard},
    {"a barrier is forgotten", "insert_barriers", drop_barrier, TargetKind::Cuda},
    {"threads past the end do work", "split_host_device", drop_any_guard, TargetKind::Cuda},
};

}  // namespace

std::span<const Mutant> mutants() { return kMutants; }

}  // namespace kiln::testing
