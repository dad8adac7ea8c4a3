// Reads the numbers of a prediction off the loops that code is generated from: how often each loop
// runs, how far apart its iterations touch memory, and which operations they do.
//
//   for i in 0..64 { C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] * broadcast(2.0, 16) }
//     ->
//   64 times: one multiplication of 16 lanes, a load and a store of 16 lanes 16 elements further
//
// A buffer of its own whose indices are constants is kept in registers by LLVM; a multiplication
// that is added right away is one operation with that. Loops that are still to be unrolled count as
// what they become.
#include "compiler/predict/nest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/analysis/matrix_fragments.h"
#include "compiler/analysis/matrix_product.h"
#include "compiler/analysis/tile_product.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/flushed_power.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/swizzle.h"
#include "compiler/predict/numbers.h"

namespace kiln::predict {
namespace {

using namespace ir;

/// Loops that a GPU's compiler unrolls, as the statements that it makes of them.
class Unrolled : public Mutator {
 private:
  using Mutator::visit;
  Stmt visit(const For& loop) override {
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    if (loop.loop_kind != LoopKind::Unrolled || !extent) return Mutator::visit(loop);
    std::vector<Stmt> iterations;
    for (int64_t i = 0; i < *extent; ++i)
      iterations.push_back((*this)(substitute(loop.body, {{loop.var, index(i)}})));
    return Block::make(std::move(iterations));
  }
  /// What chooses an element is a constant then.
  Expr visit(const Binary& node) override {
    if (node.type != kIndexType) return Mutator::visit(node);
    const Expr a = (*this)(node.a);
    const Expr b = (*this)(node.b);
    switch (node.op) {
      case Operator::Add: return a + b;
      case Operator::Sub: return a - b;
      case Operator::Mul: return a * b;
      default: return Binary::make(node.op, a, b);
    }
  }
};

/// Buffers of a kernel's own of which each element that is named is known where code is generated.
class FindRegisters : public Visitor {
 public:
  std::unordered_set<BufferRef> allocated;
  std::unordered_set<BufferRef> indexed;

 private:
  using Visitor::visit;
  void visit(const Allocate& node) override {
    if (node.buffer->scope == Scope::Local) allocated.insert(node.buffer);
    Visitor::visit(node);
  }
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    for (const Expr& index : indices) {
      const auto* ramp = as<Ramp>(index);
      if (!as_const_int(ramp != nullptr ? ramp->base : index)) indexed.insert(buffer);
    }
    Visitor::element(buffer, indices);
  }
};

// Iterations of a loop around, whose number says how much is done.
constexpr double kMostLookedAt = 64;

bool is_float_type(const Type& type) { return is_float(type.element); }

struct LoopAround {
  VarRef var;
  double extent = 1;
  bool is_of_threads = false;
};

class Reader : public Visitor {
 public:
  Reader(const Kernel& kernel, const Stmt& body, std::span<const int64_t> sizes,
         int64_t register_bytes, const HasMatrices& has_matrices)
      : has_matrices_(has_matrices) {
    for (size_t i = 0; i < kernel.sizes.size() && i < sizes.size(); ++i)
      numbers_.set(kernel.sizes[i], sizes[i]);
    FindRegisters find;
    find(body);
    for (const BufferRef& buffer : find.allocated) {
      const bool fits = bytes_of(*buffer) <= static_cast<double>(register_bytes);
      if (fits && !find.indexed.contains(buffer)) registers_.insert(buffer);
    }
    // Parameters of any stride are compact here: a size of 1 between elements.
    for (const VarRef& stride : kernel.strides)
      numbers_.set(stride, 1);
  }

