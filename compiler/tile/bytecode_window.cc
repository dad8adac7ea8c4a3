// A window of an image, whose last dimension is contiguous:
//
//   X[n, y*2 + ry, x*2 + rx, c]   ->  a view of n, y, x and ry*(w*c) + rx*c + c
//   X[n, y + ry - 1, x + rx, c]   ->  X + (n*h*w*c + (y - 1)*w*c + x*c) + (ry*w*c + rx*c + c),
//                                     where 0 <= y + ry - 1 < h
//
// A row of both is a place of n, y and x. That of the second is computed once, in front of loops.
#include "compiler/tile/bytecode_window.h"

#include <algorithm>
#include <limits>

#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

struct Range {
  int64_t least = 0;
  int64_t most = 0;
};

/// Of an index, over whole parts of axes or only up to their ends; nothing where a size is open.
std::optional<Range> range_of(const Program& program, const Index& index, bool of_whole_parts) {
  Range range{index.offset, index.offset};
  for (const Term& term : index.terms) {
    const Axis& axis = program.axes[term.axis];
    if (axis.extent.size >= 0) return std::nullopt;
    const int64_t last = (of_whole_parts ? axis.parts({}) * axis.step : axis.extent.constant) - 1;
    (term.factor < 0 ? range.least : range.most) += term.factor * last;
  }
  return range;
}

bool is_inside(const std::optional<Range>& range, const Extent& extent) {
  return range && extent.size < 0 && range->least >= 0 && range->most < extent.constant;
}

/// Whether it is one axis, from the first to the last element.
bool is_whole(const Program& program, const Index& index, const Extent& extent) {
  return index.offset == 0 && index.terms.size() == 1 && index.terms[0].factor == 1 &&
         program.axes[index.terms[0].axis].extent == extent;
}

}  // namespace

/// Instructions on tiles of integers. Scalars, and dimensions of 1, are made as large as the other
/// operand is.
class PreparedWindow::Arithmetic {
 public:
  explicit Arithmetic(CodeWriter& code) : code_(code) {}

  Numbers scalar(Value value) const { return {value, DType::Int32, {}}; }
  Numbers constant(DType type, int64_t number) { return {code_.integer(type, number), type, {}}; }
  /// 0, 1, ..
  Numbers count(int64_t extent) {
    const std::vector<int64_t> shape = {extent};
    return {code_.plain(kIota, type_of(DType::Int32, shape), {}, {}), DType::Int32, shape};
  }
  Numbers reshaped(const Numbers& a, const std::vector<int64_t>& shape) {
    if (a.shape == shape) return a;
    return {code_.plain(kReshape, type_of(a.type, shape), {}, {a.value}), a.type, shape};
  }
  Numbers broadcast(const Numbers& a, const std::vector<int64_t>& shape) {
    if (a.shape == shape) return a;
    const Numbers whole =
        a.shape.size() == shape.size() ? a : reshaped(a, std::vector<int64_t>(shape.size(), 1));
    if (whole.shape == shape) return whole;
    return {code_.plain(kBroadcast, type_of(a.type, shape), {}, {whole.value}), a.type, shape};
  }
  Numbers widened(const Numbers& a, DType type) {
    if (a.type == type) return a;
    return {code_.plain(kExtI, type_of(type, a.shape), {kSigned}, {a.value}), type, a.shape};
  }
  Numbers sum(const Numbers& a, const Numbers& b) { return of_two(kAddI, {kNoWrap}, a, b, a.type); }
  Numbers scaled(const Numbers& a, int64_t factor) {
    if (factor == 1) return a;
    return of_two(kMulI, {kNoWrap}, a, constant(a.type, factor), a.type);
  }
  /// Of conditions, where there is more than one.
  Numbers both(const std::optional<Numbers>& a, const Numbers& b) {
    return a ? of_two(kAndI, {}, *a, b, DType::Bool) : b;
  }
  /// 0 <= a < b: a negative number is a large one without a sign.
  Numbers is_within(const Numbers& a, const Numbers& b) {
    return of_two(kCmpI, {kIsLess, kUnsigned}, a, b, DType::Bool);
  }

 private:
  TypeNumber type_of(DType type, const std::vector<int64_t>& shape) {
    return code_.types.tile(code_.types.element(type), shape);
  }
  Numbers of_two(Opcode opcode, std::initializer_list<uint8_t> attributes, const Numbers& a,
                 const Numbers& b, DType type) {
    std::vector<int64_t> shape = a.shape.empty() ? b.shape : a.shape;
    if (!a.shape.empty() && !b.shape.empty()) {
      for (size_t d = 0; d < shape.size(); ++d)
        shape[d] = std::max(a.shape[d], b.shape[d]);
    }
    const Value left = broadcast(a, shape).value;
    const Value right = broadcast(b, shape).value;
    return {code_.plain(opcode, type_of(type, shape), attributes, {left, right}), type, shape};
  }

