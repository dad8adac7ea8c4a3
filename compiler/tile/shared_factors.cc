// Factors in shared memory, as products want them.
//
// Lanes that multiply read neighbours along the side at once, of one step: memory[step, place].
// What lies along the sum in its tensor is turned on the way, by threads whose places are side by
// side, so that they store to different banks. Tensor cores read it as it lies, and turn it
// themselves (ldmatrix).
//
// Rows of shared memory are 16 bytes longer than they have to be, so that a column of it is in
// different banks.
#include "compiler/tile/shared_factors.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/ir/build.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using namespace ir;

namespace {

constexpr int64_t kMovedBytes = 16;  // at once

int64_t rounded_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

/// What one thread does of a copy: a group of elements that are side by side in the tensor.
struct FactorCopy {
  const TensorPlaces& places;
  const View& view;
  const Load& load;
  std::array<size_t, 2> dimensions;  // of the view
  const SharedFactor& factor;
  size_t sum;  // which of the two goes along it
  size_t dense;
  int64_t lanes;
  bool is_turned;
  bool is_cut;  // beyond the end of the sum it is 0

  /// The group at a place along what is dense, and a place along the other side.
  Stmt of(const Expr& group, const Expr& other) const {
    const Stmt copied =
        moved([&](const Expr& lane) { return loaded(place_of(group, other, lane)); }, group, other);
    if (!is_cut) return copied;
    // All lanes of a group are on one side of the end.
    const Expr place = place_of(group, other, index(0))[sum];
    const Expr at = places.first_of(load.at[dimensions[sum]]) + place;
    const Stmt none = moved(
        [&](const Expr&) {
          return constant({factor.memory->type, 1}, 0);
        },
        group, other);
    return If::make(less(at, places.extent_of(view, dimensions[sum])), copied, none);
  }

 private:
  using Places = std::array<Expr, 2>;

  Places place_of(const Expr& group, const Expr& other, const Expr& lane) const {
    Places place;
    place[dense] = group * lanes + lane;
    place[1 - dense] = other;
    return place;
  }

  Expr loaded(const Places& at) const {
    std::vector<Expr> place(view.tile.size(), index(0));
    for (size_t i = 0; i < 2; ++i)
      place[dimensions[i]] = at[i];
    std::vector<Expr> indices = places.inside(view, load.at, place);
    const size_t along_sum = view.order[dimensions[sum]];
    if (is_cut) indices[along_sum] = places.place_of(view, load.at, place)[along_sum];
    Expr value = ir::Load::make(places.tensor_of(view), std::move(indices));
    const DType stored = factor.memory->type;
    return value->type.element == stored ? value : ir::Cast::make({stored, 1}, value);
  }

  Stmt moved(const std::function<Expr(const Expr&)>& value, const Expr& group,
             const Expr& other) const {
    const auto indices = [&](const Expr& lane) {
      const Places place = place_of(group, other, lane);
      return factor.indices(place[1 - sum], place[sum]);
    };
    const BufferRef& memory = factor.memory;
    const VarRef lane = Var::make("lane");
    if (lanes == 1) return ir::Store::make(memory, indices(index(0)), value(index(0)));
    if (!is_turned)
      return ir::For::make(lane, index(lanes), LoopKind::Vectorized,
                           ir::Store::make(memory, indices(lane), value(lane)));
    const BufferRef own =
        Buffer::make(memory->name + ".moved", memory->type, {index(lanes)}, Scope::Local);
    const VarRef turned = Var::make("lane");
    return Allocate::make(
        own, Block::make({ir::For::make(lane, index(lanes), LoopKind::Vectorized,
                                        ir::Store::make(own, {lane}, value(lane))),
                          ir::For::make(turned, index(lanes), LoopKind::Unrolled,
                                        ir::Store::make(memory, indices(turned),
                                                        ir::Load::make(own, {turned})))}));
  }
};

}  // namespace

std::vector<Expr> SharedFactor::indices(const Expr& place, const Expr& step) const {
  return is_sum_first ? std::vector{step, place} : std::vector{place, step};
}