  Nest read(const Stmt& body) {
    Nest nest;
    at_ = &nest;
    (*this)(body);
    finish(nest);
    return nest;
  }

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    const double extent = iterations_of(loop.extent);
    if (extent == 0) return;
    Nest nest;
    if (multiply_matrices(loop, nest)) {
      at_->inner.push_back(std::move(nest));
      return;
    }
    const bool is_launch = loop.loop_kind == LoopKind::ThreadIndex && axes_.empty();
    if (is_launch) most_words_ = 0;
    if (loop.loop_kind == LoopKind::ThreadIndex) axes_.push_back(&loop);
    nest.extent = extent;
    nest.kind = loop.loop_kind;
    nest.thread = loop.thread;
    Nest* const outer = at_;
    auto outer_updates = std::exchange(updates_, {});
    auto outer_loaded = std::exchange(loaded_, {});
    auto outer_conditions = std::exchange(conditions_, {});
    at_ = &nest;
    loops_.push_back({loop.var, extent, loop.loop_kind == LoopKind::ThreadIndex});
    (*this)(loop.body);
    finish(nest);
    loops_.pop_back();
    if (loop.loop_kind == LoopKind::ThreadIndex) axes_.pop_back();
    if (is_launch) nest.words_of_thread = most_words_;
    at_ = outer;
    updates_ = std::move(outer_updates);
    loaded_ = std::move(outer_loaded);
    conditions_ = std::move(outer_conditions);
    at_->inner.push_back(std::move(nest));
  }

  /// What a number is on the average of some iterations of a loop around.
  template <typename Number>
  double average_over(const LoopAround& loop, const Number& number) {
    const double looked_at = std::min(loop.extent, kMostLookedAt);
    double sum = 0;
    for (double i = 0; i < looked_at; ++i) {
      numbers_.set(loop.var, static_cast<int64_t>((i + 0.5) * loop.extent / looked_at));
      sum += number();
    }
    numbers_.set(loop.var, 0);
    return sum / looked_at;
  }

  /// Where threads have different ones, as those of causal attentions, on the average.
  double iterations_of(const Expr& extent) {
    const auto number = [&] {
      return static_cast<double>(std::max<int64_t>(numbers_(extent).value_or(1), 0));
    };
    const auto uses = [&](const LoopAround& loop) { return uses_var(extent, loop.var); };
    const auto around = std::ranges::find_if(loops_, uses);
    if (around == loops_.end() || !around->is_of_threads) return number();
    return average_over(*around, number);
  }

  /// What a thread has of its own, while it has it.
  void visit(const Allocate& node) override {
    const int64_t words = node.buffer->scope == Scope::Local
                              ? static_cast<int64_t>(bytes_of(*node.buffer) + 3) / 4
                              : 0;
    words_ += words;
    most_words_ = std::max(most_words_, words_);
    Visitor::visit(node);
    words_ -= words;
  }

  /// Of the first matrix, whose rows the first lanes name, or of the first word of each lane.
  static MatrixLoads loads_of(const analysis::MatrixFactor& factor, bool are_columns,
                              int64_t count) {
    const analysis::LinearLayout lanes = analysis::places_of_lanes(factor, are_columns);
    const int64_t size = size_of(factor.buffer->type);
    const analysis::LoadsAtOnce at_once = analysis::loads_at_once(size, factor.is_transposed);
    MatrixLoads loads{factor.buffer, count, at_once.bytes, {}};
    for (int64_t lane = 0; lane < 1 << at_once.lane_bits; ++lane) {
      const int64_t element = lanes.place(std::array{lane});
      loads.places.push_back(place_in_memory(*factor.buffer, element) * size);
    }
    return loads;
  }

  /// Fills the nest of a loop that is a product of matrices.
  bool multiply_matrices(const For& loop, Nest& nest) {
    if (!has_matrices_ || axes_.empty()) return false;
    const auto product = analysis::find_matrix_product(loop, axes_);
    if (!product) return false;
    const DType type = product->rows.buffer->type;
    if (!has_matrices_(type, product->columns.buffer->type)) return false;
    const auto rows = static_cast<int64_t>(product->rows.tiles.size());
    const auto columns = static_cast<int64_t>(product->columns.tiles.size());
    nest.matrices = {.instructions = rows * columns,
                     .loads = {loads_of(product->rows, false, rows),
                               loads_of(product->columns, true, columns / 2)},
                     .products = kMatrixRows * kMatrixColumns * *as_const_int(loop.extent),
                     .element_bytes = size_of(type)};
    // A thread's part of a fragment of 16 rows is four words, of 8 columns two; the next step's are
    // loaded while this one's are multiplied.
    most_words_ = std::max(most_words_, words_ + 2 * (rows * 4 + columns * 2));
    return true;
  }

  void visit(const If& branch) override {
    if (const std::optional<double> share = share_of_iterations(branch.condition)) {
      in_share(*share, branch.then_body);
      if (branch.else_body) in_share(1 - *share, branch.else_body);
      return;
    }
    const bool depends = std::ranges::any_of(
        loops_, [&](const LoopAround& loop) { return uses_var(branch.condition, loop.var); });
    const std::optional<int64_t> holds = numbers_(branch.condition);
    if (holds && !depends && *holds == 0) {
      if (branch.else_body) (*this)(branch.else_body);
      return;
    }
    (*this)(branch.then_body);
  }

