#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/language/tables/operator.h"
#include "runtime/core/dtype.h"
#include "runtime/core/size_expr.h"

namespace kiln::tile {

/// How long a dimension is: a number, or a size that the call brings.
struct Extent {
  int64_t constant = 0;
  int32_t size = -1;  // its position among the sizes; -1: the constant

  int64_t at(std::span<const int64_t> sizes) const;
  bool operator==(const Extent&) const = default;
};

/// Cuts an extent into parts of `step` elements, the last of which may be shorter. A place on the
/// axis is the number of a part.
struct Axis {
  std::string name;
  Extent extent;
  int64_t step = 1;

  int64_t parts(std::span<const int64_t> sizes) const;
  bool operator==(const Axis&) const = default;
};

/// A value: all elements of a tile at once. Extents are powers of two.
struct TileType {
  DType element = DType::Float32;
  std::vector<int64_t> shape;

  int64_t count() const;
  bool operator==(const TileType&) const = default;
};

/// A row-major tensor, without gaps but between rows that begin at multiples of some elements.
struct Parameter {
  std::string name;
  DType type = DType::Float32;
  std::vector<Extent> shape;
  bool is_output = false;
  int64_t row_multiple = 0;  // elements; 0: one row behind the other

  /// Elements from a row of so many to the next.
  int64_t pitch(int64_t row) const;
  /// Of a row whose length is known.
  int64_t row_pitch() const { return pitch(shape.back().constant); }
  /// Whether the call says how far rows are apart.
  bool has_open_rows() const { return !shape.empty() && shape.back().size >= 0; }
  bool operator==(const Parameter&) const = default;
};

/// A parameter cut into tiles. Dimension d of a tile goes along dimension order[d] of the tensor.
/// What of a tile lies beyond the end of the tensor is read as 0, and not stored.
struct View {
  uint32_t parameter = 0;
  std::vector<int64_t> tile;
  std::vector<uint32_t> order;
  bool operator==(const View&) const = default;
};

/// Positions in the tables of a Program.
using ValueId = uint32_t;
using AxisId = uint32_t;
using ViewId = uint32_t;

struct Instruction;

struct Constant {  // all elements are this number, rounded to the type of the result
  double number = 0;
  bool operator==(const Constant&) const = default;
};
struct SizeOf {  // -> int32: a size that the call brings, as a tile of one element
  uint32_t size = 0;
  bool operator==(const SizeOf&) const = default;
};
/// -> int32: where on an axis the elements of a tile are, which has one dimension as long as a part
/// of the axis and is 1 long along all others; or of one element, where the part begins.
struct Places {
  AxisId axis = 0;
  bool operator==(const Places&) const = default;
};
struct Load {  // -> the tile of the view at these parts of axes
  ViewId view = 0;
  std::vector<AxisId> at;
  bool operator==(const Load&) const = default;
};
struct Term {  // `factor` times where on the axis an element is
  AxisId axis = 0;
  int64_t factor = 1;
  bool operator==(const Term&) const = default;
};
struct Index {  // of one dimension of a tensor: the sum of both
  std::vector<Term> terms;
  int64_t offset = 0;
  bool operator==(const Index&) const = default;
};
/// -> the elements of a tensor at all places of the block axes `rows`, a row each, and of `along`,
/// which is side by side in it: what a convolution sees of an image. Outside of the tensor is 0.
/// Rows for places beyond the end of an axis hold anything.
struct Window {
  uint32_t parameter = 0;
  std::vector<Index> indices;  // one for each dimension
  std::vector<AxisId> rows;
  AxisId along = 0;
  bool operator==(const Window&) const = default;
};
struct Store {  // a tile
  ViewId view = 0;
  std::vector<AxisId> at;
  bool operator==(const Store&) const = default;
};
/// a[m, k], b[k, n], c[m, n] -> c + a b; floats are added in the GPU's own order. Factors in
/// float32 are multiplied as they are, by no tensor core; or `in_tf32`, which reads of them what
/// tf32() leaves: they are tiles of inputs then, of no other use. Factors of 8-bit floats are added
/// up in float32; or, where it `is_fast`, in as few bits as tensor cores have, those of sm_90 13 of
/// a mantissa, so that each number loses up to 2^-13 of the largest that an instruction adds.
struct Mma {
  bool in_tf32 = false;
  bool is_fast = false;
  bool operator==(const Mma&) const = default;
};
struct Apply {  // element by element; of exp2 what would be subnormal is 0
  language::Operator function = language::Operator::Add;
  bool operator==(const Apply&) const = default;
};
/// All elements along a dimension as one, which is 1 long then; floats are added in the GPU's own
/// order.
struct Reduce {
  language::Combiner combiner = language::Combiner::Sum;
  uint32_t dimension = 0;
  bool operator==(const Reduce&) const = default;
};
struct Cast {  // to the element type of the result; of no float to an integer
  bool operator==(const Cast&) const = default;
};
struct Reshape {  // the same elements in row-major order
  bool operator==(const Reshape&) const = default;
};
struct Broadcast {  // dimensions of 1 to those of the result
  bool operator==(const Broadcast&) const = default;
};
/// Runs `body` for each combination of parts of axes, in order, the last axis the fastest.
/// `carried` are the operands at first, then what the iteration before yielded; the results are
/// what the last one did. Of one axis parts may be left out: those that begin before `from`, and
/// those that begin at `until` or after it; each is an int32.
struct For {
  std::vector<AxisId> axes;
  std::optional<ValueId> from;
  std::optional<ValueId> until;
  std::vector<ValueId> carried;
  std::vector<Instruction> body;
  std::vector<ValueId> yields;
  bool operator==(const For&) const;
};

struct Instruction {
  std::variant<Constant, SizeOf, Places, Load, Window, Store, Mma, Apply, Reduce, Cast, Reshape,
               Broadcast, For>
      what;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  bool operator==(const Instruction&) const;
};

/// A kernel as a program on tiles, which a block of a GPU runs as a whole: there are no threads in
/// it, no shared memory and no barriers. It runs once for each combination of parts of the block
/// axes, the first of `axes`; the others are those of loops.
struct Program {
  std::string name;
  std::vector<std::string> sizes;
  std::vector<Parameter> parameters;
  std::vector<View> views;
  std::vector<Axis> axes;
  uint32_t block_axes = 0;
  std::vector<TileType> values;
  std::vector<Instruction> body;

