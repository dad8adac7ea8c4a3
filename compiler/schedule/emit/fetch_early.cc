// Fetches what the next iteration of a pipelined loop needs while this one computes: through
// registers, which every GPU has, so that loads are under way during the arithmetic. What is stored
// at the loop is cut into its loads, one iteration early, and what is computed of them and stored:
// computed at once it would wait for them. Modulo scheduling of two stages (Lam, 1988), of a tile
// as in CUTLASS's SIMT main loop.
#include "compiler/schedule/emit/fetch_early.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/graph/reads.h"
#include "runtime/core/error.h"

namespace kiln::schedule {
namespace {

using namespace ir;

/// Takes the loads out of a value, each of which has registers of its own, an element for each of
/// these places. Of a choice between a load and something else the whole is one, and a load inside
/// of another choice is made under its conditions.
class TakeLoads : public Mutator {
 public:
  struct Taken {
    Expr fetched;
    BufferRef registers;
  };

  TakeLoads(std::string name, std::vector<Expr> shape, std::vector<Expr> places)
      : name_(std::move(name)), shape_(std::move(shape)), places_(std::move(places)) {}

  /// Of what loads nothing, all.
  Expr take_all(const Expr& value) {
    const Expr rest = (*this)(value);
    return taken.empty() ? take(value) : rest;
  }

  std::vector<Taken> taken;  // no two of them equal

 private:
  using Mutator::visit;

  Expr visit(const Load& load) override {
    Expr fetched = &load;
    for (const Expr& condition : conditions_)
      fetched = Call::make(Operator::IfThenElse, {condition, fetched, constant(load.type, 0)});
    return take(fetched);
  }

  Expr visit(const Call& call) override {
    if (call.op != Operator::IfThenElse) return Mutator::visit(call);
    const bool is_one = as<Load>(call.args[1]) != nullptr && !reads_memory(call.args[2]);
    const bool is_other = as<Load>(call.args[2]) != nullptr && !reads_memory(call.args[1]);
    if (conditions_.empty() && (reads_memory(call.args[0]) || is_one || is_other))
      return take(&call);
    const Expr condition = (*this)(call.args[0]);
    conditions_.push_back(call.args[0]);
    const Expr holds = (*this)(call.args[1]);
    conditions_.back() = logical_not(call.args[0]);
    const Expr otherwise = (*this)(call.args[2]);
    conditions_.pop_back();
    return Call::make(Operator::IfThenElse, {condition, holds, otherwise});
  }

  Expr take(const Expr& fetched) {
    auto same = std::ranges::find_if(
        taken, [&](const Taken& other) { return equal_trees(other.fetched, fetched); });
    if (same == taken.end()) {
      taken.push_back({fetched, Buffer::make(name_, fetched->type.element, shape_, Scope::Local)});
      same = taken.end() - 1;
    }
    return Load::make(same->registers, places_);
  }

  const std::string name_;
  const std::vector<Expr> shape_;
  const std::vector<Expr> places_;
  std::vector<Expr> conditions_;  // of the choices around
};

class Cut {
 public:
  Cut(const std::vector<ThreadsAround>& around, std::string called, std::string axis)
      : around_(around), called_(std::move(called)), axis_(std::move(axis)) {}

  /// The nest with the threads that stand around in the place of its own loops over them.
  Stmt by_threads_around(const Stmt& nest) const { return ByThreads(*this)(nest); }

  /// Finds the one store, and the loops around it.
  void find_store(const Stmt& stmt) {
    if (const Block* block = as<Block>(stmt)) {
      for (const Stmt& inner : block->body)
        find_store(inner);
    } else if (const For* loop = as<For>(stmt)) {
      loops_.push_back(loop);
      find_store(loop->body);
      if (store_ == nullptr) loops_.pop_back();
    } else if (const If* node = as<If>(stmt)) {
      if (node->else_body) refuse_value();
      find_store(node->then_body);
    } else if (const Store* store = as<Store>(stmt)) {
      if (store_ != nullptr) refuse_value();
      store_ = store;
    } else if (as<Check>(stmt) == nullptr) {
      refuse_value();
    }
  }

