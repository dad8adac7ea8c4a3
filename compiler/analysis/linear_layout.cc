// Layouts as matrices over F2, after Zhou et al., "Linear Layouts: Robust Code Generation of
// Efficient Tensor Computation Using F2", 2025: named inputs, composition, inverses by elimination,
// vectors as the part of the matrix that is an identity, and bank conflicts as a difference of
// ranks. Strides are ours: without them rows that are padded would need another kind of layout.
//
//   lanes 0..31 read words lane * 32   ->  32 words, rank 5; of banks rank 0: 2^5 times over
//   words lane * 32 + (lane % 32)      ->  rank 5, of banks 5: once
#include "compiler/analysis/linear_layout.h"

#include <algorithm>
#include <array>
#include <bit>

#include "compiler/ir/build.h"
#include "compiler/ir/gpu_arch.h"
#include "runtime/core/error.h"

namespace kiln::analysis {
namespace {

/// Rows of a basis, each with a highest bit that no other has: Gaussian elimination, one at a time.
class Basis {
 public:
  /// False where the vector is a sum of those that are there.
  bool add(uint64_t vector) {
    for (const uint64_t each : rows_)
      vector = std::min(vector, vector ^ each);
    if (vector == 0) return false;
    rows_.push_back(vector);
    std::ranges::sort(rows_, std::greater<>());
    return true;
  }
  int rank() const { return static_cast<int>(rows_.size()); }

 private:
  std::vector<uint64_t> rows_;  // the largest first
};

int rank_of(std::span<const uint64_t> columns, uint64_t mask = ~uint64_t{0}) {
  Basis basis;
  for (const uint64_t column : columns)
    basis.add(column & mask);
  return basis.rank();
}

int log2_of(int64_t value) { return std::countr_zero(static_cast<uint64_t>(value)); }
bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

/// x / 2^first % 2^count * 2^to, without what changes nothing for a number of so many bits.
ir::Expr bits_moved(const ir::Expr& x, int of, int first, int count, int to) {
  const auto by = [](language::Operator op, const ir::Expr& a, int bits) {
    return ir::Binary::make(op, a, ir::index(int64_t{1} << bits));
  };
  ir::Expr result = first == 0 ? x : by(language::Operator::TruncDiv, x, first);
  if (first + count < of) result = by(language::Operator::TruncMod, result, count);
  return to == 0 ? result : result * (int64_t{1} << to);
}

}  // namespace

LinearLayout::LinearLayout(std::vector<Input> inputs, std::vector<Output> outputs)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  int bits = 0;
  for (const Output& output : outputs_)
    bits += output.bits;
  KILN_CHECK(bits <= 63);
  for (const Input& input : inputs_) {
    for (const std::vector<int64_t>& flips : input.bits) {
      KILN_CHECK(flips.size() == outputs_.size());
      for (size_t o = 0; o < flips.size(); ++o)
        KILN_CHECK(flips[o] >= 0 && flips[o] < int64_t{1} << outputs_[o].bits);
    }
  }
}

const LinearLayout::Input& LinearLayout::input(std::string_view name) const {
  const auto found = std::ranges::find(inputs_, name, &Input::name);
  KILN_CHECK(found != inputs_.end());
  return *found;
}

std::vector<int64_t> LinearLayout::coordinates(std::span<const int64_t> numbers) const {
  KILN_CHECK(numbers.size() == inputs_.size());
  std::vector<int64_t> result(outputs_.size(), 0);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    for (size_t bit = 0; bit < inputs_[i].bits.size(); ++bit) {
      if ((numbers[i] >> bit & 1) == 0) continue;
      for (size_t o = 0; o < result.size(); ++o)
        result[o] ^= inputs_[i].bits[bit][o];
    }
  }
  return result;
}

int64_t LinearLayout::place(std::span<const int64_t> numbers) const {
  const std::vector<int64_t> at = coordinates(numbers);
  int64_t place = 0;
  for (size_t o = 0; o < at.size(); ++o)
    place += at[o] * outputs_[o].stride;
  return place;
}

std::vector<int64_t> LinearLayout::numbers_at(int64_t position) const {
  std::vector<int64_t> numbers;
  for (const Input& input : inputs_) {
    const auto bits = static_cast<int>(input.bits.size());
    numbers.push_back(position & ((int64_t{1} << bits) - 1));
    position >>= bits;
  }
  return numbers;
}

int64_t LinearLayout::size() const {
  int64_t size = 1;
  for (const Input& input : inputs_)
    size <<= static_cast<int>(input.bits.size());
  return size;
}

LinearLayout LinearLayout::with_strides(std::span<const int64_t> strides) const {
  KILN_CHECK(strides.size() == outputs_.size());
  LinearLayout result = *this;
  for (size_t o = 0; o < strides.size(); ++o)
    result.outputs_[o].stride = strides[o];
  return result;
}