BufferRef SharedFactors::memory_of(const std::string& key, const std::string& name,
                                   const Shape& shape) {
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const int64_t pitch = shape.inner + kMovedBytes / size_of(shape.type);
  const BufferRef memory = Buffer::make(name, shape.type, {index(shape.outer), index(shape.inner)},
                                        Scope::Shared, {index(pitch), index(1)});
  known_[key] = memory;
  memory_.push_back(memory);
  if (!shape.is_zero_at_ends) return memory;
  first_.push_back(shared_out(shape.outer * shape.inner, [&](const Expr& number) {
    return ir::Store::make(
        memory, {floordiv(number, index(shape.inner)), floormod(number, index(shape.inner))},
        constant({shape.type, 1}, 0));
  }));
  return memory;
}

Stmt SharedFactors::shared_out(int64_t count, const std::function<Stmt(const Expr&)>& body) const {
  const int64_t threads = layout_.threads();
  const int64_t turns = rounded_up(count, threads) / threads;
  const VarRef turn = Var::make("turn");
  const Expr number = Expr(turn) * threads + layout_.number();
  Stmt inner = body(number);
  if (count % threads != 0) inner = If::make(less(number, index(count)), std::move(inner));
  return ir::For::make(turn, index(turns), LoopKind::Serial, std::move(inner));
}

SharedFactor SharedFactors::computed(DType type, int64_t rows, int64_t steps) {
  const bool is_sum_first = !layout_.has_matrices();
  const Shape shape{type_of(type), is_sum_first ? steps : rows, is_sum_first ? rows : steps, false};
  const std::string key = fmt::format("weights {} x {}", rows, steps);
  return {memory_of(key, "weights.shared", shape), is_sum_first, steps};
}

SharedFactor SharedFactors::copied(const Load& load, const ValueUses::Factor& use,
                                   std::vector<Stmt>& out) {
  const size_t sum = use.sum;
  const View& view = program_.views[load.view];
  const std::vector<size_t> dimensions = long_dimensions(view);
  KILN_CHECK(dimensions.size() == 2);  // a factor has sides of 16 at least
  const DType given = places_.tensor_of(view)->type;
  const DType stored = type_of(given);
  const size_t last = view.order.size() - 1;
  // What of the two lies side by side in the tensor; where none does, nothing moves at once.
  const size_t dense = view.order[dimensions[0]] == last ? 0 : 1;
  const bool is_dense = view.order[dimensions[dense]] == last;
  const bool is_sum_first = layout_.has_matrices() ? dense != sum : true;

  std::array<int64_t, 2> counts;  // of the two, those that there are, and those that are read
  std::array<int64_t, 2> reads;
  for (size_t i = 0; i < 2; ++i) {
    counts[i] = places_.count_of(view, dimensions[i]);
    reads[i] = view.tile[dimensions[i]];
  }
  const int64_t steps = counts[sum];
  reads[sum] = layout_.has_matrices() ? rounded_up(steps, kMatrixSteps) : steps;
  const size_t first = is_sum_first ? sum : 1 - sum;
  const BufferRef memory =
      memory_of(fmt::format("view {} along {}", load.view, sum),  // one tensor may be both factors
                fmt::format("{}.shared", places_.tensor_of(view)->name),
                {stored, reads[first], reads[1 - first], counts != reads});
  const SharedFactor factor{memory, is_sum_first, steps};

  const bool is_cut = use.are_both_loaded && places_.has_shorter_part(view, dimensions[sum]);
  const int64_t most = kMovedBytes / std::max(size_of(stored), size_of(given));
  const bool is_even =
      counts[dense] % most == 0 &&
      (!is_cut || dense != sum || places_.is_multiple(view, dimensions[sum], most));
  const FactorCopy copy{.places = places_,
                        .view = view,
                        .load = load,
                        .dimensions = {dimensions[0], dimensions[1]},
                        .factor = factor,
                        .sum = sum,
                        .dense = dense,
                        .lanes = is_dense && is_even ? most : 1,
                        .is_turned = !layout_.has_matrices() && dense == sum,
                        .is_cut = is_cut};
  const int64_t groups = counts[dense] / copy.lanes;  // along what is dense
  const int64_t others = counts[1 - dense];
  out.push_back(shared_out(groups * others, [&](const Expr& number) {
    return copy.is_turned
               ? copy.of(floordiv(number, index(others)), floormod(number, index(others)))
               : copy.of(floormod(number, index(groups)), floordiv(number, index(groups)));
  }));
  return factor;
}

}  // namespace kiln::tile