  /// What is loaded of the value that is stored, and the value made of it.
  struct Parts {
    std::vector<TakeLoads::Taken> loaded;
    Expr value;
  };
  Parts parts() const {
    if (store_ == nullptr) refuse_value();
    std::vector<Expr> shape;
    for (const For* loop : loops_) {
      if (!as_const_int(loop->extent)) {
        refuse(
            fmt::format("the part of {} that a thread fetches has {} iterations of {}, which is "
                        "no constant",
                        called_, loop->extent, loop->var->name));
      }
      shape.push_back(loop->extent);
    }
    TakeLoads take(store_->buffer->name + ".next", std::move(shape), places());
    Expr value = take.take_all(store_->value);
    return {std::move(take.taken), std::move(value)};
  }

  /// The nest with another statement in the place of its store.
  Stmt with(const Stmt& nest, const Stmt& statement) const {
    return fresh_copy(Replace(store_, statement)(nest));
  }

  Stmt load(const Parts& parts) const {
    std::vector<Stmt> loads;
    for (const TakeLoads::Taken& each : parts.loaded)
      loads.push_back(Store::make(each.registers, places(), each.fetched));
    return Block::make(std::move(loads));
  }
  /// What is checked was so when the value was fetched. What is turned on the way was fetched at
  /// once all the same, and is stored one by one.
  Stmt put(const Parts& parts, const Stmt& nest) const {
    const Stmt put = Store::make(store_->buffer, store_->indices, parts.value);
    return WithoutChecks()(with(OneByOne(*this)(nest), put));
  }

 private:
  class ByThreads : public Mutator {
   public:
    explicit ByThreads(const Cut& cut) : cut_(cut) {}

   private:
    using Mutator::visit;
    Stmt visit(const For& loop) override {
      if (loop.loop_kind != LoopKind::ThreadIndex) return Mutator::visit(loop);
      const auto same = std::ranges::find(cut_.around_, loop.thread, &ThreadsAround::axis);
      if (same == cut_.around_.end()) cut_.refuse_threads();
      const bool is_equal = equal_trees(same->extent, loop.extent);
      const std::optional<int64_t> own = as_const_int(loop.extent);
      if (!is_equal &&
          (!own || *own > std::max<int64_t>(as_const_int(same->extent).value_or(1), 1)))
        cut_.refuse_threads();
      const Stmt body = (*this)(substitute(loop.body, {{loop.var, same->var}}));
      return is_equal ? body : If::make(less(same->var, loop.extent), body);
    }
    const Cut& cut_;
  };

  class Replace : public Mutator {
   public:
    Replace(const Store* from, Stmt to) : from_(from), to_(std::move(to)) {}

   private:
    using Mutator::visit;
    Stmt visit(const Store& store) override { return &store == from_ ? to_ : Stmt(&store); }
    const Store* from_;
    const Stmt to_;
  };

  /// Elements of memory from one place of the store to the next; nothing where that is not known.
  std::optional<int64_t> distance_along(const VarRef& var) const {
    const Buffer& buffer = *store_->buffer;
    int64_t distance = 0;
    int64_t compact = 1;
    for (size_t d = store_->indices.size(); d-- > 0;) {
      const auto moves = analysis::stride_of(store_->indices[d], var);
      const int64_t stride =
          buffer.strides.empty() ? compact : as_const_int(buffer.strides[d]).value_or(0);
      if (!moves || (*moves != 0 && stride == 0)) return std::nullopt;
      distance += *moves * stride;
      compact *= as_const_int(buffer.shape[d]).value_or(0);
    }
    return distance;
  }

  /// Vectors along which the store's elements lie apart become plain loops.
  class OneByOne : public Mutator {
   public:
    explicit OneByOne(const Cut& cut) : cut_(cut) {}

   private:
    using Mutator::visit;
    Stmt visit(const For& loop) override {
      const bool is_apart =
          loop.loop_kind == LoopKind::Vectorized && cut_.distance_along(loop.var).value_or(1) != 1;
      if (!is_apart) return Mutator::visit(loop);
      return For::make(loop.var, loop.extent, LoopKind::Serial, (*this)(loop.body));
    }
    const Cut& cut_;
  };