  /// Of a GPU's serial loop with few iterations: in how many of them holds what depends on nothing
  /// else, as what is left of a sum stands in the last one.
  std::optional<double> share_of_iterations(const Expr& condition) {
    if (axes_.empty()) return std::nullopt;
    const auto uses = [&](const LoopAround& loop) { return uses_var(condition, loop.var); };
    if (std::ranges::count_if(loops_, uses) != 1) return std::nullopt;
    const LoopAround& loop = *std::ranges::find_if(loops_, uses);
    if (loop.is_of_threads || loop.extent > kMostLookedAt) return std::nullopt;
    return average_over(loop, [&] { return numbers_(condition).value_or(1) != 0 ? 1.0 : 0.0; });
  }

  /// What is done in a part of the iterations alone.
  void in_share(double share, const Stmt& body) {
    if (share == 0) return;
    if (share == 1) return (*this)(body);
    const VarRef part = Var::make("part");
    (*this)(For::make(part, index(1), LoopKind::Serial, body));
    at_->inner.back().extent = share;
  }

  void visit(const Store& store) override {
    touch(store.buffer, store.indices, store.value->type.lanes, true);
    note_update(store);
    (*this)(store.value);
  }

  void visit(const Atomic& node) override {
    touch(node.buffer, node.indices, node.value->type.lanes, false);
    touch(node.buffer, node.indices, node.value->type.lanes, true);
    operation(node.op, node.value->type);
    (*this)(node.value);
  }

  void visit(const Load& load) override {
    touch(load.buffer, load.indices, load.type.lanes, false);
    if (as<Ramp>(load.indices[0]) == nullptr && load.type.lanes > 1) (*this)(load.indices[0]);
  }

  void visit(const Binary& binary) override {
    const bool is_condition = binary.type == Type{DType::Bool, 1} && binary.a->type == kIndexType;
    if (is_condition && is_known(binary)) return;
    const bool adds = binary.op == Operator::Add || binary.op == Operator::Sub;
    const auto multiplies = [](const Expr& e) {
      const auto* factor = as<Binary>(e);
      return factor != nullptr && factor->op == Operator::Mul;
    };
    // Indices are counted by what they load; what joins two conditions is part of the second.
    const bool is_index = binary.type == kIndexType || is_junction(binary);
    const bool is_fused =
        adds && is_float_type(binary.type) && (multiplies(binary.a) || multiplies(binary.b));
    if (!is_fused && !is_index) operation(binary.op, binary.a->type);
    Visitor::visit(binary);
  }

  static bool is_junction(const Binary& binary) {
    return binary.a->type == Type{DType::Bool, 1} &&
           (binary.op == Operator::And || binary.op == Operator::Or);
  }

  /// Whether the condition of an element stands in this body already, as those of windows do that
  /// overlap: it is computed once.
  bool is_known(const Binary& condition) {
    constexpr size_t kMost = 64;
    const auto is_same = [&](const Expr& known) { return equal_trees(known, Expr(&condition)); };
    if (std::ranges::any_of(conditions_, is_same)) return true;
    if (conditions_.size() < kMost) conditions_.push_back(Expr(&condition));
    return false;
  }

  void visit(const Call& call) override {
    if (const Expr exponent = axes_.empty() ? nullptr : find_flushed_power(call)) {
      operation(Operator::Exp2, call.type);
      return (*this)(exponent);
    }
    operation(call.op, call.type);
    Visitor::visit(call);
  }

  void visit(const Cast& cast) override {
    const size_t before = at_->touches.size();
    Visitor::visit(cast);
    // Of an element that the iteration has, a GPU's compiler has the cast, too.
    const auto* load = as<Load>(cast.value);
    const bool is_had = load != nullptr && !axes_.empty() && !registers_.contains(load->buffer) &&
                        at_->touches.size() == before;
    if (!is_had && cast.type.element != cast.value->type.element)
      operation(Operator::Add, size_of(cast.type.element) > size_of(cast.value->type.element)
                                   ? cast.type
                                   : cast.value->type);
  }