  CodeWriter& code_;
};

PreparedWindow::PreparedWindow(CodeWriter& code, const Program& program, const Window& window,
                               const WindowValues& values)
    : program_(program),
      window_(window),
      parameter_(program.parameters[window.parameter]),
      source_(values.source) {
  strides_.assign(parameter_.shape.size(), 1);
  for (size_t d = strides_.size(); d-- > 1;) {
    const bool is_row = d == strides_.size() - 1;
    strides_[d - 1] =
        strides_[d] * (is_row ? parameter_.row_pitch() : parameter_.shape[d].constant);
  }
  tile_shape_ = {1, along().step};
  for (const AxisId axis : window.rows) {
    row_shape_.push_back(program.axes[axis].step);
    tile_shape_[0] *= row_shape_.back();
  }
  if (!set_view(code, values)) set_pointers(code, values);
}

Value PreparedWindow::load(CodeWriter& code, std::span<const Value> places) const {
  return view_ ? load_view(code, places) : load_pointers(code, places);
}

bool PreparedWindow::is_row(AxisId axis) const {
  return std::ranges::count(window_.rows, axis) > 0;
}

/// False where it is no view: a dimension of it would leave the tensor, or a tile of its last one
/// would go on into that of another place.
bool PreparedWindow::set_view(CodeWriter& code, const WindowValues& values) {
  std::vector<int64_t> row_strides(window_.rows.size(), 0);
  int64_t last_extent = along().extent.constant;
  along_terms_ = {{window_.along, 1}};
  for (size_t d = 0; d < window_.indices.size(); ++d) {
    const Index& index = window_.indices[d];
    if (!is_whole(program_, index, parameter_.shape[d]) &&
        !is_inside(range_of(program_, index, false), parameter_.shape[d]))
      return false;
    if (index.offset != 0) return false;
    for (const Term& term : index.terms) {
      if (term.axis == window_.along) continue;
      if (term.factor < 0) return false;
      const int64_t stride = term.factor * strides_[d];
      if (is_row(term.axis)) {
        const auto at = std::ranges::find(window_.rows, term.axis) - window_.rows.begin();
        row_strides[static_cast<size_t>(at)] += stride;
        continue;
      }
      const Extent& extent = program_.axes[term.axis].extent;
      if (extent.size >= 0 || stride % along().step != 0) return false;
      last_extent += (extent.constant - 1) * stride;
      along_terms_.push_back({term.axis, stride / along().step});
    }
  }
  if (along_terms_.size() > 1 && along().extent.constant % along().step != 0) return false;
  if (std::ranges::count(row_strides, 0) > 0) return false;
  std::vector<int64_t> shape;
  std::vector<Value> open;
  for (const AxisId axis : window_.rows) {
    const Extent& extent = program_.axes[axis].extent;
    shape.push_back(extent.size < 0 ? extent.constant : kOpen);
    if (extent.size >= 0) open.push_back(values.sizes[static_cast<size_t>(extent.size)]);
  }
  shape.push_back(last_extent);
  row_strides.push_back(1);
  const TypeNumber tensor = code.types.tensor(source_.element, shape, row_strides);
  const Value whole = code.tensor_view(tensor, source_.pointer, open, {});
  std::vector<int64_t> tile = row_shape_;
  tile.push_back(along().step);
  std::vector<int64_t> order;
  for (size_t d = 0; d < tile.size(); ++d)
    order.push_back(static_cast<int64_t>(d));
  view_ = code.plain(kMakePartitionView, code.types.partition(tensor, tile, order), {}, {whole});
  return true;
}

Value PreparedWindow::load_view(CodeWriter& code, std::span<const Value> places) const {
  Arithmetic numbers(code);
  std::vector<Value> place;
  for (const AxisId axis : window_.rows)
    place.push_back(places[axis]);
  Numbers last = numbers.scalar(places[window_.along]);
  for (const Term& term : std::span(along_terms_).subspan(1))
    last = numbers.sum(last, numbers.scaled(numbers.scalar(places[term.axis]), term.factor));
  place.push_back(last.value);
  std::vector<int64_t> shape = row_shape_;
  shape.push_back(along().step);
  const Value tile = code.load_view(code.types.tile(source_.element, shape), *view_, place);
  if (shape == tile_shape_) return tile;
  return code.plain(kReshape, code.types.tile(source_.element, tile_shape_), {}, {tile});
}

/// Where on an axis of rows each row is.
PreparedWindow::Numbers PreparedWindow::elements_of(Arithmetic& numbers, AxisId axis,
                                                    std::span<const Value> places) const {
  const int64_t step = program_.axes[axis].step;
  const Numbers first = numbers.scaled(numbers.scalar(places[axis]), step);
  if (step == 1) return first;
  const auto at = std::ranges::find(window_.rows, axis) - window_.rows.begin();
  std::vector<int64_t> shape(row_shape_.size(), 1);
  shape[static_cast<size_t>(at)] = step;
  const Numbers elements = numbers.reshaped(numbers.sum(numbers.count(step), first), shape);
  return numbers.reshaped(numbers.broadcast(elements, row_shape_), {tile_shape_[0], 1});
}