  class WithoutChecks : public Mutator {
    using Mutator::visit;
    Stmt visit(const Check&) override { return Block::make({}); }
  };

  std::vector<Expr> places() const {
    std::vector<Expr> result;
    for (const For* loop : loops_)
      result.emplace_back(loop->var);
    return result;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::Unsupported, "SOFTWARE_PIPELINE", "cannot pipeline {}: {}", axis_, why);
  }
  [[noreturn]] void refuse_value() const {
    refuse(
        fmt::format("{} is more than one value stored at each place, which could wait in "
                    "registers of a GPU's thread",
                    called_));
  }
  [[noreturn]] void refuse_threads() const {
    refuse(
        fmt::format("{} is computed by other threads than those that {} stands in; bind axes of "
                    "both to the same ones",
                    called_, axis_));
  }

  const std::vector<ThreadsAround>& around_;
  const std::string called_;
  const std::string axis_;
  std::vector<const For*> loops_;  // around the store
  const Store* store_ = nullptr;
};

void require_known(const Expr& extent, const std::string& axis) {
  if (!has_read(extent)) return;
  fail(ErrorKind::Unsupported, "SOFTWARE_PIPELINE",
       "cannot pipeline {}: data says how many iterations it has", axis);
}

}  // namespace

bool is_pipelined(const StageGraph& graph, StageId consumer, AxisId axis) {
  return std::ranges::any_of(graph.pipelines, [&](const Pipeline& pipeline) {
    return pipeline.stage == consumer && pipeline.axis == axis;
  });
}

bool reads_what_is_computed_at(const StageGraph& graph, StageId id, StageId consumer) {
  bool found = false;
  for (const ir::Expr& body : expanded_bodies(graph, id)) {
    for_each_read(body, [&](const ir::TensorRead& read) {
      const Attach& attach = graph[read.stage].attach;
      found = found || (attach.kind == Attach::Kind::At && attach.stage == consumer);
    });
  }
  return found;
}

EarlyFetch fetch_late(const std::vector<LateNest>& nests, int64_t copies, const VarRef& loop,
                      const Expr& extent, const std::vector<ThreadsAround>& around,
                      const std::string& axis) {
  require_known(extent, axis);
  std::vector<Stmt> parts;
  for (const LateNest& each : nests)
    parts.push_back(Cut(around, each.called, axis).by_threads_around(each.nest));
  const Stmt all = Block::make(std::move(parts));
  const auto fetch_of = [&](const Expr& iteration) {
    return Background::make(
        If::make(less(iteration, extent), fresh_copy(substitute(all, {{loop, iteration}}))));
  };
  std::vector<Stmt> first;
  for (int64_t i = 0; i + 1 < copies; ++i)
    first.push_back(fetch_of(index(i)));
  // Each iteration is one more group, so that those that may be missing are the last ones.
  const Stmt await = Await::make(static_cast<int>(copies - 2));
  return {.registers = {},
          .first = Block::make(std::move(first)),
          .put = nullptr,
          .next = Block::make({await, fetch_of(loop + index(copies - 1))})};
}

EarlyFetch fetch_early(const Stmt& nest, const VarRef& loop, const Expr& extent,
                       const std::vector<ThreadsAround>& around, const std::string& called,
                       const std::string& axis) {
  require_known(extent, axis);
  Cut cut(around, called, axis);
  const Stmt by_threads = cut.by_threads_around(nest);
  cut.find_store(by_threads);
  const Cut::Parts parts = cut.parts();
  const Stmt fetch = cut.with(by_threads, cut.load(parts));
  const auto fetch_of = [&](const Expr& iteration) {
    return If::make(less(iteration, extent), fresh_copy(substitute(fetch, {{loop, iteration}})));
  };
  EarlyFetch result;
  for (const TakeLoads::Taken& each : parts.loaded)
    result.registers.push_back(each.registers);
  result.first = fetch_of(index(0));
  result.next = fetch_of(loop + index(1));
  result.put = cut.put(parts, by_threads);
  return result;
}

}  // namespace kiln::schedule