  void visit(const VectorReduce& reduce) override {
    // Halves are added until one lane is left; in order, lane by lane.
    const int lanes = reduce.vector->type.lanes;
    for (int left = lanes / 2; left > 0 && reduce.reassociate; left /= 2)
      operation(Operator::Add, reduce.vector->type.with_lanes(left));
    if (!reduce.reassociate) operation(Operator::Add, reduce.start->type, lanes);
    Visitor::visit(reduce);
  }

  void visit(const Dot& dot) override {
    operation(Operator::Mul, dot.type);
    // Pairs of integers are multiplied by one instruction and added by another.
    if (dot.group() == 2 && !is_float_type(dot.type)) operation(Operator::Add, dot.type);
    Visitor::visit(dot);
  }

  /// Its steps as loops, in which each row of a tile is a vector that is loaded; its sums are
  /// stored once, and loaded before unless they begin with zero.
  void visit(const MultiplyTiles& node) override {
    const auto product = analysis::tile_product(node);
    if (!product) return Visitor::visit(node);
    steps_of(*product, 0);
    for (const bool is_store : {false, true}) {
      if (!is_store && product->begins_with_zero) continue;
      touch_rows(*product->sums, product->row_count, product->sums_row, product->column_count,
                 is_store);
    }
  }

  /// So many elements of each row of a tile, from the place of the access on.
  template <typename Access>
  void touch_rows(const Access& access, int64_t rows, int64_t distance, int64_t elements,
                  bool is_store) {
    Touch touch{.buffer = access.buffer,
                .buffer_bytes = bytes_of(*access.buffer),
                .element_bytes = size_of(access.buffer->type),
                .lanes = elements,
                .is_store = is_store,
                .first = numbers_(access.indices[0]).value_or(0),
                .strides = {}};
    for (const LoopAround& loop : loops_)
      touch.strides.push_back(numbers_.stride(access.indices[0], loop.var));
    for (int64_t row = 0; row < rows; ++row) {
      at_->touches.push_back(touch);
      touch.first += distance;
    }
  }

  void steps_of(const analysis::TileProduct& product, size_t depth) {
    const analysis::TileSteps& steps = product.steps[depth];
    const bool is_last = depth + 1 == product.steps.size();
    const int64_t each = is_last ? analysis::groups_at_once(steps.extent) : 1;
    Nest nest;
    nest.extent = std::ceil(static_cast<double>(steps.extent) / static_cast<double>(each));
    Nest* const outer = std::exchange(at_, &nest);
    loops_.push_back({steps.loop->var, nest.extent});
    if (is_last) {
      nest.unit_cycles = analysis::cycles_of_step(product.row_count, product.column_count);
      touch_rows(*product.a, product.row_count, product.a_row, each * product.group_size, false);
      touch_rows(*product.b, each, steps.b, product.column_count * product.group_size, false);
      for (Touch& touch : nest.touches)
        touch.strides.back() *= each;
    } else {
      steps_of(product, depth + 1);
    }
    loops_.pop_back();
    at_ = outer;
    at_->inner.push_back(std::move(nest));
  }

  void visit(const Shuffle& shuffle) override {
    operation(Operator::Add, shuffle.value->type);
    Visitor::visit(shuffle);
  }

  void visit(const Check&) override { operation(Operator::Less, kIndexType, 2); }
  void visit(const Prefetch&) override {}
  void visit(const Background& node) override {
    const bool before = std::exchange(is_background_, true);
    Visitor::visit(node);
    is_background_ = before;
  }

  void operation(Operator op, const Type& type, double count = 1) {
    at_->operations.push_back({op, type.lanes, size_of(type.element), is_float_type(type), count});
  }

  void touch(const BufferRef& buffer, const std::vector<Expr>& indices, int lanes, bool is_store) {
    if (registers_.contains(buffer)) return;
    const Expr& index = indices[0];
    const auto* ramp = as<Ramp>(index);
    const bool is_side_by_side = ramp != nullptr && is_const(ramp->stride, 1);
    Touch touch{.buffer = buffer,
                .buffer_bytes = bytes_of(*buffer),
                .element_bytes = size_of(buffer->type),
                .lanes = lanes,
                .is_gather = lanes > 1 && !is_side_by_side,
                .lane_stride = ramp != nullptr ? numbers_(ramp->stride).value_or(0) : 0,
                .is_store = is_store,
                .is_background = is_background_,
                .first = numbers_(index).value_or(0),
                .strides = {}};
    for (const LoopAround& loop : loops_)
      touch.strides.push_back(numbers_.stride(index, loop.var));
    if (is_divided(index)) touch.elements_of_warp = elements_of_warp(index);
    // What an iteration has loaded once it has, until it stores there.
    if (is_store) {
      std::erase_if(loaded_, [&](const auto& key) { return std::get<0>(key) == buffer.get(); });
    } else if (!loaded_.emplace(buffer.get(), touch.first, touch.lanes, touch.strides).second) {
      return;
    }
    at_->touches.push_back(std::move(touch));
  }

