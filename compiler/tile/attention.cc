// Writes an attention down on tiles: a block has some queries, and goes through the keys in parts.
// What it has added up of the values so far is as large as the largest score so far makes it, and
// gets smaller when a larger one comes.
//
// Of a row with n keys the sum of the powers is 1 at least, which is that of the largest score.
// Powers and what makes sums smaller are 0 where they would be below 2^-126, as Apply has it. Each
// of n powers loses less than 2^-126 by that; and a sum of up to n powers less than n 2^-126 when
// it is made 0. So of the sum a part of less than n 2^-125 is lost, which no float32 has a bit for
// before 2^100 keys, and of a result less than that part of the row's largest value.
//
// Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al.,
// FlashAttention, 2022.
#include "compiler/tile/attention.h"

#include <algorithm>
#include <limits>
#include <numbers>

#include "compiler/tile/find_attention.h"
#include "compiler/tile/part_sizes.h"
#include "compiler/tile/program_writer.h"

namespace kiln::tile {
namespace {

using namespace language;

class AttentionWriter {
 public:
  AttentionWriter(const Kernel& kernel, const AttentionShape& shape)
      : definition_(kernel.definition),
        finder_(kernel.definition),
        found_(finder_.find()),
        shape_(shape),
        width_(part_of(found_.column, "a value", shape.columns)),
        depth_(part_of(found_.depth, "a query", 0)),
        writer_(kernel, finder_) {}

  Program run() {
    for (const language::AxisId axis : found_.axes)
      writer_.add_axis(axis, step_of(axis));
    if (is_whole()) writer_.add_axis(found_.depth, depth_);
    writer_.end_blocks();
    const Sheet sheet{{found_.row}, found_.column, [&] { return write_sum(); }};
    const ValueId result = writer_.value_of(sheet, finder_.compute_of(found_.output).bodies[0],
                                            same_names(found_.axes));
    writer_.store(sheet, found_.output, found_.axes, result);
    return writer_.finish();
  }

 private:
  /// So many numbers of an axis, or all (0).
  int64_t part_of(language::AxisId axis, std::string_view what, int64_t numbers) const {
    const int64_t all = whole_step(known_extent(definition_, finder_, axis, what));
    return numbers == 0 ? all : std::min(numbers, all);
  }
  /// Whether what a query and a key have is multiplied at once.
  bool is_whole() const { return shape_.depth == 0 || shape_.depth >= depth_; }
  int64_t step_of(language::AxisId axis) const {
    if (axis == found_.row) return shape_.queries;
    return axis == found_.column ? width_ : 1;
  }
  ValueId constant(double number, std::vector<int64_t> shape) {
    return writer_.constant(number, {DType::Float32, std::move(shape)});
  }
  ValueId apply(Operator function, std::vector<ValueId> operands) {
    return writer_.apply(function, std::move(operands), DType::Float32);
  }
  ValueId mma(ValueId a, ValueId b, ValueId c) {
    return writer_.add({.what = Mma{}, .operands = {a, b, c}, .results = {}}, writer_.type_of(c));
  }

  /// The weighted sum of the values. Parts of the keys that each query sees all of come first, so
  /// that nothing is asked of these.
  ValueId write_sum() {
    if (is_whole()) query_ = load_query(depth_);
    std::vector<ValueId> state = {constant(kNone, {shape_.queries, 1}),
                                  constant(0, {shape_.queries, 1}),
                                  constant(0, {shape_.queries, width_})};
    const std::optional<Ends> ends = write_ends();
    const auto part = [&](std::span<const ValueId> carried) {
      return write_part(carried[0], carried[1], carried[2]);
    };
    const auto write_loop = [&](For loop) {
      writer_.add_axis(found_.key, shape_.keys);
      loop.axes = {writer_.number_of(found_.key)};
      state = writer_.loop(std::move(loop), state, part);
    };
    For seen;
    if (ends) seen.until = ends->seen_by_all;
    write_loop(std::move(seen));
    if (ends) {
      is_masked_ = true;
      For rest;
      rest.from = ends->seen_by_all;
      rest.until = ends->seen;
      write_loop(std::move(rest));
    }
    const ValueId share = apply(Operator::Div, {constant(1, {shape_.queries, 1}), state[1]});
    return apply(Operator::Mul, {state[2], writer_.broadcast(share, {shape_.queries, width_})});
  }

  /// Parts that begin before `seen_by_all` are seen whole by every query, those that begin at
  /// `seen` or after it by none.
  struct Ends {
    ValueId seen_by_all;
    std::optional<ValueId> seen;
  };