LinearLayout LinearLayout::with_bits(std::string_view name, int bits) const {
  LinearLayout result = *this;
  const auto found = std::ranges::find(result.inputs_, name, &Input::name);
  KILN_CHECK(found != result.inputs_.end() && bits <= static_cast<int>(found->bits.size()));
  found->bits.resize(static_cast<size_t>(bits));
  return result;
}

LinearLayout LinearLayout::compose(const LinearLayout& next) const {
  KILN_CHECK(next.inputs_.size() == outputs_.size());
  for (size_t o = 0; o < outputs_.size(); ++o) {
    KILN_CHECK(next.inputs_[o].name == outputs_[o].name);
    KILN_CHECK(static_cast<int>(next.inputs_[o].bits.size()) >= outputs_[o].bits);
  }
  std::vector<Input> inputs = inputs_;
  for (Input& input : inputs)
    for (std::vector<int64_t>& flips : input.bits)
      flips = next.coordinates(flips);
  return {std::move(inputs), next.outputs_};
}

std::vector<uint64_t> LinearLayout::columns_of(const Input& input) const {
  std::vector<uint64_t> columns;
  for (const std::vector<int64_t>& flips : input.bits) {
    uint64_t column = 0;
    int at = 0;
    for (size_t o = 0; o < flips.size(); at += outputs_[o++].bits)
      column |= static_cast<uint64_t>(flips[o]) << at;
    columns.push_back(column);
  }
  return columns;
}