  /// Whether an index divides threads.
  bool is_divided(const Expr& index) const {
    const auto* binary = as<Binary>(index);
    const bool divides = binary != nullptr && autoschedule::divides_whole(binary->op);
    if (divides && std::ranges::any_of(axes_, [&](const For* axis) {
          return is_thread_axis(axis->thread) && uses_var(index, axis->var);
        }))
      return true;
    return std::ranges::any_of(operands_of(index),
                               [&](const Expr& part) { return is_divided(part); });
  }

  /// What each thread of the first warp names: threadIdx.x moves first, then y and z.
  std::vector<int64_t> elements_of_warp(const Expr& index) {
    std::vector<int64_t> elements;
    for (int64_t thread = 0; thread < kWarp; ++thread) {
      int64_t rest = thread;
      for (const ThreadAxis axis :
           {ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ}) {
        const auto loop =
            std::ranges::find(axes_, axis, [](const For* each) { return each->thread; });
        if (loop == axes_.end()) continue;
        const int64_t extent = std::max<int64_t>(numbers_((*loop)->extent).value_or(1), 1);
        numbers_.set((*loop)->var, rest % extent);
        rest /= extent;
      }
      if (rest > 0) break;  // a block of fewer threads
      elements.push_back(numbers_(index).value_or(0));
    }
    for (const For* axis : axes_)
      numbers_.set(axis->var, 0);
    return elements;
  }

  double bytes_of(const Buffer& buffer) const {
    auto bytes = static_cast<double>(size_of(buffer.type));
    for (const Expr& extent : buffer.shape)
      bytes *= static_cast<double>(numbers_(extent).value_or(1));
    return bytes;
  }

  /// `s[e] = s[e] op ..` with the same element in each iteration waits for the one before.
  void note_update(const Store& store) {
    const Expr& index = store.indices[0];
    if (!loops_.empty() && numbers_.stride(index, loops_.back().var) != 0) return;
    const int64_t element = numbers_(index).value_or(0);
    if (!reads(store.value, store.buffer, element)) return;
    Chain& chain = updates_[store.buffer][element];
    ++chain.updates;
    chain.is_float = is_float_type(store.value->type);
  }

  bool reads(const Expr& expr, const BufferRef& buffer, int64_t element) const {
    if (const auto* load = as<Load>(expr))
      return load->buffer == buffer && numbers_(load->indices[0]).value_or(-1) == element;
    return std::ranges::any_of(operands_of(expr),
                               [&](const Expr& part) { return reads(part, buffer, element); });
  }

  void finish(Nest& nest) {
    for (const auto& [buffer, elements] : updates_) {
      for (const auto& [element, chain] : elements) {
        if (chain.updates > nest.chain.updates) nest.chain = chain;
      }
    }
  }

  const HasMatrices& has_matrices_;
  Numbers numbers_;
  std::unordered_set<BufferRef> registers_;
  int64_t words_ = 0;  // of a thread's own, at this place
  int64_t most_words_ = 0;
  bool is_background_ = false;
  std::vector<const For*> axes_;  // of threads
  std::vector<LoopAround> loops_;
  std::unordered_map<BufferRef, std::unordered_map<int64_t, Chain>> updates_;
  std::set<std::tuple<const Buffer*, int64_t, int64_t, std::vector<int64_t>>> loaded_;
  std::vector<Expr> conditions_;
  Nest* at_ = nullptr;
};

}  // namespace

Nest nest_of(const Kernel& kernel, std::span<const int64_t> sizes, int64_t register_bytes,
             const HasMatrices& has_matrices) {
  const Stmt body = Unrolled()(kernel.body);
  return Reader(kernel, body, sizes, register_bytes, has_matrices).read(body);
}

}  // namespace kiln::predict