  std::span<const Axis> blocks() const { return std::span(axes).first(block_axes); }
  bool operator==(const Program&) const = default;
};

/// Floats that tensor cores multiply: of 16 and of 8 bits.
bool is_factor_float(DType type);
/// Integers that they do: int8, uint8.
bool is_factor_int(DType type);
/// What they add the products of this type up in: float32 or int32.
DType sum_type_of(DType factor);
/// Whether tiles of this type are computed with, element by element: 16-bit floats and the types of
/// sums. Tiles of the other types are factors, or are cast to one of these first.
bool is_computed(DType type);
/// Whether there are tensors and tiles of this type. Of truth values there are tiles alone.
bool is_tile_type(DType type);

/// Whether Apply knows a function whose operands are of this type, a choice's second and third.
bool is_known(language::Operator function, DType type);
/// Whether a function of float32 that Apply does not know is made of those that it does.
bool is_composed(language::Operator function);

/// How long a dimension is in memory, over the sizes: an extent or, of rows, how far they are
/// apart.
SizeExpr length_in_memory(const Parameter& parameter, size_t dimension);

/// What a row begins at a multiple of where rows are copied without threads.
constexpr int64_t kRowBytes = 16;

/// The largest size of a call that programs are for. Places are counted in 32 bits, and so is what
/// is made of them, which must not leave these: it is looked at with this as the most
/// (find_elements.cc).
constexpr int64_t kMostSize = (int64_t{1} << 28) - 1;

/// Why rows that its loops read are not copied without threads; empty where all are.
std::string unaligned_rows(const Program& program);

/// How many blocks a call has, over its sizes.
SizeExpr block_count(const Program& program);

}  // namespace kiln::tile