std::vector<uint64_t> LinearLayout::columns() const {
  std::vector<uint64_t> all;
  for (const Input& input : inputs_) {
    const std::vector<uint64_t> own = columns_of(input);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

int LinearLayout::rank() const { return rank_of(columns()); }

std::optional<LinearLayout> LinearLayout::inverse() const {
  std::vector<uint64_t> left = columns();
  int bits = 0;
  for (const Output& output : outputs_)
    bits += output.bits;
  if (static_cast<int>(left.size()) != bits || rank_of(left) != bits) return std::nullopt;
  // Gauss and Jordan: beside each column, which bits of the inputs it is the sum of.
  std::vector<uint64_t> from;
  for (size_t i = 0; i < left.size(); ++i)
    from.push_back(uint64_t{1} << i);
  for (size_t bit = 0; bit < left.size(); ++bit) {
    size_t pivot = bit;
    while ((left[pivot] >> bit & 1) == 0)
      ++pivot;
    std::swap(left[bit], left[pivot]);
    std::swap(from[bit], from[pivot]);
    for (size_t other = 0; other < left.size(); ++other) {
      if (other == bit || (left[other] >> bit & 1) == 0) continue;
      left[other] ^= left[bit];
      from[other] ^= from[bit];
    }
  }
  std::vector<Input> inputs;
  size_t bit = 0;
  for (const Output& output : outputs_) {
    Input input{.name = output.name, .bits = {}};
    for (int i = 0; i < output.bits; ++i)
      input.bits.push_back(numbers_at(static_cast<int64_t>(from[bit++])));
    inputs.push_back(std::move(input));
  }
  std::vector<Output> outputs;
  for (const Input& input : inputs_)
    outputs.push_back({.name = input.name, .bits = static_cast<int>(input.bits.size())});
  return LinearLayout(std::move(inputs), std::move(outputs));
}

int64_t LinearLayout::contiguous(std::string_view name) const {
  const Input& along = input(name);
  const std::vector<uint64_t> columns = columns_of(along);
  const auto distance_of = [&](const std::vector<int64_t>& flips) {
    int64_t distance = 0;
    for (size_t o = 0; o < flips.size(); ++o)
      distance += flips[o] * outputs_[o].stride;
    return distance;
  };
  // What flips nothing twice adds up.
  int count = 0;
  uint64_t taken = 0;
  for (; count < static_cast<int>(along.bits.size()); ++count) {
    const auto bit = static_cast<size_t>(count);
    if ((columns[bit] & taken) != 0 || distance_of(along.bits[bit]) != int64_t{1} << count) break;
    taken |= columns[bit];
  }
  // The other bits leave the lowest ones of each coordinate and of its stride alone.
  const auto leaves_alone = [&](const std::vector<int64_t>& flips, int64_t group) {
    for (size_t o = 0; o < flips.size(); ++o) {
      const int64_t lowest = flips[o] & -flips[o];
      if (lowest * outputs_[o].stride % group != 0) return false;
    }
    return true;
  };
  for (; count > 0; --count) {
    const int64_t group = int64_t{1} << count;
    bool fits = true;
    for (const Input& each : inputs_) {
      const size_t first = each.name == along.name ? static_cast<size_t>(count) : 0;
      for (size_t bit = first; bit < each.bits.size(); ++bit)
        fits = fits && leaves_alone(each.bits[bit], group);
    }
    if (fits) return group;
  }
  return 1;
}

std::optional<std::vector<uint64_t>> LinearLayout::bits_of_place(const Input& input) const {
  uint64_t taken = 0;
  for (const Output& output : outputs_) {
    if (output.bits == 0) continue;
    if (!is_power_of_two(output.stride)) return std::nullopt;
    const uint64_t own = ((uint64_t{1} << output.bits) - 1) << log2_of(output.stride);
    if ((taken & own) != 0) return std::nullopt;
    taken |= own;
  }
  std::vector<uint64_t> bits;
  for (const std::vector<int64_t>& flips : input.bits) {
    uint64_t place = 0;
    for (size_t o = 0; o < flips.size(); ++o)
      place |= static_cast<uint64_t>(flips[o] * outputs_[o].stride);
    bits.push_back(place);
  }
  return bits;
}

LinearLayout::Access LinearLayout::access(std::string_view lanes, int64_t element_bytes,
                                          int64_t at_once) const {
  const Input& threads = input(lanes);
  KILN_CHECK(is_power_of_two(element_bytes) && is_power_of_two(at_once) && at_once <= 16);
  KILN_CHECK(threads.bits.size() <= 5);
  constexpr int64_t kBytes = ir::kBanks * ir::kBankBytes;
  // Threads whose words all banks give in one cycle; the others have their turn later.
  const int64_t unit = std::max(at_once, ir::kBankBytes);
  const int all = static_cast<int>(threads.bits.size());
  const int together = std::min(all, log2_of(kBytes / unit));
  const int64_t turns = int64_t{1} << (all - together);
  if (const auto bits = bits_of_place(threads)) {
    std::vector<uint64_t> units;
    bool is_aligned = true;
    for (const uint64_t place : *bits) {
      const uint64_t bytes = place * static_cast<uint64_t>(element_bytes);
      is_aligned = is_aligned && bytes % static_cast<uint64_t>(at_once) == 0;
      units.push_back(bytes / static_cast<uint64_t>(unit));
    }
    units.resize(static_cast<size_t>(together));
    const auto of_banks = static_cast<uint64_t>(kBytes / unit - 1);
    if (is_aligned)
      return {.wavefronts = turns << (rank_of(units) - rank_of(units, of_banks)), .fewest = turns};
  }
  // Padded: the sums carry, so the words are counted.
  Access result;
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<int64_t> words;
    for (int64_t i = 0; i < int64_t{1} << together; ++i) {
      std::vector<int64_t> numbers(inputs_.size(), 0);
      numbers[static_cast<size_t>(&threads - inputs_.data())] = (turn << together) + i;
      const int64_t first = place(numbers) * element_bytes;
      for (int64_t word = first / ir::kBankBytes; word * ir::kBankBytes < first + at_once; ++word)
        words.push_back(word);
    }
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<int64_t, ir::kBanks> of_bank{};
    for (const int64_t word : words)
      ++of_bank[static_cast<size_t>(word % ir::kBanks)];
    result.wavefronts += *std::ranges::max_element(of_bank);
    result.fewest += (static_cast<int64_t>(words.size()) + ir::kBanks - 1) / ir::kBanks;
  }
  return result;
}

int64_t LinearLayout::conflicts(std::string_view lanes, int64_t element_bytes,
                                int64_t at_once) const {
  const Access taken = access(lanes, element_bytes, at_once);
  return (taken.wavefronts + taken.fewest - 1) / taken.fewest;
}

ir::Expr LinearLayout::to_expr(std::span<const ir::Expr> numbers) const {
  KILN_CHECK(numbers.size() == inputs_.size());
  ir::Expr place = ir::index(0);
  for (size_t o = 0; o < outputs_.size(); ++o) {
    ir::Expr coordinate;
    int64_t taken = 0;
    bool overlap = false;
    std::vector<ir::Expr> terms;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::vector<std::vector<int64_t>>& bits = inputs_[i].bits;
      const int of = static_cast<int>(bits.size());
      // Neighbouring bits that go to neighbouring ones move together, each run once.
      const auto goes = [&](int bit, int to) {
        return bit >= 0 && bit < of && to >= 0 &&
               (bits[static_cast<size_t>(bit)][o] >> to & 1) != 0;
      };
      for (int bit = 0; bit < of; ++bit) {
        for (int to = 0; to < outputs_[o].bits; ++to) {
          if (!goes(bit, to) || goes(bit - 1, to - 1)) continue;
          int count = 1;
          while (to + count < outputs_[o].bits && goes(bit + count, to + count))
            ++count;
          const int64_t own = ((int64_t{1} << count) - 1) << to;
          overlap = overlap || (taken & own) != 0;
          taken |= own;
          terms.push_back(bits_moved(numbers[i], of, bit, count, to));
        }
      }
    }
    const auto op = overlap ? language::Operator::BitXor : language::Operator::Add;
    for (const ir::Expr& term : terms)
      coordinate = coordinate ? ir::Binary::make(op, coordinate, term) : term;
    if (!coordinate) continue;
    const ir::Expr stretched = coordinate * outputs_[o].stride;
    place = place + stretched;
  }
  return place;
}

}  // namespace kiln::analysis