  /// Nothing where all parts are seen by all.
  std::optional<Ends> write_ends() {
    const Extent keys = finder_.extent_of(definition_.axes[found_.key].extent);
    const bool is_cut = keys.size >= 0 || keys.constant % shape_.keys != 0;
    if (!found_.seen && !is_cut) return std::nullopt;
    Ends ends{writer_.extent(keys, {1, 1}), std::nullopt};
    if (found_.seen) {
      const SeenKeys& seen = *found_.seen;
      const ValueId first = writer_.value_of({}, seen.end.expr, seen.end.renamed);
      const int64_t further = seen.per_row * (shape_.queries - 1);
      const int64_t included = seen.includes_end ? 1 : 0;
      ends.seen = sum(first, included + std::max<int64_t>(further, 0));
      const ValueId least = sum(first, included + std::min<int64_t>(further, 0));
      ends.seen_by_all = writer_.apply(Operator::Min, {ends.seen_by_all, least}, DType::Int32);
    }
    ends.seen_by_all = sum(ends.seen_by_all, 1 - shape_.keys);
    return ends;
  }
  ValueId sum(ValueId place, int64_t number) {
    if (number == 0) return place;
    const ValueId other = writer_.constant(static_cast<double>(number), {DType::Int32, {1, 1}});
    return writer_.apply(Operator::Add, {place, other}, DType::Int32);
  }

  /// What a part of the keys makes of the largest score so far, the sum of the powers so far, and
  /// that of the values.
  std::vector<ValueId> write_part(ValueId top, ValueId total, ValueId sum) {
    const std::vector<int64_t> column = {shape_.queries, 1};
    const std::vector<int64_t> all = {shape_.queries, shape_.keys};
    const ValueId scores = write_scores();
    const ValueId higher = apply(Operator::Max, {top, writer_.reduce(Combiner::Max, 1, scores)});
    // As long as nothing is seen, powers are 0 and not those of -inf - -inf.
    const ValueId none = constant(kNone, column);
    const ValueId is_none = writer_.apply(Operator::Equal, {higher, none}, DType::Bool);
    const ValueId base =
        apply(Operator::Mul, {apply(Operator::Select, {is_none, constant(0, column), higher}),
                              constant(-std::numbers::log2e, column)});
    const auto power = [&](ValueId of, const std::vector<int64_t>& shape) {
      const ValueId exponent = apply(Operator::Fma, {of, constant(std::numbers::log2e, shape),
                                                     writer_.broadcast(base, shape)});
      return apply(Operator::Exp2, {exponent});
    };
    const ValueId powers = power(scores, all);
    const ValueId fade = power(top, column);
    const ValueId whole =
        apply(Operator::Fma, {total, fade, writer_.reduce(Combiner::Sum, 1, powers)});
    const ValueId faded =
        apply(Operator::Mul, {sum, writer_.broadcast(fade, {shape_.queries, width_})});
    const ValueId values =
        writer_.load(found_.values, {found_.key, found_.column}, {shape_.keys, width_});
    const ValueId weights = writer_.cast(writer_.type_of(values).element, powers);
    return {higher, whole, mma(weights, values, faded)};
  }

  ValueId load_query(int64_t depth) {
    return writer_.load(found_.query, {found_.row, found_.depth}, {shape_.queries, depth});
  }
  ValueId load_keys(int64_t depth) {
    return writer_.load(found_.keys, {found_.depth, found_.key}, {depth, shape_.keys});
  }

  /// Of queries and keys.
  ValueId write_products() {
    const auto none = [&] { return constant(0, {shape_.queries, shape_.keys}); };
    if (is_whole()) {
      const ValueId keys = load_keys(depth_);
      return mma(query_, keys, none());
    }
    writer_.add_axis(found_.depth, shape_.depth);
    For loop;
    loop.axes = {writer_.number_of(found_.depth)};
    const auto part = [&](std::span<const ValueId> carried) -> std::vector<ValueId> {
      return {mma(load_query(shape_.depth), load_keys(shape_.depth), carried[0])};
    };
    return writer_.loop(std::move(loop), {none()}, part)[0];
  }

  /// -inf beyond the last key, and where a query does not see one.
  ValueId write_scores() {
    const Sheet sheet{{found_.row}, found_.key, [&] { return write_products(); }};
    const auto& [expr, renamed] = found_.scores;
    if (!is_masked_)
      return writer_.value_of(sheet, found_.seen ? found_.seen->score : expr, renamed);
    const ValueId scores = writer_.value_of(sheet, expr, renamed);
    const Extent extent = writer_.extent_of(found_.key);
    if (extent.size < 0 && extent.constant % shape_.keys == 0) return scores;
    const ValueId places = writer_.places(found_.key, {1, shape_.keys});
    const ValueId end = writer_.extent(extent, {1, shape_.keys});
    const ValueId is_key = writer_.apply(Operator::Less, {places, end}, DType::Bool);
    const std::vector<int64_t> all = {shape_.queries, shape_.keys};
    return apply(Operator::Select, {writer_.broadcast(is_key, all), scores, constant(kNone, all)});
  }

  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  const Definition& definition_;
  AttentionFinder finder_;
  const Attention found_;
  const AttentionShape shape_;
  const int64_t width_;
  const int64_t depth_;
  ProgramWriter writer_;
  ValueId query_ = 0;       // where it is whole
  bool is_masked_ = false;  // in the loop that is written: some keys are not seen by all
};

}  // namespace

bool is_attention(const Kernel& kernel) {
  AttentionFinder finder(kernel.definition);
  try {
    finder.find();
  } catch (const Error&) {
    // Why it is not done on tiles is no question here.
  }
  return finder.has_weights();
}

Program attention(const Kernel& kernel, const AttentionShape& shape) {
  return AttentionWriter(kernel, shape).run();
}

}  // namespace kiln::tile