/// The part of an index that no loop changes.
PreparedWindow::Numbers PreparedWindow::rows_of(Arithmetic& numbers, const Index& index,
                                                std::span<const Value> places) const {
  Numbers rows = numbers.constant(DType::Int32, index.offset);
  for (const Term& term : index.terms) {
    if (term.axis >= program_.block_axes) continue;
    rows = numbers.sum(rows, numbers.scaled(elements_of(numbers, term.axis, places), term.factor));
  }
  return numbers.broadcast(rows, {tile_shape_[0], 1});
}

void PreparedWindow::set_pointers(CodeWriter& code, const WindowValues& values) {
  Arithmetic numbers(code);
  // Offsets of rows beyond the end, which are none, stay in range, too.
  constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max() / 4;
  const bool is_short =
      parameter_.shape[0].size < 0 && strides_[0] * parameter_.shape[0].constant < kMost32;
  const DType type = is_short ? DType::Int32 : DType::Int64;
  offsets_ = numbers.constant(type, 0);
  for (size_t d = 0; d + 1 < window_.indices.size(); ++d) {
    const Index& index = window_.indices[d];
    const Extent& extent = parameter_.shape[d];
    Dimension dimension;
    dimension.stride = strides_[d];
    dimension.rows = rows_of(numbers, index, values.places);
    dimension.is_checked = !is_inside(range_of(program_, index, true), extent);
    for (const Term& term : index.terms) {
      if (term.axis >= program_.block_axes) dimension.loops.push_back(term);
    }
    if (extent.size < 0) {
      dimension.extent = numbers.constant(DType::Int32, extent.constant);
    } else {
      const Value size = values.sizes[static_cast<size_t>(extent.size)];
      dimension.extent =
          numbers.scalar(code.plain(kTruncI, code.scalar(DType::Int32), {kMayWrap}, {size}));
    }
    offsets_ = numbers.sum(offsets_,
                           numbers.scaled(numbers.widened(dimension.rows, type), dimension.stride));
    if (dimension.is_checked && dimension.loops.empty())
      condition_ = numbers.both(condition_, numbers.is_within(dimension.rows, dimension.extent));
    dimensions_.push_back(std::move(dimension));
  }
  offsets_ = numbers.broadcast(offsets_, {tile_shape_[0], 1});
}

Value PreparedWindow::load_pointers(CodeWriter& code, std::span<const Value> places) const {
  Arithmetic numbers(code);
  std::optional<Numbers> condition = condition_;
  const Numbers first = numbers.scaled(numbers.scalar(places[window_.along]), along().step);
  Numbers offset = numbers.widened(first, offsets_.type);  // of what loops add
  for (const Dimension& dimension : dimensions_) {
    if (dimension.loops.empty()) continue;
    std::optional<Numbers> step;
    for (const Term& term : dimension.loops) {
      const Numbers part = numbers.scaled(numbers.scalar(places[term.axis]), term.factor);
      step = step ? numbers.sum(*step, part) : part;
    }
    offset =
        numbers.sum(offset, numbers.scaled(numbers.widened(*step, offset.type), dimension.stride));
    if (!dimension.is_checked) continue;
    const Numbers place = numbers.sum(dimension.rows, *step);
    condition = numbers.both(condition, numbers.is_within(place, dimension.extent));
  }
  const Numbers columns = numbers.reshaped(numbers.count(along().step), {1, along().step});
  if (along().extent.constant % along().step != 0) {
    const Numbers end = numbers.constant(DType::Int32, along().extent.constant);
    condition = numbers.both(condition, numbers.is_within(numbers.sum(columns, first), end));
  }
  const Numbers row = numbers.sum(numbers.widened(columns, offset.type), offset);
  const Numbers offsets =
      numbers.sum(numbers.broadcast(offsets_, tile_shape_), numbers.broadcast(row, tile_shape_));

  const TypeNumber pointer = code.types.pointer(source_.element);
  const TypeNumber pointers = code.types.tile(pointer, tile_shape_);
  const std::vector<int64_t> one(tile_shape_.size(), 1);
  const Value single = code.plain(kReshape, code.types.tile(pointer, one), {}, {source_.pointer});
  const Value bases = code.plain(kBroadcast, pointers, {}, {single});
  const Value source = code.plain(kOffset, pointers, {}, {bases, offsets.value});
  const TypeNumber tile = code.types.tile(source_.element, tile_shape_);
  std::vector<Value> operands = {source};
  if (condition) {
    operands.push_back(numbers.broadcast(*condition, tile_shape_).value);
    operands.push_back(code.constant(tile, 0, source_.constant_bytes));
  }
  return code.load_pointers(tile, operands);
}

}  // namespace kiln::tile
