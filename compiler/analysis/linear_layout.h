#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::analysis {

/// Which coordinates belong to a number of each input, as a map that is linear over F2: each bit of
/// an input flips the same bits of the coordinates, whatever the others are. Times the strides of
/// the coordinates that is a place in memory, so that rows which lie apart (padding) and places
/// that are exchanged by XOR (a swizzle) are two layouts of one kind.
///
///   lanes of a warp, as mma.sync has its sums   ->  row = lane / 4, column = lane % 4 * 2
///   row, column of a tile of 64 x 64            ->  place = row * 72 + column
///                                               ->  place = row * 64 + (column ^ row % 8 * 8)
class LinearLayout {
 public:
  struct Input {
    std::string name;
    /// For each bit of the number, the lowest first: the coordinates that it flips.
    std::vector<std::vector<int64_t>> bits;
  };
  struct Output {
    std::string name;
    int bits = 0;  // a coordinate is below 1 << bits
    int64_t stride = 1;
  };

  LinearLayout(std::vector<Input> inputs, std::vector<Output> outputs);

  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const Input& input(std::string_view name) const;

  /// The coordinates of these numbers, one an input.
  std::vector<int64_t> coordinates(std::span<const int64_t> numbers) const;
  /// Those times their strides, added up.
  int64_t place(std::span<const int64_t> numbers) const;
  /// One number from 0 on for each combination of the inputs, the first of which moves fastest.
  std::vector<int64_t> numbers_at(int64_t position) const;
  int64_t size() const;  // combinations

  LinearLayout with_strides(std::span<const int64_t> strides) const;
  /// With this input first cut down to so many bits; none where it always has one number.
  LinearLayout with_bits(std::string_view input, int bits) const;

  /// First this one, then `next`, whose inputs are the outputs of this one in their order, and as
  /// many bits wide or wider. Strides are those of `next`.
  LinearLayout compose(const LinearLayout& next) const;

  /// The numbers that have given coordinates, with strides of 1; nothing where two combinations
  /// have the same coordinates, or where some coordinates belong to none.
  std::optional<LinearLayout> inverse() const;
  /// Bits of the coordinates that the inputs decide independently of each other.
  int rank() const;

  /// How many neighbours of the input lie side by side in memory, each such group beginning at a
  /// multiple of its length: the widest access, in elements.
  int64_t contiguous(std::string_view input) const;

  /// What one access to shared memory takes by the numbers of `lanes`, one thread each, at most a
  /// warp of them, of elements of so many bytes, and `at_once` bytes for each thread (1 to 16).
  struct Access {
    int64_t wavefronts = 0;  // cycles, in each of which a bank gives one word
    int64_t fewest = 0;      // the same if no two words met in a bank
  };
  Access access(std::string_view lanes, int64_t element_bytes, int64_t at_once) const;
  /// How many times over its bytes that takes: 1 where there are no conflicts.
  int64_t conflicts(std::string_view lanes, int64_t element_bytes, int64_t at_once) const;

  /// The place, from expressions of the inputs, none of which is ever negative.
  ir::Expr to_expr(std::span<const ir::Expr> numbers) const;

 private:
  std::vector<uint64_t> columns_of(const Input& input) const;
  std::vector<uint64_t> columns() const;
  /// For each bit of the input the bits of the place that it flips, where strides are powers of two
  /// and coordinates have bits of the place of their own; else nothing.
  std::optional<std::vector<uint64_t>> bits_of_place(const Input& input) const;

  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace kiln::analysis
