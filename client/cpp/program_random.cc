// Random numbers by counter: a definition like any other, so the same on every device and in every
// run. Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): the counter is the position of four elements and the number of the step, the key a seed
// and the number of the tensor. The Python client (_programs/random.py) has the same numbers.
#include "client/cpp/program_random.h"

#include <array>
#include <numbers>

#include <kiln/intrinsics.h>

namespace kiln {
inline namespace client {
namespace detail {
namespace {

using Words = std::array<Expr, 4>;

constexpr std::array<std::uint32_t, 2> kMultipliers = {0xD2511F53, 0xCD9E8D57};
constexpr std::array<std::uint32_t, 2> kWeyl = {0x9E3779B9, 0xBB67AE85};
constexpr int kRounds = 10;

Expr word(std::uint64_t value) {
  return constant(static_cast<std::int64_t>(value & 0xFFFFFFFF), uint32);
}
Expr shift(DType type, int bits) { return constant(bits, type); }

/// The high and the low word of a product.
std::pair<Expr, Expr> product(std::uint32_t multiplier, const Expr& factor) {
  const Expr wide = constant(std::int64_t{multiplier}, uint64) * factor.astype(uint64);
  return {(wide >> shift(uint64, 32)).astype(uint32), word(multiplier) * factor};
}

Words philox(Words counter, const std::array<std::uint64_t, 2>& key) {
  for (std::uint64_t turn = 0; turn < kRounds; ++turn) {
    const auto [high_a, low_a] = product(kMultipliers[0], counter[0]);
    const auto [high_c, low_c] = product(kMultipliers[1], counter[2]);
    counter = {high_c ^ counter[1] ^ word(key[0] + turn * kWeyl[0]), low_c,
               high_a ^ counter[3] ^ word(key[1] + turn * kWeyl[1]), low_a};
  }
  return counter;
}

/// (word / 2**32) in steps of 2**-24, from `floor` steps on.
Expr unit(const Expr& of, double floor = 0) {
  return ((of >> shift(uint32, 8)).astype(float32) + constant(floor, float32)) *
         constant(0x1p-24, float32);
}

/// Box and Muller, 1958: two numbers of two.
std::vector<Expr> normal_pair(const Expr& first, const Expr& second) {
  const Expr radius = sqrt(log(unit(first, 1)) * constant(-2.0, float32));
  const Expr angle = unit(second) * constant(2 * std::numbers::pi, float32);
  return {radius * cos(angle), radius * sin(angle)};
}

std::vector<Expr> numbers_of(bool is_normal, const Words& words) {
  if (!is_normal) return {unit(words[0]), unit(words[1]), unit(words[2]), unit(words[3])};
  std::vector<Expr> numbers = normal_pair(words[0], words[1]);
  const std::vector<Expr> others = normal_pair(words[2], words[3]);
  numbers.insert(numbers.end(), others.begin(), others.end());
  return numbers;
}

}  // namespace

Tensor random_tensor(bool is_normal, const std::vector<std::int64_t>& shape, const Tensor& step,
                     RandomStream stream, const std::string& name, const SourceLocation& where) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape)
    count *= size;
  const std::vector<Tensor> blocks = compute(
      {(count + 3) / 4},
      [&](const Expr& i) {
        const Expr index = i.astype(uint64);
        const Expr turn = step().astype(uint64);
        const Words counter = {index.astype(uint32), (index >> shift(uint64, 32)).astype(uint32),
                               turn.astype(uint32), (turn >> shift(uint64, 32)).astype(uint32)};
        return numbers_of(is_normal, philox(counter, {stream.seed, stream.tensor}));
      },
      name + "_blocks", where);
  return compute(
      Shape(shape.begin(), shape.end()),
      [&](const std::vector<Expr>& indices) {
        Expr position = constant(0, int64);
        for (std::size_t d = 0; d < shape.size(); ++d)
          position = position * shape[d] + indices[d];
        const Expr block = floordiv(position, 4);
        const Expr place = floormod(position, 4);
        const auto of = [&](std::size_t which) { return blocks[which](block); };
        return select(place < 2, select(place < 1, of(0), of(1)), select(place < 3, of(2), of(3)));
      },
      name, where);
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
